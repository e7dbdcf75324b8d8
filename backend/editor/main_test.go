package editor

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/feed"
	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/httpapi"
	"deskhand/backend/proxy"
	"deskhand/backend/remotes"
	"deskhand/backend/roster"
	sessions "deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a Deskhand with its client API behind a listener.
type fixture struct {
	*sessions.Client
	t      *testing.T
	work   string
	agent  string // of the editors; "" = the demo agent
	server *httptest.Server
	open   func() (http.Handler, error) // opens the Deskhand, also again after close
	close  func() error
	served atomic.Pointer[http.Handler]
}

func openFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DESKHAND_DEMO_STATE", filepath.Join(dir, "demo"))
	db := storetest.Open(t, dir)
	within := files.Within{}
	o := &fixture{t: t, work: work}
	o.open = func() (http.Handler, error) {
		set, err := proxy.Open(proxy.Config{})
		if err != nil {
			return nil, err
		}
		catalogue := agents.Open(agents.Config{Self: agenttest.Program(t), File: filepath.Join(dir, "agents.json"), Vault: vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile}), WriteFile: store.WriteFile})
		places := remotes.New(remotes.Deps{Store: db, Logger: slog.New(slog.DiscardHandler), Version: "test", AgentName: catalogue.Name})
		people := roster.New(roster.Deps{Catalogue: catalogue})
		o.Client, err = sessions.Open(t.Context(), sessions.Config{
			Store: db, Agents: catalogue, Proxy: set, Version: "test", Replace: files.Replace, Remotes: places, Roster: people,
			Files: &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory},
		})
		c := o.Client
		o.close = func() error { return errors.Join(c.Close(), catalogue.Close(), set.Close()) }
		return httpapi.NewClient(httpapi.ClientConfig{Version: "test", Sessions: c, Remotes: places, Agents: catalogue, Roster: people}), err
	}
	handler, err := o.open()
	if err != nil {
		t.Fatal(err)
	}
	o.served.Store(&handler)
	o.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*o.served.Load()).ServeHTTP(w, r) }))
	t.Cleanup(func() {
		o.server.Close()
		if err := errors.Join(o.close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return o
}

// restart ends this Deskhand, calls meanwhile, and starts another.
func (o *fixture) restart(meanwhile func()) {
	o.t.Helper()
	ended := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	o.served.Store(&ended)
	if err := o.close(); err != nil {
		o.t.Fatal(err)
	}
	handler, err := o.open()
	if err != nil {
		o.t.Fatal(err)
	}
	meanwhile()
	o.served.Store(&handler)
}

// wait waits for a condition, and checks the condition after every event of the feed.
func (o *fixture) wait(what string, is func() bool) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), testkit.Limit)
	defer cancel()
	q := feed.Query{Gen: o.Feed().Gen(), Wait: time.Second}
	for !is() {
		b, err := o.Feed().After(ctx, q)
		if err != nil || ctx.Err() != nil {
			o.t.Fatalf("no %s: %v", what, err)
		}
		q.After = b.Seq
	}
}

// to sends every call to the server, whatever host the call names.
type to struct {
	host string
	next http.RoundTripper
}

func (r to) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.URL.Host = r.host
	q.Header.Set(httpapi.SurfaceHeader, "editor")
	return r.next.RoundTrip(q)
}

// fakeEditor is a scripted editor that records its incoming messages in order.
type fakeEditor struct {
	t    *testing.T
	o    *fixture
	in   *io.PipeWriter
	done chan error
	last int

	mu      sync.Mutex // protects the fields below
	got     []received
	methods map[string]string // methods of its requests, by id
	fresh   chan struct{}
}

// received is an incoming message of an editor.
type received struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (o *fixture) editor(capabilities string) *fakeEditor {
	o.t.Helper()
	p := o.plainEditor()
	p.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`)
	return p
}

func (o *fixture) plainEditor() *fakeEditor {
	o.t.Helper()
	host, err := url.Parse(o.server.URL)
	if err != nil {
		o.t.Fatal(err)
	}
	in, write := io.Pipe()
	read, out := io.Pipe()
	p := &fakeEditor{t: o.t, o: o, in: write, done: make(chan error, 1), fresh: make(chan struct{}), methods: map[string]string{}}
	calls := &http.Transport{}
	cfg := Config{
		HTTP: &http.Client{Transport: to{host.Host, calls}}, Agent: cmp.Or(o.agent, agents.Demo), Version: "test", Self: "/deskhand", Args: []string{"acp"}, Login: []string{"--login"},
		Tell: func(text string) { o.t.Log("told:", text) },
	}
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			var m received
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				o.t.Errorf("not JSON: %s", lines.Text())
			}
			p.mu.Lock()
			m.check(o.t, p.methods[string(m.ID)])
			p.got = append(p.got, m)
			close(p.fresh)
			p.fresh = make(chan struct{})
			p.mu.Unlock()
		}
	}()
	go func() {
		err := Serve(context.Background(), cfg, in, out)
		_ = out.Close()
		<-listening
		calls.CloseIdleConnections()
		p.done <- err
	}()
	o.t.Cleanup(func() { p.hangUp() })
	return p
}

// hangUp ends the editor.
func (p *fakeEditor) hangUp() {
	p.t.Helper()
	if p.in == nil {
		return
	}
	_ = p.in.Close()
	p.in = nil
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Error(err)
		}
	case <-time.After(testkit.Limit):
		p.t.Fatal("it does not end with its editor")
	}
}

func (p *fakeEditor) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// send sends a request and returns the request's id.
func (p *fakeEditor) send(method, params string) string {
	p.t.Helper()
	p.last++
	id := fmt.Sprintf(`"q%d"`, p.last)
	p.mu.Lock()
	p.methods[id] = method
	p.mu.Unlock()
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// until waits for a message.
func (p *fakeEditor) until(what string, is func(received) bool) received {
	p.t.Helper()
	late := time.After(testkit.Limit)
	for {
		p.mu.Lock()
		i := slices.IndexFunc(p.got, is)
		fresh := p.fresh
		var m received
		if i >= 0 {
			m = p.got[i]
		}
		p.mu.Unlock()
		if i >= 0 {
			return m
		}
		select {
		case <-fresh:
		case <-late:
			p.t.Fatalf("no %s", what)
		}
	}
}

// answer waits for the answer to a request.
func (p *fakeEditor) answer(id string) received {
	p.t.Helper()
	return p.until("answer to "+id, func(m received) bool { return m.Method == "" && string(m.ID) == id })
}

func (p *fakeEditor) call(method, params string) json.RawMessage {
	p.t.Helper()
	m := p.answer(p.send(method, params))
	if m.Error != nil {
		p.t.Fatalf("%s: got m.Error.Code %d, m.Error.Message %s, want Error nil", method, m.Error.Code, m.Error.Message)
	}
	return m.Result
}

// begin creates a session and returns the session's id.
func (p *fakeEditor) begin() string {
	p.t.Helper()
	return idIn(p.t, p.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, p.o.work)))
}

func idIn(t *testing.T, result json.RawMessage) string {
	t.Helper()
	var r struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(result, &r) != nil || r.SessionID == "" {
		t.Fatalf("no session in %s", result)
	}
	return r.SessionID
}

// prompt sends words and returns the request's id.
func (p *fakeEditor) prompt(session, words string) string {
	p.t.Helper()
	return p.send("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, words))
}

// said is the text of all updates of a kind.
func (p *fakeEditor) said(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text strings.Builder
	for _, m := range p.got {
		var u struct {
			Update struct {
				Kind    string                `json:"sessionUpdate"`
				Content struct{ Text string } `json:"content"`
			}
		}
		if json.Unmarshal(m.Params, &u) == nil && u.Update.Kind == kind {
			text.WriteString(u.Update.Content.Text)
		}
	}
	return text.String()
}
