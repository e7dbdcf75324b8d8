package httpapi

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/proxy"
)

// The attacks on the server: the requests are written by hand and go over a real socket, because Go's client would correct most of them.
// One test for each rule of section 1 of the contract; guard_test.go has the tests that need no socket.

// target is a server under attack.
type target struct {
	t       *testing.T
	addr    string
	root    string // directory of its files
	api     *API
	client  *Client
	reached chan string // patterns of the reached routes, when counted
}

// attacked serves cfg as the program does. The routes are real; those of the client API have no backend, since none may be reached.
func attacked(t *testing.T, cfg Config) *target {
	t.Helper()
	root := t.TempDir()
	cfg.Roots = []string{root}
	client := NewClient(ClientConfig{Login: func(string) bool { return false }, Tabs: NewTabs("client")})
	cfg.Client = client
	api := direct(t, cfg)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(api.Loopback(ln.Addr()))
	served := make(chan error)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return &target{t: t, addr: ln.Addr().String(), root: root, api: api, client: client}
}

// counted replaces every guarded route by a counter, so that reaching a route is noticed whatever its answer would be.
func (a *target) counted() *target {
	a.reached = make(chan string, 1000)
	for _, mux := range []*router{&a.api.mux, a.client.mux} {
		for _, r := range mux.routes {
			for method := range r.methods {
				pattern := method + " " + strings.Join(r.segments, "/")
				if unguarded(pattern) {
					continue // open to everyone
				}
				r.methods[method] = func(w http.ResponseWriter, _ *http.Request) {
					a.reached <- pattern
					w.WriteHeader(http.StatusNoContent)
				}
			}
		}
	}
	return a
}

func (a *target) nothingReached(what string) {
	a.t.Helper()
	select {
	case route := <-a.reached:
		a.t.Errorf("%s: got a call of %s, want none", what, route)
	default:
	}
}

// said is an answer on a connection.
type said struct {
	code   int
	header http.Header
	body   string
}

func (s said) reply() reply { return reply{s.code, s.header, strings.NewReader(s.body)} }

// How long a test waits for an immediate answer; exceeding the limit means that the attack has slowed the server down.
const (
	answerTimeout = time.Minute     // fails the test, so generous for a busy machine
	moreTimeout   = 3 * time.Second // after which the server is taken to wait for more bytes
)

// crlf returns text with the line ends of HTTP, and the server's address for ADDR.
func (a *target) crlf(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "ADDR", a.addr), "\n", "\r\n")
}

// send writes text and returns the answers until the server closes. The client's side is closed when the first answer has come, or when the
// server seems to wait for more bytes; not before, because then the client counts as gone.
func (a *target) send(text string) []said {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.addr)
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	_, _ = io.WriteString(conn, a.crlf(text)) // a server that has enough closes before the end
	_ = conn.SetReadDeadline(time.Now().Add(moreTimeout))
	first := make([]byte, 1)
	n, _ := conn.Read(first)
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	all, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		a.t.Errorf("%.60q: got no end after %q, want the connection closed", text, all)
	}
	return parse(a.t, append(first[:n], all...), text)
}

func parse(t *testing.T, all []byte, request string) []said {
	t.Helper()
	var answers []said
	in := bufio.NewReader(bytes.NewReader(all))
	method, _, _ := strings.Cut(request, " ")
	for {
		if _, err := in.Peek(1); err != nil {
			return answers
		}
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%.60q: got %q, %v; want answers of HTTP", request, all, err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		answers = append(answers, said{res.StatusCode, res.Header, string(body)})
		if method == http.MethodHead { // net/http's own refusals have a body nevertheless
			return answers
		}
	}
}

// one sends text and returns the only answer.
func (a *target) one(text string) said {
	a.t.Helper()
	answers := a.send(text)
	if len(answers) != 1 {
		a.t.Fatalf("%.80q: got %d answers, want 1: %v", text, len(answers), answers)
	}
	return answers[0]
}

const bearer = "Authorization: Bearer " + rightToken + "\n"

// routes returns all guarded routes as "METHOD /path", read from the routers so that no later route is forgotten.
func (a *target) routes() []string {
	var all []string
	for _, mux := range []*router{&a.api.mux, a.client.mux} {
		for _, r := range mux.routes {
			segments := slices.Clone(r.segments)
			for n, s := range segments {
				if strings.HasPrefix(s, "{") {
					segments[n] = "x"
				}
			}
			for method := range r.methods {
				all = append(all, method+" "+strings.Join(segments, "/"))
			}
		}
	}
	slices.Sort(all)
	if len(all) < 30 {
		a.t.Fatalf("routes: got %d, want 30 or more", len(all))
	}
	return all
}

func unguarded(route string) bool {
	return route == "GET /openapi.json" || route == "POST /client/login" || route == "POST /client/tab/proof"
}

func changes(route string) bool { return !strings.HasPrefix(route, "GET ") }

// Rule 1: only the token in Authorization: Bearer opens a route.
func TestAttackEveryRouteWantsTheToken(t *testing.T) {
	a := attacked(t, Config{Assets: frontend()}).counted()
	for _, route := range a.routes() {
		if unguarded(route) {
			continue
		}
		got := a.one(route + " HTTP/1.1\nHost: ADDR\nConnection: close\nContent-Type: application/json\nContent-Length: 2\n\n{}")
		isProblem(t, got.reply(), 401, "token_invalid")
		if got.header.Get("WWW-Authenticate") == "" || len(got.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: got %v, want WWW-Authenticate and no cookie", route, got.header)
		}
		a.nothingReached(route)
	}
}

func TestAttackTokenElsewhere(t *testing.T) {
	a := attacked(t, Config{}).counted()
	for name, c := range map[string]struct{ query, headers string }{
		"query":            {"?token=" + rightToken, ""},
		"access_token":     {"?access_token=" + rightToken, ""},
		"authorization":    {"?authorization=Bearer%20" + rightToken, ""},
		"cookie":           {"", "Cookie: token=" + rightToken + "; Authorization=Bearer " + rightToken + "\n"},
		"another header":   {"", "X-Token: " + rightToken + "\nProxy-Authorization: Bearer " + rightToken + "\n"},
		"no scheme":        {"", "Authorization: " + rightToken + "\n"},
		"basic":            {"", "Authorization: Basic " + rightToken + "\n"},
		"token":            {"", "Authorization: Token " + rightToken + "\n"},
		"a list":           {"", "Authorization: Bearer wrong, Bearer " + rightToken + "\n"},
		"the second":       {"", "Authorization: Basic x\nAuthorization: Bearer " + rightToken + "\n"},
		"parameters":       {"", "Authorization: Bearer token=" + rightToken + "\n"},
		"quoted":           {"", "Authorization: Bearer \"" + rightToken + "\"\n"},
		"other case":       {"", "Authorization: Bearer " + strings.ToUpper(rightToken) + "\n"},
		"a prefix":         {"", "Authorization: Bearer " + rightToken[:len(rightToken)-1] + "\n"},
		"the client's":     {"", "Authorization: Bearer " + clientToken + "\n"},
		"in a WebSocket's": {"", "Sec-WebSocket-Protocol: bearer, " + rightToken + "\nConnection: Upgrade\nUpgrade: websocket\n"},
	} {
		got := a.one("GET /v1/health" + c.query + " HTTP/1.1\nHost: ADDR\n" + c.headers + "\n")
		if got.code != 401 && got.code != 429 {
			t.Errorf("%s: got status %d, want 401 or 429", name, got.code)
		}
		a.nothingReached(name)
	}
	if got := a.one("GET /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "\n"); got.code != 204 {
		t.Errorf("the right token: got status %d, want 204", got.code)
	}
}

// Measuring the time of a comparison would be unreliable, so the test reads the source.
func TestAttackTokensAreComparedInConstantTime(t *testing.T) {
	source, err := os.ReadFile("guard.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sha256.Sum256([]byte(token))", "subtle.ConstantTimeCompare(hash[:], s.hash[:])"} {
		if !bytes.Contains(source, []byte(want)) {
			t.Errorf("guard.go: got no %s, want it there", want)
		}
	}
}

// Rule 3: Host must be exactly a name of the server, and given once.
func TestAttackHost(t *testing.T) {
	a := attacked(t, Config{AllowHosts: []string{"desk.example"}}).counted()
	_, port, _ := net.SplitHostPort(a.addr)
	get := func(lines string) string { return "GET /v1/health HTTP/1.1\n" + lines + bearer + "\n" }
	for name, c := range map[string]struct {
		text string
		code int
	}{
		"ours":                       {get("Host: ADDR\n"), 204},
		"localhost":                  {get("Host: localhost:" + port + "\n"), 204},
		"in capitals":                {get("hOST: LOCALHOST:" + port + "\n"), 204},
		"IPv6":                       {get("Host: [::1]:" + port + "\n"), 204},
		"allowed":                    {get("Host: desk.example:" + port + "\n"), 204},
		"white space around it":      {get("Host:\t ADDR \n"), 204},
		"rebound":                    {get("Host: rebound.example:" + port + "\n"), 421},
		"rebound, our name in it":    {get("Host: 127.0.0.1.rebound.example:" + port + "\n"), 421},
		"rebound, localhost in it":   {get("Host: localhost.rebound.example:" + port + "\n"), 421},
		"below localhost":            {get("Host: a.localhost:" + port + "\n"), 421},
		"a trailing dot":             {get("Host: localhost.:" + port + "\n"), 421},
		"a trailing dot to a number": {get("Host: 127.0.0.1.:" + port + "\n"), 421},
		"userinfo":                   {get("Host: user@ADDR\n"), 400},
		"userinfo that is us":        {get("Host: ADDR@rebound.example\n"), 400},
		"no port":                    {get("Host: 127.0.0.1\n"), 421},
		"an empty port":              {get("Host: 127.0.0.1:\n"), 421},
		"another port":               {get("Host: 127.0.0.1:1\n"), 421},
		"HTTP's port":                {get("Host: 127.0.0.1:80\n"), 421},
		"the port with a zero":       {get("Host: 127.0.0.1:0" + port + "\n"), 421},
		"two ports":                  {get("Host: ADDR:" + port + "\n"), 421},
		"another loopback address":   {get("Host: 127.0.0.2:" + port + "\n"), 421},
		"a short address":            {get("Host: 127.1:" + port + "\n"), 421},
		"a decimal address":          {get("Host: 2130706433:" + port + "\n"), 421},
		"an octal address":           {get("Host: 0177.0.0.1:" + port + "\n"), 421},
		"a hexadecimal address":      {get("Host: 0x7f000001:" + port + "\n"), 421},
		"every address":              {get("Host: 0.0.0.0:" + port + "\n"), 421},
		"IPv6, long":                 {get("Host: [0:0:0:0:0:0:0:1]:" + port + "\n"), 421},
		"IPv6, mapped":               {get("Host: [::ffff:127.0.0.1]:" + port + "\n"), 421},
		"IPv6 without brackets":      {get("Host: ::1:" + port + "\n"), 421},
		"IPv6 with a zone":           {get("Host: [::1%25lo]:" + port + "\n"), 421},
		"every IPv6 address":         {get("Host: [::]:" + port + "\n"), 421},
		"a URL":                      {get("Host: http://ADDR\n"), 400},
		"a path":                     {get("Host: ADDR/\n"), 400},
		"a list":                     {get("Host: ADDR,rebound.example\n"), 421},
		"empty":                      {get("Host:\n"), 421},
		"missing":                    {get(""), 400},
		"missing, but forwarded":     {get("X-Forwarded-Host: ADDR\nForwarded: host=ADDR\n"), 400},
		"forwarded":                  {get("Host: rebound.example\nX-Forwarded-Host: ADDR\nForwarded: host=ADDR\n"), 421},
		"twice":                      {get("Host: ADDR\nHost: ADDR\n"), 400},
		"twice, ours first":          {get("Host: ADDR\nHost: rebound.example\n"), 400},
		"twice, ours last":           {get("Host: rebound.example\nhost: ADDR\n"), 400},
		"folded":                     {get("Host: ADDR\n rebound.example\n"), 400},
		"folded, empty first":        {get("Host:\n ADDR\n"), 204}, // the folded value is the server's
		"folded, theirs":             {get("Host:\n rebound.example\n"), 421},
		"folded, and another":        {get("Host:\n ADDR\nHost: rebound.example\n"), 400},
		"folded at the start":        {"GET /v1/health HTTP/1.1\n Host: ADDR\n" + bearer + "\n", 400},
		"a space before the colon":   {get("Host : ADDR\n"), 400},
		"a NUL":                      {get("Host: ADDR\x00\n"), 400},
		"not ASCII":                  {get("Host: l\u00f6calhost:" + port + "\n"), 400},
		"a proxy's request, theirs":  {"GET http://rebound.example/v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "\n", 421},
		"a proxy's request, ours":    {"GET http://ADDR/v1/health HTTP/1.1\nHost: rebound.example\n" + bearer + "\n", 421},
		"a proxy's request, no Host": {"GET http://ADDR/v1/health HTTP/1.0\n" + bearer + "\n", 421},
		"a URL without a host":       {"GET http:///v1/health HTTP/1.1\nHost: rebound.example\n" + bearer + "\n", 421},
	} {
		answers := a.send(c.text)
		if len(answers) != 1 || answers[0].code != c.code {
			t.Errorf("%s: %v, want %d", name, answers, c.code)
			continue
		}
		if c.code == 421 {
			isProblem(t, answers[0].reply(), 421, "misdirected_request")
		}
		if c.code == 204 {
			<-a.reached
		}
		a.nothingReached(name)
	}
	// The check of Host comes first: no route, with or without a token, for a page or a preflight, answers under another name.
	for _, route := range append(a.routes(), "GET /", "GET /openapi.json", "OPTIONS /v1/health", "OPTIONS *", "GET /none") {
		got := a.one(route + " HTTP/1.1\nHost: rebound.example\nOrigin: http://rebound.example\nAccess-Control-Request-Method: POST\n" + bearer + "\n")
		isProblem(t, got.reply(), 421, "misdirected_request")
		a.nothingReached(route)
	}
}

// Rule 4: a foreign page reaches nothing, even where no token is needed.
func TestAttackOrigin(t *testing.T) {
	a := attacked(t, Config{NoToken: true, AllowOrigins: []string{"https://app.example"}, Assets: frontend()}).counted()
	_, port, _ := net.SplitHostPort(a.addr)
	for name, c := range map[string]struct {
		headers string
		code    int
	}{
		"none":                      {"", 204},
		"ours":                      {"Origin: http://ADDR\n", 204},
		"our other name":            {"Origin: http://localhost:" + port + "\nSec-Fetch-Site: same-site\n", 204},
		"allowed":                   {"Origin: https://app.example\nSec-Fetch-Site: cross-site\n", 204},
		"same-site":                 {"Sec-Fetch-Site: same-site\n", 204}, // needs the token, and changes nothing without Origin
		"typed by a person":         {"Sec-Fetch-Site: none\n", 204},
		"foreign":                   {"Origin: https://evil.example\n", 403},
		"foreign, rebound":          {"Origin: http://rebound.example:" + port + "\n", 403},
		"null":                      {"Origin: null\n", 403},
		"NULL":                      {"Origin: NULL\n", 403},
		"empty":                     {"Origin:\n", 403},
		"https of our host":         {"Origin: https://ADDR\n", 403},
		"our host without a scheme": {"Origin: ADDR\n", 403},
		"another port":              {"Origin: http://127.0.0.1:1\n", 403},
		"no port":                   {"Origin: http://127.0.0.1\n", 403},
		"a path":                    {"Origin: http://ADDR/\n", 403},
		"userinfo":                  {"Origin: http://evil@ADDR\n", 403},
		"our address as userinfo":   {"Origin: http://ADDR@evil.example\n", 403},
		"a query":                   {"Origin: http://ADDR?x\n", 403},
		"a list":                    {"Origin: http://ADDR, https://evil.example\n", 403},
		"a list with spaces":        {"Origin: http://ADDR https://evil.example\n", 403},
		"two, ours first":           {"Origin: http://ADDR\nOrigin: https://evil.example\n", 403},
		"two, ours last":            {"Origin: https://evil.example\nOrigin: http://ADDR\n", 403},
		"two, both ours":            {"Origin: http://ADDR\nOrigin: http://ADDR\n", 403},
		"a file":                    {"Origin: file://\n", 403},
		"an extension":              {"Origin: chrome-extension://abcdefghijklmnop\n", 403},
		"below the allowed":         {"Origin: https://x.app.example\n", 403},
		"behind the allowed":        {"Origin: https://app.example.evil.example\n", 403},
		"http of the allowed":       {"Origin: http://app.example\n", 403},
		"another port of it":        {"Origin: https://app.example:8443\n", 403},
		"cross-site, no Origin":     {"Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\n", 403},
		"cross-site, our Origin":    {"Sec-Fetch-Site: cross-site\nOrigin: http://ADDR\n", 403},
		"cross-site, second":        {"Sec-Fetch-Site: none\nSec-Fetch-Site: cross-site\n", 403},
	} {
		got := a.one("POST /v1/fs/mkdir?path=x HTTP/1.1\nHost: ADDR\nConnection: close\n" + c.headers + "\n")
		if got.code != c.code {
			t.Errorf("%s: got status %d, want %d", name, got.code, c.code)
		}
		allowed := got.header.Get("Access-Control-Allow-Origin")
		if (name == "allowed") != (allowed == "https://app.example") || name != "allowed" && allowed != "" {
			t.Errorf("%s: got Access-Control-Allow-Origin %q, want it for the allowed page alone", name, allowed)
		}
		if got.header.Get("Access-Control-Allow-Credentials") != "" || !slices.Contains(got.header.Values("Vary"), "Origin") {
			t.Errorf("%s: got %v, want no credentials, and Vary: Origin", name, got.header)
		}
		if c.code == 403 {
			isProblem(t, got.reply(), 403, "permission_denied")
		} else {
			<-a.reached
		}
		a.nothingReached(name)
	}
	for _, route := range append(a.routes(), "GET /", "GET /index.html", "GET /openapi.json", "POST /client/login", "POST /client/tab/proof") {
		for _, headers := range []string{"Origin: https://evil.example\n", "Origin: null\n", "Sec-Fetch-Site: cross-site\n"} {
			got := a.one(route + " HTTP/1.1\nHost: ADDR\n" + headers + bearer + "\n")
			isProblem(t, got.reply(), 403, "permission_denied")
			a.nothingReached(route)
		}
		preflight := a.one("OPTIONS" + route[strings.Index(route, " "):] + " HTTP/1.1\nHost: ADDR\nOrigin: https://evil.example\n" +
			"Access-Control-Request-Method: POST\nAccess-Control-Request-Headers: authorization\nAccess-Control-Request-Private-Network: true\n\n")
		isProblem(t, preflight.reply(), 403, "permission_denied")
		for name := range preflight.header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: got %s in a foreign preflight, want no Access-Control headers", route, name)
			}
		}
	}
}

// Rule 5: a form of a foreign page changes nothing, even without a token and when the browser sends no Origin.
func TestAttackForms(t *testing.T) {
	a := attacked(t, Config{NoToken: true})
	if err := os.WriteFile(filepath.Join(a.root, "kept"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	const note = `{"from":"kept","to":"moved","jsonrpc":"2.0","method":"x","type":"local","command":"c","sources":[]}`
	bodies := map[string]string{
		"application/x-www-form-urlencoded":            "a=1&b=2",
		"application/x-www-form-urlencoded; charset=x": note,
		"text/plain":                                 note,
		"text/plain;charset=UTF-8":                   note,
		"text/plain; application/json":               note,
		"multipart/form-data; boundary=b":            "--b\nContent-Disposition: form-data; name=\"a\"\nContent-Type: application/json\n\n" + note + "\n--b--\n",
		"text/json":                                  note,
		"application/jsonp":                          note,
		"application/json-patch+json":                note,
		"application/json, text/plain":               note,
		"text/plain, application/json":               note,
		"application/json\nContent-Type: text/plain": note,
	}
	query := "?path=made&directory=.&mcpName=a&skillName=a&agent=fake"
	for _, route := range a.routes() {
		if !changes(route) {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		for media, body := range bodies {
			head := "Host: ADDR\nConnection: close\nContent-Type: " + media + "\nContent-Length: " + fmt.Sprint(len(a.crlf(body))) + "\n"
			from := a.one(method + " " + path + query + " HTTP/1.1\n" + head + "Origin: https://evil.example\n\n" + body)
			isProblem(t, from.reply(), 403, "permission_denied")
			if method != "POST" { // forms only POST, and a script needs a preflight: TestAttackOrigin
				continue
			}
			got := a.one("POST " + path + query + " HTTP/1.1\n" + head + "\n" + body)
			switch {
			case strings.HasPrefix(path, "/client/") && path != "/client/login" && path != "/client/tab/proof":
				isProblem(t, got.reply(), 401, "token_invalid") // a form cannot send a token
			case (path == "/client/login" || path == "/client/tab/proof") && strings.HasPrefix(media, "application/json"): // the code is wrong, and no page can send JSON
			case path == "/v1/fs/upload-batch":
				isProblem(t, got.reply(), 400, "invalid_request") // as the contract demands
			case strings.HasPrefix(path, "/acp/"): // plain text errors
				if got.code != 415 {
					t.Errorf("%s %s: got status %d, want 415", path, media, got.code)
				}
			default:
				isProblem(t, got.reply(), 415, "unsupported_media_type")
			}
		}
		// In some browsers a form without a field sends no type at all; then the JSON is missing.
		if method == "POST" && strings.HasPrefix(path, "/v1/") && path != "/v1/fs/mkdir" {
			if got := a.one("POST " + path + query + " HTTP/1.1\nHost: ADDR\nConnection: close\nContent-Length: 0\n\n"); got.code != 415 && got.code != 400 {
				t.Errorf("%s without a type: got %d %s, want 415 or 400", route, got.code, got.body)
			}
		}
	}
	left, err := os.ReadDir(a.root)
	if err != nil || len(left) != 1 || left[0].Name() != "kept" {
		t.Errorf("files in the root: got %v, %v; want kept alone", left, err)
	}
	if list := a.one("GET /v1/acp HTTP/1.1\nHost: ADDR\n\n"); !strings.Contains(list.body, `"servers":[]`) {
		t.Errorf("instances: got %s, want none", list.body)
	}
}

// Rule 6: after ten wrong tokens in a minute a peer is refused; the right token always passes. TestGuardLimitsGuesses covers the time.
func TestAttackGuesses(t *testing.T) {
	a := attacked(t, Config{})
	guess := func(n int) said {
		return a.one(fmt.Sprintf("GET /v1/health HTTP/1.1\nHost: ADDR\nX-Forwarded-For: 10.0.0.%d\nForwarded: for=10.0.0.%d\nAuthorization: Bearer %d\n\n", n, n, n))
	}
	for n := range maxGuesses {
		isProblem(t, guess(n).reply(), 401, "token_invalid")
	}
	for n := range 3 {
		got := guess(n + maxGuesses)
		isProblem(t, got.reply(), 429, "too_many_requests")
		var wait int
		if _, err := fmt.Sscan(got.header.Get("Retry-After"), &wait); err != nil || wait < 1 || wait > 60 {
			t.Errorf("Retry-After: got %q, want 1 to 60", got.header.Get("Retry-After"))
		}
	}
	if got := a.one("GET /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "\n"); got.code != 200 || got.body != `{"status":"ok"}` {
		t.Errorf("the right token after guesses: got %+v, want 200 and ok", got)
	}
	// Guesses of the client API's token count with the others.
	isProblem(t, a.one("GET /client/hello HTTP/1.1\nHost: ADDR\nAuthorization: Bearer x\n\n").reply(), 429, "too_many_requests")
}

// No spelling of a path avoids the token, and only the right spelling reaches a route.
func TestAttackPaths(t *testing.T) {
	a := attacked(t, Config{Assets: frontend()}).counted()
	paths := []string{
		"//v1/health", "///v1/health", "/v1//health", "/./v1/health", "/v1/./health", "/v1/../v1/health", "/x/../v1/health", "/assets/../v1/health",
		"/../v1/health", "/%2e%2e/v1/health", "/%2e/v1/health", "/assets/%2e%2e/v1/health", "/client/../v1/health", "/client/login/../../v1/health",
		"/%76%31/health", "/%76%31/%68ealth", "/v%31/health", "/v1%2fhealth", "/v1%2Fhealth", "/%2fv1/health", "/%2Fv1%2Fhealth", "%2fv1/health",
		"/v1/acp/..%2f", "/v1/acp/..%2fhealth", "/v1/acp/%2e%2e/health", "/v1/acp/x%00", "/v1/health%00", "/v1%00/health", "/v1/health%20", "/v1/health%0a",
		`/v1\health`, `\v1\health`, `/\v1/health`, `/v1/..\v1/health`, "/v1%5chealth", "/%5cv1/health",
		"/v1;x/health", "/v1/health;x", "/v1;/health", "/;/v1/health", "/v1/health;jsessionid=1", "/v1/acp;a=b",
		"/V1/health", "/v1/HEALTH", "/ⅴ1/health", "/v\xc2\xb9/health", "/v1/health/", "/v1/health.", "/v1/health/.", "/v1/health#x", "/v1/health?x#y",
		"/v1/%68%65%61%6c%74%68", "/v1/%2568ealth", "/%2576%2531/health", "/%u0076%u0031/health", "/%c0%afv1/health", "/v1/health%", "/v1/health%zz",
		"/client/login/", "/client/login%2f..%2fhello", "/client/login;/hello", "/client//login", "/CLIENT/hello", "/client%2fhello", "/%63lient/hello", "/client/./hello",
		"/openapi.json/../v1/health", "/openapi.json/v1/health", "/openapi.json%2f..%2fv1/health", "/?/v1/health", "/;v1/health",
		"foo:/v1/health", "http:/v1/health", "http:v1/health", "v1/health", "*", "?", "/v1/health HTTP/1.1 /x",
	}
	for _, method := range []string{"GET", "POST", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"} {
		for _, path := range paths {
			for _, got := range a.send(method + " " + path + " HTTP/1.1\nHost: ADDR\nContent-Type: application/json\nConnection: close\n\n") {
				if got.code < 400 && path != "/?/v1/health" { // the front page
					t.Errorf("%s %s without a token: got status %d, want a refusal", method, path, got.code)
				}
			}
			a.nothingReached(method + " " + path)
		}
	}
	// With the token, a route is reached by its path, plain or escaped.
	fine := []string{"/%76%31/health", "/%76%31/%68ealth", "/v%31/health", "/v1/%68%65%61%6c%74%68", "/v1/health?x#y", "/v1/health#x"}
	for _, path := range paths {
		for _, got := range a.send("GET " + path + " HTTP/1.1\nHost: ADDR\n" + bearer + "Connection: close\n\n") {
			if reached := got.code == 204; reached && !slices.Contains(fine, path) && !strings.HasPrefix(path, "/v1/acp/") && !strings.HasSuffix(path, ":/v1/health") {
				t.Errorf("%s: got a route, want none", path)
			}
		}
	}
}

// FuzzPath searches for a request that reaches a guarded route without a token.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/v1/health", "//v1/health", "/v1/../v1/acp", "/%76%31/health", "/v1/acp/..%2f", "/client/login/../hello", "http:/v1/acp", "/client/login"} {
		f.Add("GET", path)
		f.Add("POST", path)
	}
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = set.Close() })
	client := NewClient(ClientConfig{Login: func(string) bool { return false }, Tabs: NewTabs("client")})
	api, err := New(Config{Runtime: set, Client: client, RuntimeToken: rightToken, ClientToken: clientToken, Roots: []string{f.TempDir()}, Assets: frontend()})
	if err != nil {
		f.Fatal(err)
	}
	a := (&target{api: api, client: client}).counted()
	h := api.Loopback(memoryAddr{})
	f.Fuzz(func(t *testing.T, method, path string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:2468\r\n\r\n")))
		if err != nil {
			return
		}
		a.t = t
		h.ServeHTTP(httptest.NewRecorder(), r)
		a.nothingReached(method + " " + path)
	})
}

// A request ends where HTTP says, or with the connection: no request hides in a body, and no body becomes a request.
func TestAttackFraming(t *testing.T) {
	a := attacked(t, Config{}).counted()
	const hidden = "GET /v1/acp HTTP/1.1\nHost: ADDR\n" + bearer + "\n"
	post := func(lines, body string) string {
		return "POST /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + lines + "\n" + body
	}
	for name, c := range map[string]struct {
		text  string
		codes []int
	}{
		"a body":                    {post("Content-Length: 4\n", "body"+hidden), []int{405, 204}}, // two honest requests
		"hidden in a body":          {post("Content-Length: "+fmt.Sprint(len(a.crlf(hidden)))+"\n", hidden), []int{405}},
		"two lengths, alike":        {post("Content-Length: 4\nContent-Length: 4\n", "body"), []int{405}},
		"two lengths":               {post("Content-Length: 4\nContent-Length: 0\n", "body"+hidden), []int{400}},
		"a list of lengths":         {post("Content-Length: 4, 4\n", "body"+hidden), []int{400}},
		"a signed length":           {post("Content-Length: +4\n", "body"+hidden), []int{400}},
		"a negative length":         {post("Content-Length: -4\n", "body"+hidden), []int{400}},
		"a hexadecimal length":      {post("Content-Length: 0x4\n", "body"+hidden), []int{400}},
		"an empty length":           {post("Content-Length:\n", "body"+hidden), []int{400}},
		"a length beyond int64":     {post("Content-Length: 9223372036854775808\n", "body"+hidden), []int{400}},
		"chunked":                   {post("Transfer-Encoding: chunked\n", "4\nbody\n0\n\n"), []int{405}},
		"chunked and a length":      {post("Content-Length: 4\nTransfer-Encoding: chunked\n", "0\n\n"), []int{405}},
		"chunked and a length, rev": {post("Transfer-Encoding: chunked\nContent-Length: 4\n", "0\n\n"), []int{405}},
		"xchunked":                  {post("Transfer-Encoding: xchunked\nContent-Length: 4\n", "body"+hidden), []int{501}},
		"chunked in quotes":         {post("Transfer-Encoding: \"chunked\"\n", "0\n\n"+hidden), []int{501}},
		"chunked, identity":         {post("Transfer-Encoding: chunked, identity\n", "0\n\n"+hidden), []int{501}},
		"identity":                  {post("Transfer-Encoding: identity\nContent-Length: 4\n", "body"+hidden), []int{501}},
		"gzip, chunked":             {post("Transfer-Encoding: gzip, chunked\n", "0\n\n"+hidden), []int{501}},
		"chunked twice":             {post("Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n", "0\n\n"+hidden), []int{501}},
		"chunked, then identity":    {post("Transfer-Encoding: chunked\nTransfer-Encoding: identity\n", "0\n\n"+hidden), []int{501}},
		"a vertical tab":            {post("Transfer-Encoding: \x0bchunked\n", "0\n\n"+hidden), []int{400}},
		"folded":                    {post("Transfer-Encoding:\n chunked\nContent-Length: 4\n", "0\n\n"), []int{405}},
		"a space before the colon":  {post("Transfer-Encoding : chunked\nContent-Length: 4\n", "body"+hidden), []int{400}},
		"a CR alone":                {post("X: a\rTransfer-Encoding: chunked\nContent-Length: 4\n", "body"+hidden), []int{400}},
		"a NUL in a header":         {post("X: a\x00b\n", hidden), []int{400}},
		"no colon":                  {post("X\n", hidden), []int{400}},
		"a chunk too short":         {post("Transfer-Encoding: chunked\n", "2\nbody\n0\n\n"+hidden), []int{405}},
		"a signed chunk":            {post("Transfer-Encoding: chunked\n", "+4\nbody\n0\n\n"+hidden), []int{405}},
		"an endless chunk size":     {post("Transfer-Encoding: chunked\n", strings.Repeat("0", 100_000)+"4\nbody\n0\n\n"+hidden), []int{405}},
		"a chunk beyond uint64":     {post("Transfer-Encoding: chunked\n", "10000000000000004\nbody\n0\n\n"+hidden), []int{405}},
		"chunk extensions":          {post("Transfer-Encoding: chunked\n", strings.Repeat("1;"+strings.Repeat("x", 1000)+"\na\n", 200)+"0\n\n"+hidden), []int{405}},
		"a chunk extension's LF":    {post("Transfer-Encoding: chunked\n", "2;\rxx\n47\n0\n\n"+hidden), []int{405}},
		"trailers of 1 MiB":         {post("Transfer-Encoding: chunked\n", "0\n"+strings.Repeat("X: "+strings.Repeat("x", 1000)+"\n", 1000)+"\n"+hidden), []int{405}},
		"HTTP/1.0 and chunked":      {"POST /v1/health HTTP/1.0\nHost: ADDR\n" + bearer + "Transfer-Encoding: chunked\nConnection: keep-alive\n\n0\n\n" + hidden, []int{405, 400}}, // HTTP/1.0 has no chunks, and 0 is no request
	} {
		var codes []int
		for _, got := range a.send(c.text) {
			codes = append(codes, got.code)
		}
		if !slices.Equal(codes, c.codes) {
			t.Errorf("%s: %v, want %v", name, codes, c.codes)
		}
		if slices.Contains(c.codes, 204) {
			<-a.reached
		}
		a.nothingReached(name)
	}
}

// A body over the limit is refused: by its Content-Length before the body comes, and while chunks come without a length.
func TestAttackOversizeBodies(t *testing.T) {
	a := attacked(t, Config{MaxUpload: 1 << 20})
	entry := func(size int) string {
		const frame = `{"sources":[],"x":""}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1)
	}
	spaces := strings.Repeat(" ", 1<<20+1)
	for _, c := range []struct {
		route string
		media string
		limit int
		over  string // longer than the limit
		fits  string // a body exactly as long as the limit; "" = not tried
		code  int
	}{
		{"POST /v1/acp/x?agent=none", "application/json", maxEnvelope, spaces + strings.Repeat(" ", maxEnvelope), "", 0},
		{"PUT /v1/config/skills?directory=.&skillName=a", "application/json", 1 << 20, entry(1<<20 + 1), entry(1 << 20), 204},
		{"PUT /v1/config/mcp?directory=.&mcpName=a", "application/json", 1 << 20, spaces, "", 0},
		{"POST /v1/fs/move", "application/json", 1 << 20, spaces, "", 0},
		{"POST /v1/agents/fake/install", "application/json", 1 << 20, spaces, "", 0},
		{"PUT /v1/fs/file?path=f", "image/png", 1 << 20, spaces, strings.Repeat("x", 1<<20), 200},
		{"POST /v1/fs/upload-batch?path=d", "application/x-tar", 1 << 20, archive(2 << 20), strings.Repeat("\x00", 1<<20), 200},
	} {
		head := c.route + " HTTP/1.1\nHost: ADDR\n" + bearer + "Content-Type: " + c.media + "\nConnection: close\n"
		// Only announced: the answer comes although the body does not.
		isProblem(t, a.one(fmt.Sprintf("%sContent-Length: %d\n\n", head, c.limit+1)).reply(), 413, "payload_too_large")
		isProblem(t, a.one(head+"Content-Length: 9223372036854775807\n\n").reply(), 413, "payload_too_large")
		isProblem(t, a.one(fmt.Sprintf("%sExpect: 100-continue\nContent-Length: %d\n\n", head, c.limit+1)).reply(), 413, "payload_too_large")
		isProblem(t, a.chunks(head, c.over), 413, "payload_too_large")
		if c.fits == "" {
			continue
		}
		if got := a.one(fmt.Sprintf("%sContent-Length: %d\n\n", head, c.limit) + c.fits); got.code != c.code {
			t.Errorf("%s with %d bytes: got %d %s, want %d", c.route, c.limit, got.code, got.body, c.code)
		}
	}
	if _, err := os.Stat(filepath.Join(a.root, "d")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(a.root, "f")); err != nil || info.Size() != 1<<20 {
		t.Errorf("the file that fits: got %v, %v; want %d bytes", info, err, 1<<20)
	}
}

// archive returns a tar with a single file.
func archive(size int) string {
	var out strings.Builder
	w := tar.NewWriter(&out)
	_ = w.WriteHeader(&tar.Header{Name: "f", Mode: 0o600, Size: int64(size)})
	_, _ = w.Write(make([]byte, size))
	_ = w.Close()
	return out.String()
}

// chunks sends a body in chunks, until the end or until the server has enough.
func (a *target) chunks(head, content string) reply {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.addr)
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	go func() {
		_, _ = fmt.Fprintf(conn, "%sTransfer-Encoding: chunked\r\n\r\n", a.crlf(head))
		for chunk := range slices.Chunk([]byte(content), 1<<16) {
			if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(chunk), chunk); err != nil {
				return
			}
		}
		_, _ = io.WriteString(conn, "0\r\n\r\n")
	}()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, bytes.NewReader(body)}
}

func TestAttackHeaderFlood(t *testing.T) {
	a := attacked(t, Config{}).counted()
	for name, lines := range map[string]string{
		"one long line":    "X: " + strings.Repeat("x", 1<<20) + "\n",
		"many lines":       strings.Repeat("X: y\n", 200_000),
		"many names":       func() (s string) { return strings.Join(names(20_000), ": x\n") + ": x\n" }(),
		"a long token":     "Authorization: Bearer " + strings.Repeat("x", 1<<20) + "\n",
		"never a new line": strings.Repeat("x", 1<<20),
		"twice the limit":  "X: " + strings.Repeat("x", 2*maxHeaders) + "\n",
	} {
		for _, got := range a.send("GET /v1/health HTTP/1.1\nHost: ADDR\n" + lines + bearer + "\n") {
			if got.code != 431 && got.code != 400 {
				t.Errorf("%s: got status %d, want 431 or 400", name, got.code)
			}
		}
		a.nothingReached(name)
	}
	if answers := a.send("GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\nHost: ADDR\n\n"); len(answers) > 0 && answers[0].code != 431 {
		t.Errorf("a long path: got status %d, want 431", answers[0].code)
	}
	// Headers that browsers add are no flood.
	if got := a.one("GET /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "Cookie: " + strings.Repeat("x", 32<<10) + "\n\n"); got.code != 204 {
		t.Errorf("32 KiB of cookies: got status %d, want 204", got.code)
	}
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("X-", i)
	}
	return all
}

// Other versions of HTTP, and methods that servers answer by themselves, reach nothing.
func TestAttackOddRequests(t *testing.T) {
	a := attacked(t, Config{}).counted()
	for name, c := range map[string]struct {
		text string
		code int
	}{
		"HTTP/0.9":              {"GET /v1/health\n", 400},
		"HTTP/0.9 with a host":  {"GET /v1/health\nHost: ADDR\n\n", 400},
		"HTTP/1.0, no Host":     {"GET /v1/health HTTP/1.0\n" + bearer + "\n", 421},
		"HTTP/1.0":              {"GET /v1/health HTTP/1.0\nHost: ADDR\n" + bearer + "\n", 204},
		"HTTP/1.0, no token":    {"GET /v1/health HTTP/1.0\nHost: ADDR\n\n", 401},
		"HTTP/1.2":              {"GET /v1/health HTTP/1.2\nHost: ADDR\n\n", 401},
		"HTTP/2.0":              {"GET /v1/health HTTP/2.0\nHost: ADDR\n\n", 505},
		"HTTP/2's preface":      {"PRI * HTTP/2.0\n\nSM\n\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 421},
		"h2c":                   {"GET /v1/health HTTP/1.1\nHost: ADDR\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__\n" + bearer + "\n", 204},
		"h2c, no token":         {"GET /v1/health HTTP/1.1\nHost: ADDR\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__\n\n", 401},
		"a WebSocket":           {"GET /v1/acp/x HTTP/1.1\nHost: ADDR\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\n\n", 401},
		"OPTIONS *":             {"OPTIONS * HTTP/1.1\nHost: ADDR\n\n", 404},
		"OPTIONS * elsewhere":   {"OPTIONS * HTTP/1.1\nHost: rebound.example\n\n", 421},
		"GET *":                 {"GET * HTTP/1.1\nHost: ADDR\n\n", 404},
		"TRACE":                 {"TRACE /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "X: secret\n\n", 405},
		"TRACE, no token":       {"TRACE /v1/health HTTP/1.1\nHost: ADDR\nX: secret\n\n", 401},
		"TRACE of the front":    {"TRACE / HTTP/1.1\nHost: ADDR\nX: secret\n\n", 405},
		"CONNECT":               {"CONNECT evil.example:443 HTTP/1.1\nHost: ADDR\n\n", 421},
		"CONNECT to us":         {"CONNECT ADDR HTTP/1.1\nHost: ADDR\n\n", 421},
		"CONNECT to a path":     {"CONNECT /v1/health HTTP/1.1\nHost: ADDR\n\n", 401},
		"a method in lower":     {"get /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "\n", 405},
		"a method of 8 KiB":     {strings.Repeat("G", 8<<10) + " /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "\n", 405},
		"an override":           {"POST /v1/health HTTP/1.1\nHost: ADDR\nX-HTTP-Method-Override: GET\nX-Original-URL: /v1/acp\nX-Rewrite-URL: /v1/acp\n" + bearer + "\n", 405},
		"no method":             {" /v1/health HTTP/1.1\nHost: ADDR\n\n", 400},
		"TLS":                   {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},
		"SSH":                   {"SSH-2.0-OpenSSH_9.6\n", 400},
		"a method that is none": {"G(T /v1/health HTTP/1.1\nHost: ADDR\n\n", 400},
	} {
		answers := a.send(c.text)
		if len(answers) != 1 || answers[0].code != c.code {
			t.Errorf("%s: got %v, want %d", name, answers, c.code)
			continue
		}
		if strings.Contains(answers[0].body, "secret") {
			t.Errorf("%s: got %s, want no echo of secret", name, answers[0].body)
		}
		if c.code == 204 {
			<-a.reached
		}
		a.nothingReached(name)
	}
}

// The table of the server: each row, on a socket.
func TestServerAnswersByTable(t *testing.T) {
	a := attacked(t, Config{Assets: frontend()})
	page := a.one("GET / HTTP/1.1\nHost: ADDR\nAccept: text/html\n\n")
	if page.code != 200 || page.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("GET / for a page: got %+v, want 200 and HTML", page)
	}
	root := a.one("GET / HTTP/1.1\nHost: ADDR\n\n")
	var greeting map[string]string
	if err := json.Unmarshal([]byte(root.body), &greeting); err != nil || root.code != 200 || greeting["name"] != "Deskhand" || greeting["version"] == "" || greeting["docs"] == "" {
		t.Errorf("GET /: got %+v, %v; want a greeting with name, version and docs", root, err)
	}
	if docs := a.one("GET " + greeting["docs"] + " HTTP/1.1\nHost: ADDR\n\n"); docs.code != 200 || !strings.Contains(docs.body, `"openapi"`) {
		t.Errorf("GET %s: got status %d, want 200 and OpenAPI", greeting["docs"], docs.code)
	}
	if health := a.one("GET /v1/health HTTP/1.1\nHost: ADDR\n" + bearer + "\n"); health.code != 200 || health.body != `{"status":"ok"}` {
		t.Errorf("GET /v1/health: got %+v, want 200 and ok", health)
	}
	for _, path := range []string{"/v1/none", "/v2", "/none", "/favicon.ico", "/client/none"} {
		token := bearer
		if strings.HasPrefix(path, "/client") {
			token = "Authorization: Bearer " + clientToken + "\n"
		}
		isProblem(t, a.one("GET "+path+" HTTP/1.1\nHost: ADDR\n"+token+"\n").reply(), 404, "not_found")
	}
	allowed := map[string][]string{}
	for _, route := range a.routes() {
		method, path, _ := strings.Cut(route, " ")
		allowed[path] = append(allowed[path], method)
	}
	for path, beside := range map[string]string{ // for the router, these may be the ids of an agent, a session or a rule
		"/client/agents/test": "/client/agents/x", "/client/sessions/import": "/client/sessions/x", "/client/rules/simulate": "/client/rules/x",
	} {
		allowed[path] = append(slices.Clone(allowed[beside]), allowed[path]...)
	}
	for path, methods := range allowed {
		token := bearer
		if strings.HasPrefix(path, "/client") {
			token = "Authorization: Bearer " + clientToken + "\n"
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} {
			if slices.Contains(methods, method) {
				continue
			}
			got := a.one(method + " " + path + " HTTP/1.1\nHost: ADDR\n" + token + "Content-Length: 0\n\n")
			if method != "HEAD" { // HEAD has no body
				isProblem(t, got.reply(), 405, "method_not_allowed")
			}
			if want := strings.Join(methods, ", "); got.code != 405 || got.header.Get("Allow") != want {
				t.Errorf("%s %s: %d, Allow %q, want %q", method, path, got.code, got.header.Get("Allow"), want)
			}
		}
	}
}

// inTime runs f with a server in memory on a fake clock, whose only agent is "fake".
func inTime(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(newWorld(t, Config{Roots: []string{t.TempDir()}, MaxUpload: 64 << 20}, agent))
	})
}

// knockSlowly writes head at once, and then a piece of the body at each interval, and returns the answer with the time that passed.
func (w *world) knockSlowly(head, piece string, every time.Duration) (said, time.Duration) {
	w.t.Helper()
	conn, err := w.dial()
	if err != nil {
		w.t.Fatal(err)
	}
	start := time.Now()
	var writer sync.WaitGroup
	defer writer.Wait()
	defer conn.Close()
	writer.Go(func() {
		_, err := io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n"))
		for err == nil {
			time.Sleep(every)
			_, err = io.WriteString(conn, piece)
		}
	})
	first := make([]byte, 1)
	n, _ := conn.Read(first)
	came := time.Since(start)
	all, _ := io.ReadAll(conn) // to the end of the connection, which the server must close
	if took := time.Since(start); took > bodyPause+time.Second {
		w.t.Errorf("slow connection: got an end after %s, want it within %s", took, bodyPause+time.Second)
	}
	answers := parse(w.t, append(first[:n], all...), head)
	if len(answers) == 0 {
		return said{}, came
	}
	return answers[0], came
}

func (w *world) dial() (net.Conn, error) {
	return w.client.Transport.(*http.Transport).DialContext(context.Background(), "", "")
}

const slowHead = "POST /v1/acp/a?agent=fake HTTP/1.1\nHost: 127.0.0.1:2468\nContent-Type: application/json\n"

// Headers that trickle in end with the connection, ten seconds after the start.
func TestAttackSlowHeaders(t *testing.T) {
	for name, head := range map[string]string{"nothing": "", "half a line": "GET /v1/hea", "header by header": "GET / HTTP/1.1\n"} {
		inTime(t, func(w *world) {
			got, took := w.knockSlowly(head, "X: y\r\n", time.Second)
			if took > headerPause+time.Second || got.code != 0 && got.code != 408 && got.code != 400 {
				w.t.Errorf("%s: got %d after %s, want no answer, 408 or 400 within %s", name, got.code, took, headerPause+time.Second)
			}
		})
	}
}

// A body that trickles in ends too, with or without a token, and at once when unwanted.
func TestAttackSlowBodies(t *testing.T) {
	for name, c := range map[string]struct {
		head, piece string
		code        int
		most        time.Duration
	}{
		"nothing comes":           {slowHead + bearer + "Content-Length: 100\n\n", "", 400, bodyPause},
		"a byte a second":         {slowHead + bearer + "Content-Length: 1000\n\n", "x", 400, bodyPause},
		"a chunk a second":        {slowHead + bearer + "Transfer-Encoding: chunked\n\n", "1\r\nx\r\n", 400, bodyPause},
		"no end to a chunk size":  {slowHead + bearer + "Transfer-Encoding: chunked\n\n", "0", 400, bodyPause},
		"no token":                {slowHead + "Content-Length: 1000\n\n", "x", 401, bodyPause},
		"no token, much":          {slowHead + "Content-Length: 1000000\n\n", "x", 401, time.Second},
		"no token, not yet sent":  {slowHead + "Expect: 100-continue\nContent-Length: 1000\n\n", "", 401, time.Second},
		"another Host":            {strings.Replace(slowHead, "127", "128", 1) + "Content-Length: 1000\n\n", "x", 421, bodyPause},
		"the wrong type":          {strings.Replace(slowHead, "json", "xml", 1) + bearer + "Transfer-Encoding: chunked\n\n", "1\r\nx\r\n", 415, bodyPause},
		"a body that GET has not": {"GET /v1/health HTTP/1.1\nHost: 127.0.0.1:2468\n" + bearer + "Content-Length: 100\n\n", "x", 200, bodyPause},
		"an upload":               {"PUT /v1/fs/file?path=f HTTP/1.1\nHost: 127.0.0.1:2468\n" + bearer + "Content-Length: 1000000\n\n", strings.Repeat("x", 100), 400, bodyPause},
		"the last step":           {"PUT /v1/fs/file?path=f HTTP/1.1\nHost: 127.0.0.1:2468\n" + bearer + "Content-Length: 32768\n\n" + strings.Repeat("x", 20_000), "x", 400, bodyPause},
	} {
		inTime(t, func(w *world) {
			got, took := w.knockSlowly(c.head, c.piece, time.Second)
			if got.code != c.code || took > c.most+time.Second {
				w.t.Errorf("%s: %d %s after %s, want %d within %s", name, got.code, got.body, took, c.code, c.most)
			}
			if left, _ := filepath.Glob(filepath.Join(w.root(), "*")); len(left) > 0 {
				w.t.Errorf("%s: got files %v, want none", name, left)
			}
		})
	}
}

// The client's routes are paced like the runtime's: a long message that keeps coming passes, and a stalled message does not. huma's own limit,
// 5 s for the whole body, would end both.
func TestSlowBodiesOfAClient(t *testing.T) {
	const head = "POST /client/login HTTP/1.1\nHost: 127.0.0.1:2468\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n"
	inTime := func(f func(w *world)) {
		synctest.Test(t, func(t *testing.T) {
			client := NewClient(ClientConfig{Login: func(string) bool { return true }, Tabs: NewTabs("client")})
			f(newWorld(t, Config{Client: client}, agent))
		})
	}
	inTime(func(w *world) {
		got, took := w.knockSlowly(head, "1\r\n \r\n", time.Second)
		if got.code != 400 || took < bodyPause-time.Second || took > bodyPause+time.Second {
			w.t.Errorf("a byte a second: got %d %s after %s, want 400 after about %s", got.code, got.body, took, bodyPause)
		}
	})
	inTime(func(w *world) {
		in := steady(20, bytes.Repeat([]byte(" "), bodyStep), `{"code":"x"}`)
		defer in.Close()
		r, _ := http.NewRequestWithContext(w.t.Context(), "POST", "http://127.0.0.1:2468/client/login", in)
		r.Header.Set("Content-Type", "application/json")
		res, err := w.client.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 {
			body, _ := io.ReadAll(res.Body)
			w.t.Errorf("a steady body: got %d %s, want 200", res.StatusCode, body)
		}
	})
}

// steady is a body that comes step by step, each at the latest possible time on the bubble's clock.
func steady(steps int, step []byte, end string) *io.PipeReader {
	in, out := io.Pipe()
	go func() {
		for range steps {
			time.Sleep(bodyPause / 2)
			_, _ = out.Write(step)
		}
		_, _ = io.WriteString(out, end)
		_ = out.Close()
	}()
	return in
}

func (w *world) root() string { return w.api.cfg.Roots[0] }

// An upload that keeps coming may take any time, a complete body does not limit the answer, and the server's own waits do not count against
// the caller.
func TestSlowUploadIsTaken(t *testing.T) {
	inTime(t, func(w *world) {
		in := steady(256, make([]byte, bodyStep), "") // 4 MiB in more than an hour
		defer in.Close()
		r, _ := http.NewRequestWithContext(w.t.Context(), "PUT", "http://127.0.0.1:2468/v1/fs/file?path=f", in)
		r.Header.Set("Authorization", "Bearer "+w.token)
		res, err := w.client.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 {
			w.t.Errorf("a steady upload: got status %d, want 200", res.StatusCode)
		}
		if info, err := os.Stat(filepath.Join(w.root(), "f")); err != nil || info.Size() != 256*bodyStep {
			w.t.Errorf("Stat(f) after a steady upload: got %v and error %v, want %d bytes", info, err, 256*bodyStep)
		}
	})
	inTime(t, func(w *world) {
		for range 2 { // on the same connection
			got := w.do("POST", "/v1/acp/a?agent=fake", `{"jsonrpc":"2.0","id":1,"method":"sleep:3m"}`)
			if body := text(w.t, got); got.code != 200 || !strings.Contains(body, "result") {
				w.t.Errorf("an agent that thinks for 3 minutes: got %d %s, want 200 and its result", got.code, body)
			}
			time.Sleep(bodyPause + time.Second)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		in := bodyOfServer(t, func(r *http.Request) error {
			time.Sleep(2 * bodyPause) // before the first byte, and in between
			one := make([]byte, 1)
			if _, err := io.ReadFull(r.Body, one); err != nil {
				return err
			}
			time.Sleep(2 * bodyPause)
			_, err := io.ReadAll(r.Body)
			return err
		})
		if err := in; err != nil {
			t.Errorf("body read by a server that is slow itself: got %v, want it whole", err)
		}
	})
}

// bodyOfServer sends a body to a gate whose next handler is read, and returns the result of read.
func bodyOfServer(t *testing.T, read func(*http.Request) error) error {
	t.Helper()
	listener := &memory{make(chan net.Conn), make(chan struct{})}
	result := make(chan error, 1)
	server := NewServer(newGate(Config{NoToken: true}, listener.Addr(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { result <- read(r) })))
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	conn, err := listener.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, conn)
	_, _ = io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: 127.0.0.1:2468\r\nContent-Length: 10\r\n\r\n0123456789")
	err = <-result
	_ = conn.Close()
	_ = server.Close()
	<-served
	return err
}

// A caller that leaves while its agent works is noticed, although the body had a deadline.
func TestServerNoticesGoneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := bodyOfServerGone(t)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("context of a caller that has gone: got %v, want %v", err, context.Canceled)
		}
	})
}

func bodyOfServerGone(t *testing.T) error {
	t.Helper()
	listener := &memory{make(chan net.Conn), make(chan struct{})}
	result, begun := make(chan error, 1), make(chan struct{})
	server := NewServer(newGate(Config{NoToken: true}, listener.Addr(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(begun)
		<-r.Context().Done()
		result <- r.Context().Err()
	})))
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	conn, err := listener.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: 127.0.0.1:2468\r\nContent-Length: 2\r\n\r\n{}")
	<-begun
	start := time.Now()
	time.AfterFunc(3*bodyPause, func() { _ = conn.Close() })
	err = <-result
	if took := time.Since(start); took < 3*bodyPause {
		t.Errorf("caller that goes after %s: got the end after %s, want it not before", 3*bodyPause, took)
	}
	_ = server.Close()
	<-served
	return err
}
