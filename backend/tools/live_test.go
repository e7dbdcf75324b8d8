package tools

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// served is a listener of the tests.
type served struct{ *httptest.Server }

func (s served) Close() error {
	s.CloseClientConnections()
	s.Server.Close()
	return nil
}

func quick(t *testing.T) *Server {
	t.Helper()
	s := Open(Config{Self: "/nowhere", Version: "test", Progress: 10 * time.Millisecond, Serve: func(ln net.Listener, h http.Handler) io.Closer {
		web := httptest.NewUnstartedServer(h)
		_ = web.Listener.Close() // ours is in its place
		web.Listener = ln
		web.Start()
		return served{web}
	}})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type withBearer struct{ httpServer }

func (w withBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(w.Headers[0].Name, w.Headers[0].Value)
	return http.DefaultTransport.RoundTrip(r)
}

func giveHTTP(t *testing.T, s *Server, session string) httpServer {
	t.Helper()
	raw, _, ok := s.Give(session, []string{"http", "stdio"})
	var given httpServer
	if err := json.Unmarshal(raw, &given); err != nil || !ok {
		t.Fatal(err, ok)
	}
	return given
}

// TestWaitingCallShowsSignsOfLife: while a call waits, a client that gave a token hears of progress, and another at least that the stream lives.
func TestWaitingCallShowsSignsOfLife(t *testing.T) {
	s := quick(t)
	given := giveHTTP(t, s, "a session")
	heard := make(chan *sdk.ProgressNotificationParams, 100)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			select {
			case heard <- r.Params:
			default:
			}
		},
	})
	peer, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: given.URL, HTTPClient: &http.Client{Transport: withBearer{given}}, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	// Nobody has told the server whom it works for: the call waits.
	ctx, cancel := context.WithCancel(t.Context())
	params := &sdk.CallToolParams{Name: "ask_user", Arguments: map[string]string{"prompt": "?"}}
	params.SetProgressToken("t")
	ended := make(chan error, 1)
	go func() {
		_, err := peer.CallTool(ctx, params)
		ended <- err
	}()
	for n := range 3 {
		if p := <-heard; p.ProgressToken != "t" || p.Progress < float64(n+1) {
			t.Errorf("progress: got %+v, want token t, progress %d or more", p, n+1)
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call was answered")
	}
	silent(t, given)
}

// silent calls without a token: the stream has comments, which nobody takes for messages.
func silent(t *testing.T, given httpServer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	send := func(id, body string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, given.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", given.Headers[0].Value)
		if id != "" {
			req.Header.Set("Mcp-Session-Id", id)
			req.Header.Set("MCP-Protocol-Version", "2025-06-18")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	first := send("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	id := first.Header.Get("Mcp-Session-Id")
	_, _ = io.Copy(io.Discard, first.Body) // it has ended
	first.Body.Close()
	send(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	resp := send(id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_user","arguments":{"prompt":"?"}}}`)
	defer resp.Body.Close()
	got := make([]byte, len(":\n\n:\n\n"))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != ":\n\n:\n\n" {
		t.Errorf("stream: got %q, error %v, want two empty lines", got, err)
	}
}

// TestToolsAreCalledByAllNames: Gemini denies every tool that is called as one of its own.
func TestToolsAreCalledByAllNames(t *testing.T) {
	s := quick(t)
	given := giveHTTP(t, s, "s")
	for client, want := range map[string]string{"gemini-cli-mcp-client-deskhand": "ask_person", "codex-mcp-client": "ask_user"} {
		peer, err := sdk.NewClient(&sdk.Implementation{Name: client, Version: "1"}, nil).
			Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: given.URL, HTTPClient: &http.Client{Transport: withBearer{given}}, MaxRetries: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := peer.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if !slices.Contains(names, want) || len(names) != 3 {
			t.Errorf("tools for %s: got %q, want 3 with %s", client, names, want)
		}
		for _, name := range []string{"ask_user", "ask_person"} { // without a question both are refused, and known
			if result, err := peer.CallTool(t.Context(), &sdk.CallToolParams{Name: name}); err != nil || !result.IsError {
				t.Errorf("call of %s by %s: got %+v, error %v, want a failure of a known tool", name, client, result, err)
			}
		}
		if err := peer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNumberOfPeersIsBounded: an agent that opens its tools without end is not let in without end.
func TestNumberOfPeersIsBounded(t *testing.T) {
	s := quick(t)
	given := giveHTTP(t, s, "s")
	refused := 0
	for range mostPeers + 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, given.URL,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", given.Headers[0].Value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // it has ended
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("refused peers: got %d, want 3", refused)
	}
}

// TestGiveChoosesTransport: which door an agent gets follows what it takes.
func TestGiveChoosesTransport(t *testing.T) {
	s := quick(t)
	s.cfg.Socket = func(ctx context.Context) (net.Listener, error) {
		var lc net.ListenConfig
		return lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	for _, c := range []struct {
		takes []string
		want  string
		ok    bool
	}{
		{[]string{"http", "stdio", "sse"}, `"type":"http"`, true},
		{[]string{"sse", "stdio", "http"}, `"args":["mcp"]`, true},
		{[]string{"http"}, `"type":"http"`, true},
		{[]string{"stdio"}, `"args":["mcp"]`, true},
		{[]string{"stdio", "sse"}, `"args":["mcp"]`, true},
		{[]string{"sse"}, "", false},
		{nil, "", false},
	} {
		raw, _, ok := s.Give("s", c.takes)
		if ok != c.ok || !strings.Contains(string(raw), c.want) || strings.Contains(string(raw), `"type":"stdio"`) {
			t.Errorf("Give for %q: got %s, %v, want %s, %v", c.takes, raw, ok, c.want, c.ok)
		}
	}
	// Only where this machine alone can reach it are agents sent to a listener of others.
	before := giveHTTP(t, s, "s").URL
	for addr, taken := range map[string]bool{"192.0.2.1:80": false, "0.0.0.0:80": false, "127.0.0.1:8080": true, "[::1]:8081": true} {
		ip, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, unmount := s.Mount(ip, http.NotFoundHandler())
		if got := giveHTTP(t, s, "s").URL; strings.HasPrefix(got, "http://"+addr+"/") != taken {
			t.Errorf("URL with a mount on %s: got %s, want it used %v", addr, got, taken)
		}
		unmount()
		if got := giveHTTP(t, s, "s").URL; got != before {
			t.Errorf("URL after unmounting %s: got %s, want %s", addr, got, before)
		}
	}
}

// TestListed: it is known whether an agent has fetched the list of its tools, by either way, and of each start anew.
func TestListed(t *testing.T) {
	s := quick(t)
	isListed := func(listed <-chan struct{}) bool {
		select {
		case <-listed:
			return true
		default:
			return false
		}
	}
	for range 2 {
		raw, listed, ok := s.Give("s", []string{"http"})
		var given httpServer
		if err := json.Unmarshal(raw, &given); err != nil || !ok {
			t.Fatal(err, ok)
		}
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		peer, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: given.URL, HTTPClient: &http.Client{Transport: withBearer{given}}, MaxRetries: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if isListed(listed) {
			t.Error("connected alone: it counts as listed")
		}
		for range 2 {
			if _, err := peer.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if !isListed(listed) {
			t.Error("with the list fetched: it does not count as listed")
		}
		if err := peer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestGiveFailsAfterClose: nothing is given any more, and an end that comes late harms nobody.
func TestGiveFailsAfterClose(t *testing.T) {
	s := quick(t)
	giveHTTP(t, s, "s")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if raw, _, ok := s.Give("s", []string{"http", "stdio"}); ok {
		t.Errorf("Give after Close: got %s, want nothing", raw)
	}
	s.End("s")
	s.End("nobody")
}
