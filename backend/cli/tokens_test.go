package cli_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestTokensAreMadeListedAndRevoked creates a token, uses the token against a running server, finds the calls in the audit, and revokes the token. Only the token
// goes to standard output.
func TestTokensAreMadeListedAndRevoked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, stderr, code := run(t, dir, "tokens"); code != 0 || !strings.Contains(out, "No token was made yet") {
		t.Fatalf("deskhand tokens: got exit %d\n%s%s\nwant 0 and that none was made", code, out, stderr)
	}
	_, link := server(t, dir)
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil {
		t.Fatal(err)
	}
	out, stderr, code := run(t, dir, "tokens", "make", "nightly script", "--scope", "runtime")
	secret := strings.TrimSuffix(out, "\n")
	if code != 0 || !strings.HasPrefix(secret, "deskhand_") || strings.Contains(secret, "\n") || !strings.Contains(stderr, "shown once") {
		t.Fatalf("deskhand tokens make: got exit %d\n%s%s\nwant 0 and one line with the secret", code, out, stderr)
	}
	call := func(path string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+u.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Close = true
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if v1, client := call("/v1/health"), call("/client/hello"); v1 != 200 || client != 403 {
		t.Errorf(`call("/v1/health"): got v1 %d, client %d, want v1 200 and client 403`, v1, client)
	}
	if out, _, code := run(t, dir, "tokens", "list"); code != 0 || !strings.Contains(out, "nightly script") || strings.Contains(out, secret) || !strings.Contains(out, "127.0.0.1") {
		t.Errorf("deskhand tokens list: got exit %d\n%s\nwant 0 and the token with its last address, without the secret", code, out)
	}
	if out, _, code := run(t, dir, "tokens", "audit"); code != 0 || !strings.Contains(out, "nightly script") || !strings.Contains(out, "403") {
		t.Errorf("deskhand tokens audit: got exit %d\n%s\nwant 0 and the token's refused call", code, out)
	}
	for _, args := range [][]string{{"make", "Nightly Script", "--scope", "client"}, {"make", "x", "--scope", "all"}, {"make", "x"}, {"make", "x", "--scope", "client", "--days", "-1"}} {
		if _, stderr, code := run(t, dir, append([]string{"tokens"}, args...)...); code != 2 {
			t.Errorf("deskhand tokens %v: got exit %d\n%s\nwant 2", args, code, stderr)
		}
	}
	if out, stderr, code := run(t, dir, "tokens", "revoke", "NIGHTLY SCRIPT"); code != 0 {
		t.Errorf("deskhand tokens revoke: got exit %d\n%s%s\nwant 0", code, out, stderr)
	}
	if got := call("/v1/health"); got != 401 {
		t.Errorf("/v1/health with a revoked token: got status %d, want 401", got)
	}
	if _, _, code := run(t, dir, "tokens", "revoke", "nobody"); code != 2 {
		t.Errorf("deskhand tokens revoke nobody: got exit %d, want 2", code)
	}
}
