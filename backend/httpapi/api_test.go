package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
)

// direct returns an API without a listener, for tests that need no clock.
func direct(t *testing.T, cfg Config) *API {
	t.Helper()
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	if cfg.Agents == nil {
		cfg.Agents = catalogue(t)
	}
	cfg.Runtime, cfg.RuntimeToken, cfg.ClientToken, cfg.Version = set, rightToken, clientToken, "1.2.3"
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func frontend() fstest.MapFS {
	return fstest.MapFS{
		"index.html":          {Data: []byte("<!doctype html>")},
		"favicon.svg":         {Data: []byte("<svg/>")},
		"assets/app-1a2b.js":  {Data: []byte("run()")},
		"assets/app-1a2b.css": {Data: []byte("a{}")},
		"assets/x.woff2":      {Data: []byte("font")},
		"assets/x.wav":        {Data: []byte("sound")},
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no token":        {},
		"no client token": {RuntimeToken: "x", Client: http.NotFoundHandler()},
		"no such root":    {RuntimeToken: "x", Roots: []string{"/nonexistent/root"}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New with %s: got no error, want one", name)
		}
	}
}

func TestFrontServesPageOrGreeting(t *testing.T) {
	with := direct(t, Config{Assets: frontend()}).Loopback(memoryAddr{})
	without := direct(t, Config{}).Loopback(memoryAddr{})
	const json = `{"docs":"/openapi.json","name":"Deskhand","version":"1.2.3"}` + "\n"
	for _, c := range []struct {
		h      http.Handler
		accept string
		html   bool
	}{
		{with, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true},
		{with, "text/html", true},
		{with, "application/json;q=0.5, text/*", true},
		{with, "", false},
		{with, "*/*", false},
		{with, "application/json, text/html", false},
		{with, "application/json", false},
		{without, "text/html", false},
	} {
		w := knock(c.h, "GET", "/", "Accept", c.accept, "Authorization", "")
		if w.Code != 200 || !strings.Contains(w.Header().Get("Vary")+strings.Join(w.Header().Values("Vary"), ","), "Accept") {
			t.Errorf("Accept %q: got %d %v, want 200 and Vary: Accept", c.accept, w.Code, w.Header())
		}
		switch {
		case !c.html && (w.Body.String() != json || w.Header().Get("Content-Type") != "application/json"):
			t.Errorf("Accept %q: got %s, want the greeting", c.accept, w.Body)
		case c.html && (w.Body.String() != "<!doctype html>" || w.Header().Get("Content-Type") != "text/html; charset=utf-8"):
			t.Errorf("Accept %q: got %s, want the page", c.accept, w.Body)
		case c.html && !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'self'; style-src 'self' 'unsafe-inline'"):
			t.Errorf("Accept %q: got policy %q, want scripts of our own alone", c.accept, w.Header().Get("Content-Security-Policy"))
		}
	}
	w := knock(with, "POST", "/")
	if isProblem(t, recorded(w), 405, "method_not_allowed"); w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /: got Allow %q, want GET, HEAD", w.Header().Get("Allow"))
	}
}

func TestAssetsAreServed(t *testing.T) {
	h := direct(t, Config{Assets: frontend()}).Loopback(memoryAddr{})
	for path, want := range map[string]string{
		"/assets/app-1a2b.js": "text/javascript; charset=utf-8", "/assets/app-1a2b.css": "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml",
		"/assets/x.woff2": "font/woff2", "/assets/x.wav": "audio/wav", "/index.html": "text/html; charset=utf-8",
	} {
		w := knock(h, "GET", path, "Authorization", "", "If-None-Match", "*", "If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT")
		if w.Code != 200 || w.Header().Get("Content-Type") != want || w.Body.Len() == 0 || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %d %v, want 200 and %s", path, w.Code, w.Header(), want)
		}
		if w.Header().Get("ETag") != "" || w.Header().Get("Last-Modified") != "" {
			t.Errorf("%s: got ETag %q, Last-Modified %q; want neither", path, w.Header().Get("ETag"), w.Header().Get("Last-Modified"))
		}
		if hashed := strings.HasPrefix(path, "/assets/"); hashed != strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got Cache-Control %s, want immutable %v", path, w.Header().Get("Cache-Control"), hashed)
		}
	}
	if w := knock(h, "HEAD", "/favicon.svg"); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "6" {
		t.Errorf("HEAD /favicon.svg: got %d %v, want 200, no body, length 6", w.Code, w.Header())
	}
	for _, path := range []string{"/assets", "/assets/", "/none", "/assets/../index.html", "//index.html", "/opencode/session", "/openapi.yaml", "/%2e%2e/secret"} {
		isProblem(t, recorded(knock(h, "GET", path)), 404, "not_found")
	}
	w := knock(h, "PUT", "/favicon.svg")
	if isProblem(t, recorded(w), 405, "method_not_allowed"); w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("PUT /favicon.svg: got Allow %q, want GET, HEAD", w.Header().Get("Allow"))
	}
}

func TestRoutesTellAllowedMethods(t *testing.T) {
	h := direct(t, Config{}).Loopback(memoryAddr{})
	for path, allow := range map[string]string{
		"/v1/health": "GET", "/v1/acp": "GET", "/v1/acp/a": "DELETE, GET, POST", "/v1/acp/..": "DELETE, GET, POST", "/v1/acp/a%2Fb": "DELETE, GET, POST",
	} {
		for _, method := range []string{"PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW"} {
			w := knock(h, method, path)
			if isProblem(t, recorded(w), 405, "method_not_allowed"); w.Header().Get("Allow") != allow {
				t.Errorf("%s %s: got Allow %q, want %q", method, path, w.Header().Get("Allow"), allow)
			}
		}
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/rpc", "/v1/acp/", "/v1/acp/a/b", "/v1/health/", "/v1//health", "/v1/../v1/health", "/client/hello", "/v2"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = "127.0.0.1:2468"
		r.URL.Path, r.URL.RawPath = path, path
		r.Header.Set("Authorization", "Bearer "+rightToken)
		if strings.HasPrefix(path, "/client") {
			r.Header.Set("Authorization", "Bearer "+clientToken)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		isProblem(t, recorded(w), 404, "not_found")
	}
	w := knock(h, "GET", "/v1/health")
	if w.Body.String() != `{"status":"ok"}` || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("GET /v1/health: got %s, want ok as JSON", w.Body)
	}
	if w := knock(h, "GET", "/v1/acp"); strings.TrimSpace(w.Body.String()) != `{"servers":[]}` {
		t.Errorf("GET /v1/acp: got %s, want no servers", w.Body)
	}
}

// The window's mount needs no token, no Host and no Origin, and has the same routes.
func TestWindowServesPage(t *testing.T) {
	client := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := direct(t, Config{Client: client}).Window()
	for path, want := range map[string]int{"/v1/health": 200, "/client/hello": 418, "/v1/rpc": 404, "/": 404} {
		if w := knock(h, "GET", path, "Host", "wails.localhost", "Origin", "wails://wails", "Authorization", ""); w.Code != want {
			t.Errorf("%s: got status %d, want %d", path, w.Code, want)
		}
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	h := direct(t, Config{}).Loopback(memoryAddr{})
	post := func(body string, headers ...string) reply {
		r := httptest.NewRequest("POST", "/v1/acp/a", strings.NewReader(body))
		r.Host = "127.0.0.1:2468"
		r.Header.Set("Authorization", "Bearer "+rightToken)
		r.Header.Set("Content-Type", "application/json")
		for n := 0; n < len(headers); n += 2 {
			r.Header.Set(headers[n], headers[n+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return recorded(w)
	}
	for _, media := range []string{"", "text/plain", "application/jsonp", "application/json-patch+json", "json", "application/json, text/plain", ";"} {
		isProblem(t, post(`{"method":"m"}`, "Content-Type", media, "Accept", "text/html"), 415, "unsupported_media_type")
	}
	for _, accept := range []string{"text/html", "text/event-stream", "application/json;q=0", "*/*;q=0", "application/xml, application/json;q=0.0, */*"} {
		isProblem(t, post("broken", "Accept", accept), 406, "not_acceptable")
	}
	for _, body := range []string{
		"", " ", "{", "{}", "[]", `[{"method":"m"}]`, `"method"`, "1", "null", `{"id":1}`, `{"method":1}`, `{"method":null}`, `{"result":1}`, `{"id":1,"method":{}}`,
		`{"method":"m"}{"method":"m"}`, "{\"method\":\"\xff\"}", `{"id":true,"method":"m"}`, `{"id":{},"result":1}`, `{'method':'m'}`, `{"Method":"m"}`,
	} {
		isProblem(t, post(body, "Accept", "application/*;q=0.1", "Content-Type", "Application/JSON; charset=utf-8"), 400, "invalid_request")
	}
	// All those checks precede the lookup of the instance: only now its absence matters.
	if d := isProblem(t, post(`{"method":"m"}`), 400, "invalid_request"); !strings.Contains(d.Detail, "no agent") {
		t.Errorf("problem: got %q, want \"no agent\"", d.Detail)
	}
	for _, id := range []string{strings.Repeat("x", 129), "a%20b", "a%2Fb", "%C3%A9", "a:b", "%00"} {
		isProblem(t, recorded(knock(h, "POST", "/v1/acp/"+id)), 400, "invalid_request")
		isProblem(t, recorded(knock(h, "GET", "/v1/acp/"+id)), 400, "invalid_request")
		isProblem(t, recorded(knock(h, "DELETE", "/v1/acp/"+id)), 400, "invalid_request")
	}
	for _, id := range []string{strings.Repeat("x", 128), "..", ".", "~", "A-z_0.9~"} {
		isProblem(t, recorded(knock(h, "POST", "/v1/acp/"+id, "Content-Type", "text/plain")), 415, "unsupported_media_type")
	}
}

func TestBodyLimit(t *testing.T) {
	h := direct(t, Config{}).Window()
	for name, length := range map[string]int64{"announced": maxEnvelope + 1, "not announced": -1} {
		r := httptest.NewRequest("POST", "/v1/acp/a", &endless{left: maxEnvelope + 1})
		r.ContentLength = length
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		t.Log(name)
		isProblem(t, recorded(w), 413, "payload_too_large")
	}
}

// endless is a body of spaces, left bytes long.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	n := min(len(p), e.left)
	for i := range n {
		p[i] = ' '
	}
	e.left -= n
	return n, nil
}

func TestStreamRequestsThatAreRefused(t *testing.T) {
	h := direct(t, Config{}).Window()
	for _, id := range []string{"x", "-1", "1.5", "+1", " ", "0x1", "18446744073709551616", "1,2"} {
		d := isProblem(t, recorded(knock(h, "GET", "/v1/acp/a", "Last-Event-ID", id)), 400, "invalid_request")
		if d.Detail != "invalid request: Last-Event-ID must be a positive integer" {
			t.Errorf("Last-Event-ID %q: got %s, want a positive integer demanded", id, d.Detail)
		}
	}
	for _, accept := range []string{"application/json", "text/html", "text/event-stream;q=0"} {
		isProblem(t, recorded(knock(h, "GET", "/v1/acp/a", "Accept", accept, "Last-Event-ID", "x")), 406, "not_acceptable")
	}
}

// A configured command that cannot be started is a 502 with the reason.
func TestConfiguredCommandsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "agents.json")
	text, _ := json.Marshal(map[string]any{"agents": []map[string]any{
		{"id": "missing", "command": filepath.Join(dir, "none")}, {"id": "plain", "command": plain}, {"id": "folder", "command": dir}, {"id": "unknown", "command": "no-such-program-anywhere"},
	}})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{File: file})
	defer catalogue.Close()
	h := direct(t, Config{Agents: catalogue, Roots: []string{dir}}).Window()
	for agent, want := range map[string]string{"missing": "none does not exist", "plain": "plain is not executable", "folder": "is a directory", "unknown": "no-such-program-anywhere"} {
		r := httptest.NewRequest("POST", "/v1/acp/a?agent="+agent, strings.NewReader(`{"id":1,"method":"initialize"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if d := isProblem(t, recorded(w), 502, "stream_error"); !strings.Contains(d.Detail, want) {
			t.Errorf("%s: got %q, want it to say %q", agent, d.Detail, want)
		}
	}
}

func TestAgentsThatCannotBeStarted(t *testing.T) {
	h := direct(t, Config{Roots: []string{t.TempDir()}}).Window()
	for query, want := range map[string]struct {
		status int
		suffix string
	}{
		"agent=nobody":        {400, "unsupported_agent"},
		"agent=missing":       {502, "stream_error"},
		"agent=fake&cwd=/":    {403, "permission_denied"},
		"agent=fake&cwd=none": {404, "not_found"},
		"agent=nobody&cwd=/":  {400, "unsupported_agent"},
		"cwd=/":               {400, "invalid_request"},
	} {
		r := httptest.NewRequest("POST", "/v1/acp/a?"+query, strings.NewReader(`{"method":"m"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		isProblem(t, recorded(w), want.status, want.suffix)
	}
	if d := isProblem(t, func() reply {
		r := httptest.NewRequest("POST", "/v1/acp/a?agent=nobody", strings.NewReader(`{"method":"m"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return recorded(w)
	}(), 400, "unsupported_agent"); d.Detail != "unsupported agent: nobody" || d.Agent != "nobody" {
		t.Errorf("problem: got %+v, want nobody as unsupported", d)
	}
}
