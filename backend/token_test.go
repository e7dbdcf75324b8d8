package backend_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

// opened opens a backend on a directory. The backend starts no agent, and so needs no program of ours.
func opened(t *testing.T, dir string, change func(*backend.Config)) *backend.Backend {
	t.Helper()
	places, err := datadir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := backend.Config{Places: places, Version: "1.2.3", Kind: "server", Self: self, Roots: []string{t.TempDir()}}
	if change != nil {
		change(&cfg)
	}
	b, err := backend.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// health is the status of GET /v1/health on a server of b, with the token unless it is empty.
func health(t *testing.T, b *backend.Backend, host, token string) int {
	t.Helper()
	l, err := b.Listen(t.Context(), host, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/v1/health", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// TestTokenIsMadeOnce: /v1 requires a token by default. The token is created once, of 256 random bits, and readable by us alone.
func TestTokenIsMadeOnce(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		dir := t.TempDir()
		var tokens []string
		for range 2 {
			t.Run("start", func(t *testing.T) { tokens = append(tokens, tokenOf(t, dir)) })
		}
		if len(tokens) != 2 || tokens[0] != tokens[1] {
			t.Error("a second start makes another token")
		}
		if seen[tokens[0]] {
			t.Error("two directories have one token")
		}
		seen[tokens[0]] = true
	}
}

// tokenOf opens a backend on dir, and checks the token.
func tokenOf(t *testing.T, dir string) string {
	t.Helper()
	b := opened(t, dir, nil)
	data, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(data))
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(token) {
		t.Errorf("the token has %d characters", len(token))
	}
	info, err := os.Stat(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the token's mode is %v", info.Mode())
	}
	if with, without := health(t, b, "127.0.0.1", token), health(t, b, "127.0.0.1", ""); with != 200 || without != 401 {
		t.Errorf("with the token %d, without it %d", with, without)
	}
	return token
}

// TestTokenOfTheUser: a chosen token replaces the token of the data directory.
func TestTokenOfTheUser(t *testing.T) {
	dir := t.TempDir()
	b := opened(t, dir, func(c *backend.Config) { c.Token = "chosen" })
	made, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{"chosen": 200, strings.TrimSpace(string(made)): 401, "": 401} {
		if got := health(t, b, "127.0.0.1", token); got != want {
			t.Errorf("%q: %d, want %d", token, got, want)
		}
	}
}

// TestNoTokenIsForLoopbackAlone: without a token only loopback addresses are served, by any name; with a token, any address.
func TestNoTokenIsForLoopbackAlone(t *testing.T) {
	open := opened(t, t.TempDir(), func(c *backend.Config) { c.NoToken = true })
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if got := health(t, open, host, ""); got != 200 {
			t.Errorf("%s without a token: %d", host, got)
		}
	}
	for _, host := range []string{"0.0.0.0", "::", "", "192.0.2.1", "example.com", "127.0.0.1.example.com", "LOCALHOST.", "0"} {
		if l, err := open.Listen(t.Context(), host, 0); err == nil {
			t.Errorf("%q is served without a token", host)
			_ = l.Close()
		} else if !strings.Contains(err.Error(), "token") {
			t.Errorf(`%q: got %v, want with "token"`, host, err)
		}
	}
	guarded := opened(t, t.TempDir(), nil)
	if got := health(t, guarded, "0.0.0.0", ""); got != 401 {
		t.Errorf("every address, with a token wanted: %d", got)
	}
}
