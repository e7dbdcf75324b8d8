package environ

import (
	"slices"
	"strings"
	"testing"
)

// TestLoopbackIsExceptedFromProxies: secrets of Deskhand's own tools, which have an address on this machine, must not travel to a proxy.
func TestLoopbackIsExceptedFromProxies(t *testing.T) {
	t.Parallel()
	const ours = "127.0.0.1,localhost,::1"
	for name, c := range map[string]struct {
		env  []string
		want string // of both spellings; "" = neither is set
	}{
		"no proxy":                   {[]string{"A=b"}, ""},
		"no proxy, with exceptions":  {[]string{"NO_PROXY=x"}, "x|"},
		"an empty proxy":             {[]string{"HTTP_PROXY=", "https_proxy="}, ""},
		"HTTP":                       {[]string{"HTTP_PROXY=http://p:1"}, ours},
		"HTTPS":                      {[]string{"HTTPS_PROXY=http://p:1"}, ours},
		"of all":                     {[]string{"ALL_PROXY=socks5://p:1"}, ours},
		"HTTP in small letters":      {[]string{"http_proxy=http://p:1"}, ours},
		"HTTPS in small letters":     {[]string{"https_proxy=http://p:1"}, ours},
		"of all in small letters":    {[]string{"all_proxy=socks5://p:1"}, ours},
		"with exceptions":            {[]string{"HTTP_PROXY=http://p:1", "NO_PROXY=.example.com, 10.0.0.0/8"}, ".example.com,10.0.0.0/8," + ours},
		"with small exceptions":      {[]string{"HTTP_PROXY=http://p:1", "no_proxy=.example.com"}, ".example.com," + ours},
		"with exceptions in both":    {[]string{"HTTP_PROXY=http://p:1", "no_proxy=b,a", "NO_PROXY=a"}, "a,b," + ours},
		"with exceptions twice":      {[]string{"HTTP_PROXY=http://p:1", "NO_PROXY=a", "NO_PROXY=b"}, "b," + ours},
		"with all excepted":          {[]string{"HTTP_PROXY=http://p:1", "NO_PROXY=*"}, "*," + ours},
		"with some of ours already":  {[]string{"HTTP_PROXY=http://p:1", "NO_PROXY=localhost,a"}, "localhost,a,127.0.0.1,::1"},
		"with empty exceptions":      {[]string{"HTTP_PROXY=http://p:1", "NO_PROXY=,", "no_proxy="}, ours},
		"with a proxy that is local": {[]string{"HTTP_PROXY=http://127.0.0.1:3128"}, ours},
	} {
		got := ExceptLoopback(c.env)
		if again := ExceptLoopback(got); !slices.Equal(again, got) {
			t.Errorf("%s: done twice it is %q, want %q", name, again, got)
		}
		upper, lower := Lookup(got, "NO_PROXY"), Lookup(got, "no_proxy")
		if want, untouched := strings.CutSuffix(c.want, "|"); untouched {
			if upper != want || len(got) != len(c.env) {
				t.Errorf("%s: got %q, want %q", name, got, c.env)
			}
			continue
		}
		if upper != c.want || lower != c.want {
			t.Errorf("%s: got %q and %q, want %q", name, upper, lower, c.want)
		}
	}
}
