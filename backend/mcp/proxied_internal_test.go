package mcp

import (
	"net/http"
	"strings"
	"testing"
)

// TestACheckOfThisMachineGoesAroundAProxy: a check of a server on this machine never uses a proxy of the agents' environment; a check of
// another machine does.
func TestACheckOfThisMachineGoesAroundAProxy(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		choose := proxied([]string{name + "=http://proxy.example.com:3128"})
		scheme := strings.ToLower(strings.TrimSuffix(strings.ToUpper(name), "_PROXY"))
		for host, through := range map[string]bool{"127.0.0.1:80": false, "localhost:80": false, "[::1]:80": false, "127.9.9.9": false, "example.com": true} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+host+"/mcp", nil)
			if err != nil {
				t.Fatal(err)
			}
			if to, err := choose(r); err != nil || (to != nil) != through {
				t.Errorf("%s, %s: through %v, %v, want a proxy: %t", name, host, to, err, through)
			}
		}
	}
}
