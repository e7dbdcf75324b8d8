package tools_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// post sends a first message, with these headers in place of the usual ones; an empty one is left out.
func (r *rig) post(address string, headers map[string]string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, address, strings.NewReader(hello))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (r *rig) status(address, bearer string) int {
	r.t.Helper()
	status, _ := r.post(address, map[string]string{"Authorization": "Bearer " + bearer})
	return status
}

func (r *rig) token(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// TestToolsOpenOnlyWithBearer: nothing but a session's own bearer, from a program of this machine that names the address, opens its tools; and it
// opens nothing else.
func TestToolsOpenOnlyWithBearer(t *testing.T) {
	r := serve(t, nil)
	first := r.open("web")
	one := r.given("web")
	r.open("web")
	two := r.given("web")
	r.open("programs")
	ticket := r.given("programs").variable("DESKHAND_MCP_TICKET")
	if !strings.HasPrefix(one.URL, r.base+"/mcp/") || one.URL == two.URL || one.bearer() == two.bearer() {
		t.Fatalf("servers: got %+v and %+v, want two URLs below %s and two bearers", one, two, r.base)
	}
	host := strings.TrimPrefix(r.base, "http://")
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	with := func(more ...string) map[string]string {
		h := map[string]string{"Authorization": "Bearer " + one.bearer()}
		for i := 0; i+1 < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	for _, c := range []struct {
		name, address string
		headers       map[string]string
		want          int
	}{
		{"its own", one.URL, with(), http.StatusOK},
		{"in small letters", one.URL, map[string]string{"Authorization": "bearer " + one.bearer()}, http.StatusOK},
		{"none", one.URL, nil, http.StatusUnauthorized},
		{"empty", one.URL, map[string]string{"Authorization": "Bearer "}, http.StatusUnauthorized},
		{"one letter short", one.URL, map[string]string{"Authorization": "Bearer " + one.bearer()[1:]}, http.StatusUnauthorized},
		{"one letter more", one.URL, map[string]string{"Authorization": "Bearer " + one.bearer() + "0"}, http.StatusUnauthorized},
		{"another scheme", one.URL, map[string]string{"Authorization": "Basic " + one.bearer()}, http.StatusUnauthorized},
		{"another session's", one.URL, map[string]string{"Authorization": "Bearer " + two.bearer()}, http.StatusUnauthorized},
		{"a ticket", one.URL, map[string]string{"Authorization": "Bearer " + ticket}, http.StatusUnauthorized},
		{"a ticket's secret", mcpURL(r, ticket), map[string]string{"Authorization": "Bearer " + ticket[strings.LastIndexByte(ticket, '.')+1:]}, http.StatusUnauthorized},
		{"the client's token", one.URL, map[string]string{"Authorization": "Bearer " + r.token("client-token")}, http.StatusUnauthorized},
		{"the runtime's token", one.URL, map[string]string{"Authorization": "Bearer " + r.token("token")}, http.StatusUnauthorized},
		{"no session", r.base + "/mcp/", with(), http.StatusUnauthorized},
		{"no slash", r.base + "/mcp", with(), http.StatusUnauthorized},
		{"an unknown session", r.base + "/mcp/nobody", with(), http.StatusUnauthorized},
		{"below it", one.URL + "/x", with(), http.StatusUnauthorized},
		{"a way out of it", one.URL + "/../../client/inbox", with(), http.StatusUnauthorized},
		{"an escaped way out", one.URL + "%2F..", with(), http.StatusUnauthorized},
		{"another name for us", one.URL, with("Host", "localhost:"+port), http.StatusMisdirectedRequest},
		{"a foreign host", one.URL, with("Host", "evil.example"), http.StatusMisdirectedRequest},
		{"a foreign host with our port", one.URL, with("Host", "evil.example:"+port), http.StatusMisdirectedRequest},
		{"a foreign page", one.URL, with("Origin", "https://evil.example"), http.StatusForbidden},
		{"our own page", one.URL, with("Origin", r.base), http.StatusForbidden},
		{"a page of nowhere", one.URL, with("Origin", "null"), http.StatusForbidden},
		{"a page's navigation", one.URL, with("Sec-Fetch-Site", "none"), http.StatusForbidden},
		{"the client API", r.base + "/client/inbox", with(), http.StatusUnauthorized},
		{"answers", r.base + "/client/requests/x/answer", with(), http.StatusUnauthorized},
		{"the runtime API", r.base + "/v1/agents", with(), http.StatusUnauthorized},
		{"a ticket to the client API", r.base + "/client/inbox", map[string]string{"Authorization": "Bearer " + ticket}, http.StatusUnauthorized},
	} {
		status, body := r.post(c.address, c.headers)
		if status != c.want {
			t.Errorf("%s: got status %d, want %d: %s", c.name, status, c.want, body)
		}
		if strings.Contains(body, one.bearer()) || strings.Contains(body, first) && c.want == http.StatusUnauthorized && c.name == "an unknown session" {
			t.Errorf("%s: got %s, want no bearer and no session in it", c.name, body)
		}
	}
	// A page's preflight is not answered with leave.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, one.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://evil.example")
	req.Header.Set("Access-Control-Request-Method", "POST")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight: got status %d, headers %v, want 403 without permission", resp.StatusCode, resp.Header)
	}
}

func mcpURL(r *rig, ticket string) string {
	return r.base + "/mcp/" + url.PathEscape(ticket[:strings.LastIndexByte(ticket, '.')])
}

// TestLargeRequestIsRefused: a request that is longer than any names or questions is refused, without a token as soon as it is seen.
func TestLargeRequestIsRefused(t *testing.T) {
	r := serve(t, nil)
	r.open("web")
	g := r.given("web")
	for _, bearer := range []string{g.bearer(), "wrong"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL, io.LimitReader(zeros{}, 64<<20))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+bearer)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // the connection was closed in the middle of it, which is as good
		}
		resp.Body.Close()
		if resp.StatusCode < http.StatusBadRequest {
			t.Errorf("large request: got status %d, want a refusal", resp.StatusCode)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// greet tells a program's socket something, and gives what it says to that before it waits or closes.
func greet(t *testing.T, g given, line string, patience time.Duration) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", g.variable("DESKHAND_MCP_SOCKET"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience)) // one that was let in waits for messages
	said := make([]byte, 1000)
	n, err := conn.Read(said)
	if err != nil && n == 0 {
		return ""
	}
	return string(said[:n])
}

// TestSocketOpensOnlyWithTicket: the socket of the programs lets in who has a session's ticket, and knows nothing but tools.
func TestSocketOpensOnlyWithTicket(t *testing.T) {
	r := serve(t, nil)
	r.open("programs")
	g := r.given("programs")
	r.open("web")
	web := r.given("web")
	ticket := g.variable("DESKHAND_MCP_TICKET")
	session, secret, _ := strings.Cut(ticket, ".")
	if got := greet(t, g, ticket, time.Minute); got != "ok\n" {
		t.Fatalf("greeting with the ticket: got %q, want ok", got)
	}
	for name, line := range map[string]string{
		"nothing": "", "no secret": session, "no secret but a dot": session + ".", "no session": "." + secret, "another secret": session + "." + strings.Repeat("0", len(secret)),
		"a bearer": strings.TrimPrefix(web.URL, r.base+"/mcp/") + "." + web.bearer(), "the client's token": session + "." + r.token("client-token"),
		"a route": "GET /client/hello HTTP/1.1\r\nHost: deskhand\r\n\r", "a message": hello, "a long line": strings.Repeat("x", 10_000),
	} {
		if got := greet(t, g, line, 2*time.Second); strings.HasPrefix(got, "ok") || strings.Contains(got, "HTTP") || strings.Contains(got, "serverInfo") {
			t.Errorf("greeting with %s: got %q, want a refusal", name, got)
		}
	}
	// A route is none for who was let in, either.
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", g.variable("DESKHAND_MCP_SOCKET"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s\nPOST /client/requests/x/answer HTTP/1.1\r\nHost: deskhand\r\nContent-Length: 2\r\n\r\n{}", ticket); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(testkit.Limit)) // it is closed at once
	if said, err := io.ReadAll(conn); err != nil || strings.Contains(string(said), "HTTP") {
		t.Errorf("connection after a refusal: got %q, error %v, want its end", said, err)
	}
	info, err := os.Stat(g.variable("DESKHAND_MCP_SOCKET"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: got %v, error %v, want the mode 0600", info, err)
	}
}

// TestRelayFailsWithoutTicket: `deskhand mcp` says why it cannot work.
func TestRelayFailsWithoutTicket(t *testing.T) {
	for name, env := range map[string][]string{
		"is for agents":   {"DESKHAND_MCP_TICKET=", "DESKHAND_MCP_SOCKET="},
		"does not answer": {"DESKHAND_MCP_TICKET=a.b", "DESKHAND_MCP_SOCKET=" + filepath.Join(t.TempDir(), "nobody")},
	} {
		cmd := exec.Command(self(t), "mcp")
		cmd.Env = append(os.Environ(), env...)
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Run(); err == nil || !strings.Contains(log.String(), name) {
			t.Errorf("program without %s: got error %v, log %s, want the name of the variable", name, err, log.Bytes())
		}
	}
	r := serve(t, nil)
	r.open("programs")
	g := r.given("programs")
	cmd := exec.Command(self(t), "mcp")
	cmd.Env = append(os.Environ(), "DESKHAND_MCP_TICKET=a.b", "DESKHAND_MCP_SOCKET="+g.variable("DESKHAND_MCP_SOCKET"))
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Run(); err == nil || !strings.Contains(log.String(), "have ended") {
		t.Errorf("program with a wrong ticket: got error %v, log %s, want that the tools have ended", err, log.Bytes())
	}
}

// TestToolsWorkWithoutLocalAPI: a command that serves nothing gives agents the tools all the same, and leaves nothing behind.
func TestToolsWorkWithoutLocalAPI(t *testing.T) {
	r := newRig(t, nil)
	r.file("a.txt", []byte("a"))
	for _, agent := range []string{"web", "programs"} {
		cmd := exec.Command(self(t), "prompt", "--agent", agent, "--dir", r.work, "attach a.txt")
		cmd.Env = r.environ()
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), `"ok":true`) {
			t.Errorf("agent %s: got error %v, output\n%s%s\nwant ok", agent, err, out, log.Bytes())
		}
		g := r.given(agent)
		if g.Type != "http" {
			continue
		}
		if u, err := url.Parse(g.URL); err != nil || u.Hostname() != "127.0.0.1" {
			t.Errorf("URL of the tools: got %v, error %v, want 127.0.0.1", u, err)
		} else if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host); err == nil {
			conn.Close()
			t.Error("something still listens")
		}
	}
}

// TestSecretsAreNotKept: the secrets that agents get are in nothing that is kept.
func TestSecretsAreNotKept(t *testing.T) {
	each(t, func(r *rig, agent string) {
		t := r.t
		id := r.open(agent)
		g := r.given(agent)
		secret := g.variable("DESKHAND_MCP_TICKET")
		if g.Type == "http" {
			secret = g.bearer()
		}
		secret = secret[strings.LastIndexByte(secret, '.')+1:]
		journal := r.recording(id)
		if !strings.Contains(journal, "mcpServers") || !strings.Contains(journal, `"deskhand"`) {
			t.Fatalf("journal: got %.500s, want the mcpServers of the session", journal)
		}
		if len(secret) != 64 || strings.Contains(journal, secret) {
			t.Error("the journal has the secret")
		}
	})
}

// recording is all files of a session's recording, one after the other.
func (r *rig) recording(id string) string {
	r.t.Helper()
	resp, err := r.api.Get("http://deskhand/client/sessions/" + id + "/export?format=recording")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		r.t.Fatalf("recording: got error %v for %.200s, want a zip", err, data)
	}
	var all strings.Builder
	for _, f := range files.File {
		in, err := f.Open()
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := io.Copy(&all, in); err != nil {
			r.t.Fatal(err)
		}
		in.Close()
	}
	return all.String()
}
