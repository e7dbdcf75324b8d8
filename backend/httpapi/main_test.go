package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a listener whose connections are pipes in memory, so that they follow a fake clock.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
}

type memoryAddr struct{}

func (memoryAddr) Network() string { return "tcp" }
func (memoryAddr) String() string  { return "127.0.0.1:2468" }

func (m *memory) Addr() net.Addr { return memoryAddr{} }

func (m *memory) Close() error {
	close(m.closed)
	return nil
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case m.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// world is an API on a listener in memory, with an agent in memory.
type world struct {
	t      *testing.T
	set    *proxy.Set
	api    *API
	client *http.Client
	token  string
}

const rightToken, clientToken = "runtime-token", "client-token"

// newWorld serves cfg with defaults for tests, and agent as the agent "fake".
func newWorld(t *testing.T, cfg Config, agent proxytest.Agent) *world {
	t.Helper()
	return newWorldOf(t, cfg, proxytest.Spawn(agent))
}

// newWorldOf is newWorld with another way to start the agent.
func newWorldOf(t *testing.T, cfg Config, spawn func(proxy.Command) (proxy.Process, error)) *world {
	t.Helper()
	set, err := proxy.Open(proxy.Config{Spawn: spawn, LogBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Runtime, cfg.Agents = set, catalogue(t)
	cfg.RuntimeToken, cfg.ClientToken, cfg.Version = rightToken, clientToken, "1.2.3"
	api, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener := &memory{make(chan net.Conn), make(chan struct{})}
	server := NewServer(api.Loopback(listener.Addr()))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	transport := &http.Transport{DialContext: listener.dial}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return &world{t: t, set: set, api: api, client: &http.Client{Transport: transport}, token: rightToken}
}

// catalogue returns a catalogue with the agent "fake", which never runs, and "missing", which is not installed.
func catalogue(t *testing.T) *agents.Catalogue {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "agents.json")
	data, _ := json.Marshal(map[string]any{"agents": []map[string]any{
		{"id": "fake", "name": "Fake", "command": self},
		{"id": "other", "name": "Other", "command": self},
		{"id": "missing", "name": "Missing", "command": "/nonexistent/agent"},
	}})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return agents.Open(agents.Config{Self: self, File: file})
}

// reply is an answer, whose body is closed at the end of the test.
type reply struct {
	code   int
	header http.Header
	body   io.Reader
}

// do sends a request; headers are pairs, and override the defaults. An empty value removes a header.
func (w *world) do(method, path, body string, headers ...string) reply {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://127.0.0.1:2468"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for n := 0; n < len(headers); n += 2 {
		switch {
		case headers[n] == "Host":
			r.Host = headers[n+1]
		case headers[n+1] == "":
			r.Header.Del(headers[n])
		default:
			r.Header.Set(headers[n], headers[n+1])
		}
	}
	res, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = res.Body.Close() })
	return reply{res.StatusCode, res.Header, res.Body}
}

// text returns the rest of a response's body.
func text(t *testing.T, res reply) string {
	t.Helper()
	body, err := io.ReadAll(res.body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// isProblem checks a problem document, and returns the document.
func isProblem(t *testing.T, res reply, status int, suffix string) document {
	t.Helper()
	var d document
	body := text(t, res)
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatalf("status %d: %s", res.code, body)
	}
	words := strings.ReplaceAll(suffix, "_", " ")
	if res.code != status || d.Status != status || d.Type != "urn:sandbox-agent:error:"+suffix ||
		res.header.Get("Content-Type") != "application/problem+json" || !strings.HasPrefix(d.Detail, words) {
		t.Errorf("status %d, %s: %s; want %d %s", res.code, res.header.Get("Content-Type"), body, status, suffix)
	}
	return d
}

// agent answers requests with their own line. Some methods change that: "mute" gets no answer, "sleep" is answered after as many seconds as
// its id says, "exit" ends the process.
func agent(stdin io.Reader, stdout, stderr io.Writer) int {
	in := bufio.NewReader(stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		e, err := acp.Peek(line)
		if err != nil {
			return 9
		}
		method, arg, _ := strings.Cut(e.Method(), ":")
		wait, _ := time.ParseDuration(arg)
		switch method {
		case "mute":
			continue
		case "sleep":
			time.Sleep(wait)
		case "exit":
			fmt.Fprintln(stderr, "last words")
			time.Sleep(wait)
			return 3
		case "print":
			_, _ = io.WriteString(stdout, arg+"\n")
			continue
		}
		if e.Kind == acp.Request {
			fmt.Fprintf(stdout, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", e.ID, e.Raw)
		}
	}
}
