package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gated returns a gate in front of a handler that answers 204.
func gated(t *testing.T, cfg Config, addr string) http.Handler {
	t.Helper()
	if cfg.RuntimeToken == "" && !cfg.NoToken {
		cfg.RuntimeToken = rightToken
	}
	cfg.ClientToken = clientToken
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newGate(cfg, a, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
}

// knock makes a request; headers are pairs.
func knock(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:2468"
	r.Header.Set("Authorization", "Bearer "+rightToken)
	for n := 0; n < len(headers); n += 2 {
		switch headers[n] {
		case "Host":
			r.Host = headers[n+1]
		case "Peer":
			r.RemoteAddr = headers[n+1]
		default:
			r.Header.Del(headers[n])
			if headers[n+1] != "" {
				r.Header.Set(headers[n], headers[n+1])
			}
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func recorded(w *httptest.ResponseRecorder) reply { return reply{w.Code, w.Header(), w.Body} }

func TestGuardChecksHosts(t *testing.T) {
	usual := gated(t, Config{AllowHosts: []string{"desk.example", "proxy.example:443"}}, "127.0.0.1:2468")
	for host, want := range map[string]int{
		"127.0.0.1:2468": 204, "localhost:2468": 204, "LOCALHOST:2468": 204, "[::1]:2468": 204, "desk.example:2468": 204, "proxy.example:443": 204,
		"127.0.0.1": 421, "127.0.0.1:2469": 421, "evil.example": 421, "evil.example:2468": 421, "localhost.:2468": 421, "": 421,
		"127.0.0.1:2468.evil.example": 421, "desk.example": 421, "proxy.example": 421, "192.168.1.5:2468": 421,
	} {
		if w := knock(usual, "GET", "/v1/health", "Host", host); w.Code != want {
			t.Errorf("Host %q: got status %d, want %d", host, w.Code, want)
		}
	}
	for addr, hosts := range map[string]map[string]int{
		"127.0.0.1:80":     {"localhost": 204, "localhost:80": 204, "[::1]": 204, "evil.example": 421},
		"192.168.1.5:2468": {"192.168.1.5:2468": 204, "localhost:2468": 204, "192.168.1.6:2468": 421},
		"0.0.0.0:2468":     {"localhost:2468": 204, "0.0.0.0:2468": 421},
		"[fd00::1]:2468":   {"[fd00::1]:2468": 204},
	} {
		for host, want := range hosts {
			if w := knock(gated(t, Config{}, addr), "GET", "/v1/health", "Host", host); w.Code != want {
				t.Errorf("host %q on %s: got status %d, want %d", host, addr, w.Code, want)
			}
		}
	}
	w := knock(usual, "GET", "/v1/health", "Host", "evil.example", "Authorization", "", "Origin", "null")
	isProblem(t, recorded(w), 421, "misdirected_request") // precedes every other check
}

func TestGuardChecksOrigins(t *testing.T) {
	h := gated(t, Config{AllowOrigins: []string{"https://app.example", "http://localhost:5173"}}, "127.0.0.1:2468")
	for origin, want := range map[string]int{
		"": 204, "http://127.0.0.1:2468": 204, "http://localhost:2468": 204, "http://[::1]:2468": 204, "https://app.example": 204, "http://localhost:5173": 204,
		"null": 403, "https://127.0.0.1:2468": 403, "http://127.0.0.1": 403, "http://localhost:2469": 403, "https://evil.example": 403,
		"http://app.example": 403, "https://app.example.evil.example": 403, "http://127.0.0.1:2468@evil.example": 403, "file://": 403, "%": 403,
	} {
		if w := knock(h, "POST", "/v1/acp/a", "Origin", origin); w.Code != want {
			t.Errorf("Origin %q: got status %d, want %d", origin, w.Code, want)
		}
	}
	for site, want := range map[string]int{"same-origin": 204, "none": 204, "same-site": 204, "cross-site": 403} {
		if w := knock(h, "GET", "/v1/acp", "Sec-Fetch-Site", site); w.Code != want {
			t.Errorf("Sec-Fetch-Site %s: got status %d, want %d", site, w.Code, want)
		}
	}
	if w := knock(h, "GET", "/", "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
		t.Errorf("GET / from a page elsewhere: got status %d, want 403", w.Code)
	}
	w := knock(h, "POST", "/v1/acp/a", "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site")
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example" || w.Header().Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("an allowed page: got %d %v, want 204 for its origin, without credentials", w.Code, w.Header())
	}
	if w := knock(h, "POST", "/v1/acp/a", "Origin", "https://app.example", "Authorization", ""); w.Code != 401 {
		t.Errorf("an allowed page without a token: got status %d, want 401", w.Code)
	}
	w = knock(h, "GET", "/v1/acp", "Origin", "http://localhost:2468")
	if w.Header().Get("Access-Control-Allow-Origin") != "" || !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Origin") {
		t.Errorf("our own page: got %v, want no allowed origin, and Vary: Origin", w.Header())
	}
}

func TestGuardAnswersPreflight(t *testing.T) {
	h := gated(t, Config{AllowOrigins: []string{"https://app.example"}}, "127.0.0.1:2468")
	w := knock(h, "OPTIONS", "/v1/acp/a", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Authorization", "", "Sec-Fetch-Site", "cross-site")
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example" ||
		!strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "Last-Event-ID") || !strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Errorf("preflight: got %d %v, want 204 with the allowed origin, headers and methods", w.Code, w.Header())
	}
	for _, name := range []string{"Authorization", "Content-Type", "Prefer", "Range", "If-Range", "If-None-Match", "If-Modified-Since"} {
		if !slices.Contains(strings.Split(w.Header().Get("Access-Control-Allow-Headers"), ", "), name) {
			t.Errorf("preflight: got allowed headers %q, want %s among them", w.Header().Get("Access-Control-Allow-Headers"), name)
		}
	}
	if _, given := w.Header()["Access-Control-Allow-Private-Network"]; given {
		t.Error("the private network is allowed to who has not asked")
	}
	w = knock(h, "OPTIONS", "/v1/acp/a", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Private-Network", "true")
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Private-Network") != "true" {
		t.Errorf("preflight from the public network: got %d %v, want 204 and the private network allowed", w.Code, w.Header())
	}
	w = knock(h, "OPTIONS", "/v1/acp/a", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Private-Network", "true")
	if w.Code != 403 || w.Header().Get("Access-Control-Allow-Private-Network") != "" {
		t.Errorf("preflight of a foreign page from the public network: got %d %v, want 403", w.Code, w.Header())
	}
	if w := knock(h, "OPTIONS", "/v1/acp/a", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); w.Code != 403 {
		t.Errorf("preflight of a foreign page: got status %d, want 403", w.Code)
	}
	if w := knock(h, "OPTIONS", "/v1/acp/a", "Authorization", ""); w.Code != 401 {
		t.Errorf("OPTIONS without a token, no preflight: got status %d, want 401", w.Code)
	}
}

// A page that may call can read the headers of the answers.
func TestGuardExposesHeaders(t *testing.T) {
	h := gated(t, Config{AllowOrigins: []string{"https://app.example"}}, "127.0.0.1:2468")
	w := knock(h, "PATCH", "/v1/health", "Origin", "https://app.example")
	shown := strings.Split(w.Header().Get("Access-Control-Expose-Headers"), ", ")
	for _, name := range []string{"Allow", "ETag", "Content-Range", "Accept-Ranges", "Retry-After", "Preference-Applied", "WWW-Authenticate"} {
		if !slices.Contains(shown, name) {
			t.Errorf("headers that pages read: got %q, want %s among them", shown, name)
		}
	}
}

func TestGuardChecksTokens(t *testing.T) {
	usual := gated(t, Config{}, "127.0.0.1:2468")
	open := gated(t, Config{NoToken: true}, "127.0.0.1:2468")
	abroad := gated(t, Config{NoToken: true, AllowHosts: []string{"127.0.0.1"}}, "0.0.0.0:2468")
	for name, c := range map[string]struct {
		h    http.Handler
		path string
		auth string
		want int
	}{
		"right":                       {usual, "/v1/health", "Bearer " + rightToken, 204},
		"scheme in any case":          {usual, "/v1/health", "bearer " + rightToken, 204},
		"none":                        {usual, "/v1/health", "", 401},
		"wrong":                       {usual, "/v1/health", "Bearer x", 401},
		"longer":                      {usual, "/v1/health", "Bearer " + rightToken + "x", 401},
		"empty":                       {usual, "/v1/health", "Bearer ", 401},
		"basic":                       {usual, "/v1/health", "Basic " + rightToken, 401},
		"unknown path":                {usual, "/v1/rpc", "", 401},
		"prefix only":                 {usual, "/v1", "", 401},
		"escaped path":                {usual, "/v%31/health", "", 401},
		"client with the runtime's":   {usual, "/client/hello", "Bearer " + rightToken, 401},
		"client with its own":         {usual, "/client/hello", "Bearer " + clientToken, 204},
		"runtime with the client's":   {usual, "/v1/health", "Bearer " + clientToken, 401},
		"login":                       {usual, "/client/login", "", 204},
		"below login":                 {usual, "/client/login/x", "", 401},
		"front":                       {usual, "/", "", 204},
		"asset":                       {usual, "/assets/a.js", "", 204},
		"open":                        {open, "/v1/health", "", 204},
		"client is never open":        {open, "/client/hello", "", 401},
		"open but not on loopback":    {abroad, "/v1/health", "", 401},
		"no token is not empty token": {abroad, "/v1/health", "Bearer ", 401},
	} {
		if w := knock(c.h, "GET", c.path, "Authorization", c.auth); w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
	w := knock(usual, "GET", "/v1/health", "Authorization", "")
	if isProblem(t, recorded(w), 401, "token_invalid"); !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
		t.Error("no challenge")
	}
}

func TestGuardLimitsGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := gated(t, Config{}, "127.0.0.1:2468")
		guess := func(peer string) *httptest.ResponseRecorder {
			return knock(h, "GET", "/v1/health", "Authorization", "Bearer wrong", "Peer", peer)
		}
		for n := range 10 {
			if w := guess(fmt.Sprintf("10.0.0.1:%d", n)); w.Code != 401 {
				t.Fatalf("guess %d: got status %d, want 401", n, w.Code)
			}
			time.Sleep(time.Second)
		}
		w := guess("10.0.0.1:99")
		if isProblem(t, recorded(w), 429, "too_many_requests"); w.Header().Get("Retry-After") != "50" {
			t.Errorf("Retry-After: got %q, want 50", w.Header().Get("Retry-After"))
		}
		if w := knock(h, "GET", "/v1/health", "Peer", "10.0.0.1:99"); w.Code != 204 {
			t.Errorf("the right token after guesses: got status %d, want 204", w.Code)
		}
		if w := knock(h, "GET", "/v1/health", "Authorization", "", "Peer", "10.0.0.1:99"); w.Code != 401 {
			t.Errorf("no token after guesses: got status %d, want 401", w.Code)
		}
		if w := guess("10.0.0.2:1"); w.Code != 401 {
			t.Errorf("guess of another peer: got status %d, want 401", w.Code)
		}
		time.Sleep(50 * time.Second)
		if w := guess("10.0.0.1:1"); w.Code != 401 {
			t.Errorf("guess a minute after the first: got status %d, want 401", w.Code)
		}
		if w := guess("10.0.0.1:1"); w.Code != 429 {
			t.Errorf("the next guess: got status %d, want 429", w.Code)
		}
	})
	for addr, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1", "[::ffff:10.0.0.1]:6": "10.0.0.1", "[::1]:7": "loopback", "127.9.8.7:7": "loopback", "[fe80::1%eth0]:8": "fe80::/64",
		"[2001:db8:1:2:3:4:5:6]:9": "2001:db8:1:2::/64", "[2001:db8:1:2::ffff]:9": "2001:db8:1:2::/64", "[2001:db8:1:3::]:9": "2001:db8:1:3::/64", "@": "@", "": "",
	} {
		if got := peerOf(&http.Request{RemoteAddr: addr}); got != want {
			t.Errorf("%q guesses as %q, want %q", addr, got, want)
		}
	}
	var many guesses
	for n := range allGuesses {
		if wait := many.wrong(fmt.Sprint(n), time.Now()); wait > 0 {
			t.Fatalf("guess %d, each of an address of its own, has to wait for %s, want none", n+1, wait)
		}
	}
	if wait := many.wrong("another", time.Now()); wait <= 0 {
		t.Errorf("guess %d of all addresses together: got wait %s, want one", allGuesses+1, wait)
	}
	var g guesses
	for n := range 10 * maxPeers {
		g.wrong(fmt.Sprint(n), time.Now())
	}
	if len(g.peers) > maxPeers+1 {
		t.Errorf("peers remembered: got %d, want %d at most", len(g.peers), maxPeers+1)
	}
}
