package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/httpapi"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// elsewhere is a remote runtime behind a connection that can be broken.
type elsewhere struct {
	t      *testing.T
	set    *proxy.Set
	agents *agents.Catalogue
	server *httptest.Server
	line   *line
	token  atomic.Pointer[string]
	stop   func()

	prompts     atomic.Int32 // number of prompts that have come
	unconfirmed atomic.Bool  // prompts are taken, and their confirmations are lost
	endless     atomic.Bool  // the gateway ends no agent
}

const placeToken = "the-token-of-the-runtime-elsewhere"

// runtimeElsewhere starts a runtime; logBytes limits the messages that it holds of each agent.
func runtimeElsewhere(t *testing.T, logBytes int64) *elsewhere {
	t.Helper()
	e := &elsewhere{t: t}
	e.setToken(placeToken)
	e.begin(logBytes)
	e.line = newLine(t, e.server.Listener.Addr().String())
	return e
}

func (e *elsewhere) setToken(token string) { e.token.Store(&token) }

// begin starts the runtime; a second call starts one that knows nothing of the first.
func (e *elsewhere) begin(logBytes int64) {
	t := e.t
	t.Helper()
	var err error
	if e.set, err = proxy.Open(proxy.Config{LogBytes: logBytes}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	custom(t, dir, map[string]string{"deaf": deafAgent, "mute": muteAgent})
	e.agents = agents.Open(agents.Config{
		Self: agenttest.Program(t), File: filepath.Join(dir, "agents.json"), Environ: append(os.Environ(), "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo")),
	})
	api, err := httpapi.New(httpapi.Config{Version: "9.9.9", Runtime: e.set, Agents: e.agents, RuntimeToken: placeToken, Roots: []string{"/"}, AllowHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inner := api.Loopback(listener.Addr())
	e.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+*e.token.Load() { // the test's token is replaced by the runtime's
			r.Header.Set("Authorization", "Bearer "+placeToken)
		} else {
			r.Header.Set("Authorization", "Bearer wrong")
		}
		if r.Method == http.MethodDelete && e.endless.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.Host = listener.Addr().String() // the connection has an address of its own
		if body, err := io.ReadAll(r.Body); err == nil {
			if r.Body = io.NopCloser(bytes.NewReader(body)); bytes.Contains(body, []byte(`"session/prompt"`)) {
				e.prompts.Add(1)
				if e.unconfirmed.Load() {
					inner.ServeHTTP(httptest.NewRecorder(), r)
					<-r.Context().Done()
					return
				}
			}
		}
		inner.ServeHTTP(w, r)
	}))
	_ = e.server.Listener.Close()
	e.server.Listener = listener
	e.server.Start()
	var once sync.Once
	e.stop = func() {
		once.Do(func() {
			if err := errors.Join(e.set.Close(), e.agents.Close()); err != nil {
				t.Error(err)
			}
			e.server.CloseClientConnections()
			e.server.Close()
		})
	}
	t.Cleanup(e.stop)
}

// instances returns how many agents run.
func (e *elsewhere) instances() int {
	n := 0
	for _, s := range e.set.List() {
		if s.Phase == proxy.Running {
			n++
		}
	}
	return n
}

// line is a TCP connection that can be cut, held up and refused.
type line struct {
	t        *testing.T
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex // protects the fields below
	to    string
	down  bool
	held  chan struct{} // closed when bytes flow; nil while they flow
	deaf  bool          // only bytes to the client are held
	conns map[net.Conn]struct{}
	cutAt int64 // every connection is cut after so many more bytes to the client; 0 = never
	more  int   // how often it is cut again
	cuts  int   // how often it was cut
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, listener: listener, to: to, conns: map[net.Conn]struct{}{}}
	l.wg.Go(l.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		l.flow()
		l.cut()
		l.wg.Wait()
	})
	return l
}

func (l *line) url() string { return "http://" + l.listener.Addr().String() }

func (l *line) serve() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		to, down := l.to, l.down
		l.mu.Unlock()
		if down {
			_ = c.Close()
			continue
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = c.Close()
			continue
		}
		l.mu.Lock()
		l.conns[c], l.conns[out] = struct{}{}, struct{}{}
		l.mu.Unlock()
		l.wg.Go(func() { l.copy(out, c, false) })
		l.wg.Go(func() { l.copy(c, out, true) })
	}
}

func (l *line) copy(to, from net.Conn, toClient bool) {
	defer func() {
		_, _ = to.Close(), from.Close()
		l.mu.Lock()
		delete(l.conns, to)
		delete(l.conns, from)
		l.mu.Unlock()
	}()
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		held, deaf, cut := l.held, l.deaf, false
		if toClient && l.cutAt > 0 {
			if l.cutAt -= int64(n); l.cutAt <= 0 {
				n, cut, l.cutAt = n/2, true, 0 // in the middle of a frame
				l.cuts++
				if l.more > 0 {
					l.more, l.cutAt = l.more-1, cutAgain
				}
			}
		}
		l.mu.Unlock()
		if held != nil && (toClient || !deaf) {
			<-held
		}
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			return
		}
		if cut {
			l.cut()
			return
		}
	}
}

// cut breaks every connection.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// cutAgain is the number of bytes between two cuts.
const cutAgain = 60_000

func (l *line) cutAfter(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cutAt = bytes
}

func (l *line) set(down bool) {
	l.mu.Lock()
	l.down = down
	l.mu.Unlock()
	if down {
		l.cut()
	}
}

// hold stops all bytes until flow is called; the connections stay open.
func (l *line) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

// deafen is hold for bytes to the client.
func (l *line) deafen() {
	l.hold()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = true
}

func (l *line) flow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		close(l.held)
		l.held, l.deaf = nil, false
	}
}

// idleElsewhere makes a conversation whose agent runs at a place and is idle.
func idleElsewhere(t *testing.T, dir string) (*elsewhere, *desk, session.Session) {
	t.Helper()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, dir)
	s := d.createAt(d.addPlace(e, placeToken).ID)
	d.idle(s.ID)
	return e, d, s
}

// deskWithPlaces is a desk that can have places.
func deskWithPlaces(t *testing.T, dir string) *desk {
	t.Helper()
	return deskWithPlacesAnd(t, dir, 0)
}

// deskWithPlacesAnd is deskWithPlaces with another time to undo a deletion.
func deskWithPlacesAnd(t *testing.T, dir string, undo time.Duration) *desk {
	t.Helper()
	return openAs(t, dir, proxy.Config{}, session.Config{
		Undo:   undo,
		Logger: slog.New(slog.NewTextHandler(logTo{t}, nil)),
	})
}

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	if testing.Verbose() {
		l.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func (d *desk) addPlace(e *elsewhere, token string) remotes.Place {
	d.t.Helper()
	p, err := d.remotes.Add(d.t.Context(), remotes.NewPlace{Name: "Sandbox", URL: e.line.url(), Token: token})
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

func (d *desk) createAt(place string) session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "mock", Cwd: d.work, Place: place})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func dividersOf(t session.Transcript) []string {
	var list []string
	for _, e := range t.Items {
		if e.Divider != nil {
			list = append(list, e.Divider.Code)
		}
	}
	return list
}

func TestRemoteSessionFromPromptToEnd(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	p := d.addPlace(e, placeToken)
	if p.State != "ready" || p.Software != "Deskhand" || p.Version != "9.9.9" {
		t.Fatalf("Add: got place %+v, want it ready, Deskhand 9.9.9", p)
	}
	s := d.createAt(p.ID)
	d.prompt(s.ID, "please write a note")
	r := d.request(s.ID)
	if n := e.instances(); n != 1 {
		t.Fatalf("instances at the place: got %d, want 1", n)
	}
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	tr := d.idle(s.ID)
	if turn := lastTurn(tr); turn.StopReason != "end_turn" || find(tr, "tool") == nil {
		t.Fatalf("last turn: got %+v, want end_turn with a tool call", turn)
	}
	if got := d.get(s.ID); got.Place != p.ID || got.Line != nil || got.Workspace.Missing {
		t.Fatalf("session at place %s: got %+v, want its place, no broken line, a directory that is there", p.ID, got)
	}
	if len(d.set.List()) != 0 {
		t.Error("an agent runs here")
	}
	d.sameAsRebuilt(s.ID)
	_, err := d.remotes.Remove(t.Context(), p.ID)
	refused(t, err, "place.used")
	d.close()
	if n := e.instances(); n != 0 {
		t.Errorf("%d instances are left there", n)
	}
	for _, dir := range []string{d.dir} {
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || entry.Name() == "place-tokens.json" {
				return err
			}
			if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(placeToken)) {
				t.Errorf("the token is in %s", path)
			}
			return nil
		})
	}
}

// numbered returns the numbers of the burst that are in the journal.
func (d *desk) numbered(id string) []string {
	var list []string
	for dir, data := range d.journal(id) {
		if dir != "in" {
			continue
		}
		var m struct {
			Params struct {
				Update struct {
					SessionUpdate string `json:"sessionUpdate"`
					Content       struct {
						Text string `json:"text"`
					} `json:"content"`
				} `json:"update"`
			} `json:"params"`
		}
		if json.Unmarshal(data, &m) == nil && m.Params.Update.SessionUpdate == "agent_message_chunk" {
			list = append(list, strings.TrimSpace(m.Params.Update.Content.Text))
		}
	}
	return list
}

// Ten thousand updates come once each and in order over a connection that is cut twenty times, mostly in the middle of a frame.
func TestRemoteLineThatIsCutLosesNothing(t *testing.T) {
	t.Parallel()
	plain := open(t, t.TempDir())
	s := plain.create()
	plain.prompt(s.ID, "burst")
	plain.idle(s.ID)
	want := plain.numbered(s.ID)
	if len(want) < 10_000 {
		t.Fatalf("the burst has %d updates", len(want))
	}
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	s = d.createAt(d.addPlace(e, placeToken).ID)
	d.idle(s.ID)
	e.line.mu.Lock()
	e.line.cutAt, e.line.more = 10_000, 20
	e.line.mu.Unlock()
	d.prompt(s.ID, "burst")
	d.idle(s.ID)
	e.line.mu.Lock()
	cuts := e.line.cuts
	e.line.mu.Unlock()
	have := d.numbered(s.ID)
	if !slices.Equal(have, want) {
		t.Fatalf("updates over a cut line: got %d, want all %d in order", len(have), len(want))
	}
	wantStop(t, d.transcript(s.ID), "end_turn")
	t.Logf("%d cuts", cuts)
	if cuts < 20 {
		t.Errorf("only %d cuts", cuts)
	}
}

func (d *desk) lineIs(id, state string) {
	d.t.Helper()
	d.until("line "+state, func() bool {
		l := d.get(id).Line
		return state == "" && l == nil || l != nil && l.State == state
	})
}

// A prompt that is sent while the connection is broken waits, and reaches the agent once.
func TestRemotePromptWaitsForLine(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	p := d.addPlace(e, placeToken)
	s := d.createAt(p.ID)
	d.idle(s.ID)
	e.line.set(true)
	d.lineIs(s.ID, "broken")
	if got := d.remotes.List(); got[1].State != "unreachable" {
		t.Errorf("List with a broken line: got %+v, want the place unreachable", got)
	}
	d.prompt(s.ID, "echo Hello there")
	if d.get(s.ID).Phase != lifecycle.Working {
		t.Errorf("phase after a prompt into a broken line: got %s, want working", d.get(s.ID).Phase)
	}
	e.line.set(false)
	d.idle(s.ID)
	d.lineIs(s.ID, "")
	tr := d.transcript(s.ID)
	wantStop(t, tr, "end_turn")
	if n := strings.Count(textOf(tr, "agent"), "Hello there"); n != 1 {
		t.Errorf("echoes: got %d in %q, want 1", n, textOf(tr, "agent"))
	}
	if got := d.remotes.List(); got[1].State != "ready" {
		t.Errorf("List with the line back: got %+v, want the place ready", got)
	}
}

// A connection over which no bytes come, although it is open, is noticed and made anew.
func TestRemoteLineThatStallsIsMadeAnew(t *testing.T) {
	t.Parallel()
	e, d, s := idleElsewhere(t, t.TempDir())
	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	e.line.hold()
	d.lineIs(s.ID, "broken")
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	e.line.flow()
	tr := d.idle(s.ID)
	wantStop(t, tr, "end_turn")
}

// Messages that the runtime no longer holds are told as a gap, and the conversation goes on.
func TestRemoteGapIsShown(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 64<<10)
	d := deskWithPlaces(t, t.TempDir())
	s := d.createAt(d.addPlace(e, placeToken).ID)
	d.idle(s.ID)
	e.line.cutAfter(4 << 10)
	d.prompt(s.ID, "burst")
	d.until("cut", func() bool {
		e.line.mu.Lock()
		defer e.line.mu.Unlock()
		return e.line.cutAt == 0
	})
	e.line.set(true) // also breaks a connection that was made anew meanwhile, over which nothing would be lost
	for range 3000 { // until the burst is over, unread
		if list := e.set.List(); len(list) == 1 && e.seen(list[0].ServerID) > 10_000 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	e.line.set(false)
	tr := d.idle(s.ID)
	if !slices.Contains(dividersOf(tr), "messages.missing") || lastTurn(tr).StopReason != "end_turn" {
		t.Fatalf("after a gap: got dividers %v, last turn %+v; want messages.missing and end_turn", dividersOf(tr), lastTurn(tr))
	}
	if n := len(d.numbered(s.ID)); n >= 10_000 {
		t.Errorf("nothing is missing: %d", n)
	}
	d.sameAsRebuilt(s.ID)
}

// seen returns the number of the newest message of an instance.
func (e *elsewhere) seen(id string) uint64 {
	r, err := e.set.Reader(e.t.Context(), id, 0)
	if err != nil {
		return 0
	}
	defer r.Close()
	last := uint64(0)
	for {
		batch, _, err := r.Poll()
		if err != nil || len(batch) == 0 {
			return last
		}
		last = batch[len(batch)-1].Seq
	}
}

// A runtime that was started anew has lost the agent, which the session shows; the next start opens the session again.
func TestRemoteRuntimeRestartIsTold(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	s := d.createAt(d.addPlace(e, placeToken).ID)
	d.prompt(s.ID, "echo first")
	d.idle(s.ID)
	d.prompt(s.ID, "permission")
	d.request(s.ID)
	e.line.set(true)
	e.restarted()
	tr := d.idle(s.ID)
	wantStop(t, tr, "agent_exited")
	if got := d.get(s.ID); got.Phase != lifecycle.Closed || got.Exit == nil || got.Exit.Problem != "place.gone" || got.Draft != "" { // the agent had the prompt, whose work may be done
		t.Fatalf("after the runtime was started anew: got %s, exit %+v, draft %q; want closed, place.gone, no draft", got.Phase, got.Exit, got.Draft)
	}
	d.prompt(s.ID, "echo again")
	tr = d.idle(s.ID)
	if !strings.Contains(textOf(tr, "agent"), "again") || lastTurn(tr).StopReason != "end_turn" {
		t.Fatalf("next prompt: got %q, last turn %+v; want the echo of again and end_turn", textOf(tr, "agent"), lastTurn(tr))
	}
}

// muteAgent makes a session, and answers no resume.
const muteAgent = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}}'
	read l; case $l in *'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}' ;; esac; cat >/dev/null`

// The loss of the runtime while an agent resumes its session is no failure of that session, which is tried again.
func TestRemoteRuntimeLossKeepsACPSession(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	s, err := d.Create(t.Context(), session.New{Agent: "mute", Cwd: d.work, Place: d.addPlace(e, placeToken).ID})
	if err != nil {
		t.Fatal(err)
	}
	d.isReady(s.ID)
	for n := range 3 {
		if err := d.Restart(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		d.until("session/resume", func() bool { return d.wrote(s.ID, `"session/resume"`) == n+1 })
		e.line.set(true)
		e.restarted()
		d.until("end", func() bool {
			now := d.get(s.ID)
			return now.Phase == lifecycle.Closed && now.Exit != nil && now.Exit.Problem == "place.gone"
		})
	}
}

// restarted replaces the runtime by another one at the same address, which knows none of the agents.
func (e *elsewhere) restarted() {
	e.t.Helper()
	e.stop()
	e.begin(0)
	e.line.mu.Lock()
	e.line.to = e.server.Listener.Addr().String()
	e.line.mu.Unlock()
	e.line.set(false)
}

// A prompt that waits for a connection becomes the draft again when its agent never gets it.
func TestRemotePromptThatNeverLeavesIsDraft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		reason, problem string
		how             func(e *elsewhere, d *desk, id string, again func() *desk) *desk
	}{
		"the runtime is restarted": {"agent_exited", "place.gone", func(e *elsewhere, d *desk, _ string, _ func() *desk) *desk {
			e.restarted()
			return d
		}},
		"both are restarted": {"agent_exited", "place.gone", func(e *elsewhere, d *desk, _ string, again func() *desk) *desk {
			d.close()
			e.restarted()
			return again()
		}},
		"it is stopped": {"cancelled", "place.unended", func(_ *elsewhere, d *desk, id string, _ func() *desk) *desk {
			if err := d.Cancel(d.t.Context(), id); err != nil {
				d.t.Fatal(err)
			}
			return d
		}},
		"it is started anew": {"interrupted", "", func(e *elsewhere, d *desk, id string, _ func() *desk) *desk {
			if err := d.Restart(d.t.Context(), id); err != nil {
				d.t.Fatal(err)
			}
			e.line.set(false) // and the conversation before has ended
			return d
		}},
		"it is deleted, and restored": {"cancelled", "", func(e *elsewhere, d *desk, id string, _ func() *desk) *desk {
			d.delete(id)
			e.line.set(false)
			d.restore(id)
			return d
		}},
		"the program ends while it is being stopped": {"cancelled", "", func(_ *elsewhere, d *desk, id string, again func() *desk) *desk {
			if err := d.Cancel(d.t.Context(), id); err != nil {
				d.t.Fatal(err)
			}
			d.close()
			return again()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := runtimeElsewhere(t, 0)
			dir := t.TempDir()
			d := deskWithPlacesAnd(t, dir, time.Minute)
			s := d.createAt(d.addPlace(e, placeToken).ID)
			d.prompt(s.ID, "echo first")
			d.idle(s.ID)
			if draft := d.get(s.ID).Draft; draft != "" {
				t.Fatalf("the draft is %q", draft)
			}
			e.line.set(true)
			d.lineIs(s.ID, "broken")
			if err := d.SetConfig(t.Context(), s.ID, "mode", json.RawMessage(`"plan"`)); err != nil { // so that the prompt waits behind a request
				t.Fatalf("SetConfig(mode, plan): got %v with options %+v, want it taken", err, d.get(s.ID).ConfigOptions)
			}
			d.prompt(s.ID, "echo Hello there")
			d = end.how(e, d, s.ID, func() *desk { return deskWithPlacesAnd(t, dir, time.Minute) })
			tr := d.idle(s.ID)
			turn, now := lastTurn(tr), d.get(s.ID)
			if turn.StopReason != end.reason || end.problem != "" && (now.Exit == nil || now.Exit.Problem != end.problem) {
				t.Errorf("prompt that never left: got turn %+v, exit %+v; want %s and problem %q", turn, now.Exit, end.reason, end.problem)
			}
			if now.Draft != "echo Hello there" {
				t.Errorf("the draft is %q", now.Draft)
			}
			if doubted := strings.Contains(string(mustJSON(t, tr)), "not known whether"); doubted != (name == "both are restarted") {
				t.Errorf("it is doubted: %v", doubted)
			}
			d.sameAsRebuilt(s.ID)
			d.close()
			if n := e.prompts.Load(); n != 1 && end.problem != "place.gone" { // the runtime refuses the prompt too
				t.Errorf("%d prompts have come", n)
			}
		})
	}
}

// A prompt that may have arrived becomes the draft again, with a notice; a prompt that the agent works on does not.
func TestRemotePromptThatMayHaveArrivedIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prompt string
		begun  bool
		draft  string
	}{
		"nothing is heard of it": {"echo Hello there", false, "echo Hello there"},
		"the agent is at it":     {"permission", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, d, s := idleElsewhere(t, t.TempDir())
			before := e.seen(s.ID + ".1")
			if c.begun {
				e.unconfirmed.Store(true)
			} else {
				e.line.deafen()
			}
			d.prompt(s.ID, c.prompt)
			d.until("answer", func() bool { return e.seen(s.ID+".1") > before+1 })
			if c.begun {
				d.request(s.ID)
				e.line.set(true)
			}
			if err := d.Cancel(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			tr := d.idle(s.ID)
			if got := d.get(s.ID); lastTurn(tr).StopReason != "cancelled" || got.Draft != c.draft {
				t.Errorf("%+v, the draft is %q", lastTurn(tr), got.Draft)
			}
			if doubted := strings.Contains(string(mustJSON(t, tr)), "not known whether"); doubted == c.begun {
				t.Errorf("it is doubted: %v", doubted)
			}
			e.line.set(false)
			e.line.flow()
			e.unconfirmed.Store(false)
		})
	}
}

// A prompt whose arrival was not confirmed is not sent again by the next start, whose connection brings the answer.
func TestRemotePromptIsNotSentAgainByNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, d, s := idleElsewhere(t, dir)
	before := e.seen(s.ID + ".1")
	e.line.deafen()
	d.prompt(s.ID, "echo Hello there")
	d.until("answer", func() bool { return e.seen(s.ID+".1") > before+1 })
	d.close()
	e.line.cut() // the bytes held for the run before reach nobody
	e.line.flow()
	d = deskWithPlaces(t, dir)
	tr := d.idle(s.ID)
	if turn := lastTurn(tr); turn.StopReason != "end_turn" || strings.Count(textOf(tr, "agent"), "Hello there") != 1 {
		t.Errorf("after the next start: got turn %+v, text %q; want end_turn and one echo", turn, textOf(tr, "agent"))
	}
	d.close() // waits for the messages that are being sent
	if n := e.prompts.Load(); n != 1 {
		t.Errorf("the agent got it %d times", n)
	}
}

// A remote agent that has closed its input is ended, like one on this machine.
func TestRemoteAgentWithClosedInputIsEnded(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	s, err := d.Create(t.Context(), session.New{Agent: "deaf", Cwd: d.work, Place: d.addPlace(e, placeToken).ID})
	if err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "hello")
	wantStop(t, d.idle(s.ID), "agent_exited")
	d.until("end", func() bool { return e.instances() == 0 && d.get(s.ID).Phase == lifecycle.Closed })
}

func TestRemoteTokenIsRefusedAndChanged(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	p := d.addPlace(e, "some-wrong-token")
	if p.State != "refused" {
		t.Fatalf("Add with a wrong token: got %+v, want it refused", p)
	}
	s := d.createAt(p.ID)
	d.until("failure", func() bool { return d.get(s.ID).Exit != nil })
	if exit := d.get(s.ID).Exit; exit.Problem != "place.refused" || strings.Contains(exit.Params["detail"], "wrong") {
		t.Fatalf("exit: got %+v, want place.refused without the token", exit)
	}
	right := placeToken
	if p, err := d.remotes.Change(t.Context(), p.ID, remotes.PlacePatch{Token: &right}); err != nil || p.State != "ready" {
		t.Fatalf("Change to the right token: got %+v, %v; want the place ready", p, err)
	}
	d.prompt(s.ID, "echo now")
	d.idle(s.ID)

	// The token is revoked in the middle of a session, which the session shows; with a new token it goes on.
	e.setToken("another-token-of-the-runtime")
	d.prompt(s.ID, "echo later")
	d.lineIs(s.ID, "refused")
	next := "another-token-of-the-runtime"
	if _, err := d.remotes.Change(t.Context(), p.ID, remotes.PlacePatch{Token: &next}); err != nil {
		t.Fatal(err)
	}
	tr := d.idle(s.ID)
	d.lineIs(s.ID, "")
	if !strings.Contains(textOf(tr, "agent"), "later") {
		t.Fatalf("prompt sent while the token was refused: got %q, want the echo of later", textOf(tr, "agent"))
	}
}

// A token belongs to the address that it was entered for: another host does not get it, and agents at the old address keep it.
func TestRemoteTokenGoesToNoOtherHost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer other.Close()
	d := deskWithPlaces(t, t.TempDir())
	p := d.addPlace(runtimeElsewhere(t, 0), placeToken)
	s := d.createAt(p.ID)
	d.idle(s.ID)
	_, err := d.remotes.Change(t.Context(), p.ID, remotes.PlacePatch{URL: &other.URL})
	refused(t, err, "place.token")
	another := "the-token-of-another-runtime"
	if p, err := d.remotes.Change(t.Context(), p.ID, remotes.PlacePatch{URL: &other.URL, Token: &another}); err != nil || p.URL != other.URL {
		t.Fatalf("Change of address and token: got %+v, %v; want URL %s", p, err, other.URL)
	}
	d.prompt(s.ID, "echo still here")
	if tr := d.idle(s.ID); !strings.Contains(textOf(tr, "agent"), "still here") {
		t.Errorf("prompt to the old address: got %q, want the echo of still here", textOf(tr, "agent"))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 || slices.ContainsFunc(seen, func(got string) bool { return got != "Bearer "+another }) {
		t.Errorf("tokens at the new address: got %q, want only Bearer %s", seen, another)
	}
}

// A remote agent runs on while the program is away, and its request is answered after. The same holds for a turn whose prompt started the
// agent, and which therefore began before the agent's generation.
func TestRemoteAgentOutlivesProgram(t *testing.T) {
	for name, how := range map[string]struct{ killed, woken bool }{
		"closed": {}, "killed": {killed: true}, "woken and closed": {woken: true}, "woken and killed": {killed: true, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := runtimeElsewhere(t, 0)
			dir := t.TempDir()
			d := deskWithPlaces(t, dir)
			s := d.createAt(d.addPlace(e, placeToken).ID)
			if how.woken {
				d.prompt(s.ID, "echo before")
				d.idle(s.ID)
				d.close() // no turn runs, so the agent ends with the program
				if n := e.instances(); n != 0 {
					t.Fatalf("%d instances run there", n)
				}
				d = deskWithPlaces(t, dir)
			}
			d.prompt(s.ID, "permission")
			r := d.request(s.ID)
			copied := filepath.Join(t.TempDir(), "copy")
			if how.killed { // a copy of the directory, as after a kill at this moment
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				e.line.set(true) // the first program can send nothing more
				dir = copied
			}
			d.close()
			e.line.set(false)
			if n := e.instances(); n != 1 {
				t.Fatalf("instances at the place: got %d, want 1", n)
			}
			d = deskWithPlaces(t, dir)
			if got := d.get(s.ID); got.Turn == nil || got.Phase != lifecycle.Waiting {
				t.Fatalf("session after the program's restart: got %s, turn %+v; want it waiting in its turn", got.Phase, got.Turn)
			}
			d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
			tr := d.idle(s.ID)
			if turn := lastTurn(tr); turn.StopReason != "end_turn" || turn.ID != r.Turn {
				t.Fatalf("last turn: got %+v, want %s ended with end_turn", turn, r.Turn)
			}
			if !slices.Contains(dividersOf(tr), "agent.taken_up") || slices.Contains(dividersOf(tr), "app.interrupted") {
				t.Errorf("dividers: got %v, want agent.taken_up and no app.interrupted", dividersOf(tr))
			}
			d.prompt(s.ID, "echo and on")
			if tr = d.idle(s.ID); !strings.Contains(textOf(tr, "agent"), "and on") {
				t.Errorf("prompt after the restart: got %q, want the echo of and on", textOf(tr, "agent"))
			}
			d.sameAsRebuilt(s.ID)
			d.close()
			if n := e.instances(); n != 0 {
				t.Errorf("%d instances are left there", n)
			}
		})
	}
}

// Messages that were not sent before the program ended are in the journal without their secrets, and are never sent to the agent in that
// form.
func TestRemoteSecretsThatWereNotSentAreRedacted(t *testing.T) {
	t.Parallel()
	const key = "sk-0123456789abcdefghij"
	for name, story := range map[string]func(t *testing.T, d *desk, id string, again func() *desk){
		"prompt": func(t *testing.T, d *desk, id string, again func() *desk) {
			t.Helper()
			d.prompt(id, "echo with "+key)
			d = again()
			tr := d.idle(id)
			wantStop(t, tr, "interrupted")
			if now := d.get(id); now.Draft != "echo with [redacted]" {
				t.Errorf("draft: got %q, want it redacted", now.Draft)
			}
			d.prompt(id, "echo with "+key+" again")
			wantStop(t, d.idle(id), "end_turn")
		},
		"answer": func(t *testing.T, d *desk, id string, again func() *desk) {
			t.Helper()
			r := d.request(id)
			form := func(name string) requests.Answer {
				return requests.Answer{Action: "accept", Content: json.RawMessage(`{"name":"` + name + `","size":"small","features":["cli"]}`)}
			}
			d.answer(r, form(key))
			d = again()
			if now := d.request(id); now.ID != r.ID || now.Status != "requested" || now.Answer != nil || now.AnsweredBy != "" {
				t.Errorf("request after the restart: got %+v, want %s open, without an answer", now, r.ID)
			}
			if now := d.get(id); now.Phase != lifecycle.Waiting || now.Turn == nil {
				t.Errorf("session after the restart: got %s, turn %+v; want it waiting in a turn", now.Phase, now.Turn)
			}
			d.answer(r, form("plain"))
			tr := d.idle(id)
			if turn := lastTurn(tr); turn.StopReason != "end_turn" || !strings.Contains(textOf(tr, "agent"), "plain") {
				t.Errorf("after the second answer: got turn %+v, text %q; want end_turn with plain", turn, textOf(tr, "agent"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			e, d, s := idleElsewhere(t, dir)
			if name == "answer" {
				d.prompt(s.ID, "form")
				d.request(s.ID)
			}
			e.line.set(true)
			d.lineIs(s.ID, "broken")
			story(t, d, s.ID, func() *desk {
				d.close()
				e.line.set(false)
				d = deskWithPlaces(t, dir)
				return d
			})
			tr := d.transcript(s.ID)
			if n := find(tr, "notice"); n == nil || !strings.Contains(n.Notice.Title, "was not sent") {
				t.Errorf("it is not told: %+v", n)
			}
			for dir, data := range d.journal(s.ID) {
				if dir == "in" && bytes.Contains(data, []byte("[redacted]")) && !bytes.Contains(data, []byte("again")) {
					t.Errorf("the agent got it without its secret: %s", data)
				}
			}
			d.sameAsRebuilt(s.ID)
		})
	}
}

// Messages that came while the program was away are read when it is back: each one, once.
func TestRemoteBurstWhileProgramIsAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, d, s := idleElsewhere(t, dir)
	e.line.cutAfter(300_000) // of about two million bytes
	d.prompt(s.ID, "burst")
	d.until("cut", func() bool {
		e.line.mu.Lock()
		defer e.line.mu.Unlock()
		e.line.down = e.line.down || e.line.cutAt == 0
		return e.line.down
	})
	d.close()
	part := e.seen(s.ID + ".1")
	e.line.set(false)
	d = deskWithPlaces(t, dir)
	tr := d.idle(s.ID)
	have := d.numbered(s.ID)
	if turn := lastTurn(tr); turn.StopReason != "end_turn" || len(have) < 10_000 || !slices.IsSorted(pad(have)) {
		t.Fatalf("%+v: %d updates, %d held", turn, len(have), part)
	}
	if once := slices.Compact(slices.Clone(have)); len(once) != len(have) {
		t.Errorf("%d came twice", len(have)-len(once))
	}
}

// pad makes texts that begin with a number sort by the number.
func pad(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.Repeat("0", max(0, 12-len(s))) + s
	}
	return out
}

// A cancel ends an agent that ignores it; when the runtime cannot be reached for that, the session shows that the agent may still work.
func TestRemoteCancelEndsAgentOrTellsThatItMayWork(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	p := d.addPlace(e, placeToken)
	s := d.createAt(p.ID)
	d.prompt(s.ID, "hang")
	d.until("words", func() bool { return strings.Count(textOf(d.transcript(s.ID), "agent"), "I hang now") == 1 })
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	tr := d.idle(s.ID)
	wantStop(t, tr, "cancelled")
	if got := dividersOf(tr); !slices.Contains(got, "turn.no_signal") || !slices.Contains(got, "turn.killed") {
		t.Errorf("dividers: got %v, want turn.no_signal and turn.killed", got)
	}
	d.until("end", func() bool { return e.instances() == 0 && d.get(s.ID).Phase == lifecycle.Closed })

	d.prompt(s.ID, "hang")
	d.until("words", func() bool { return strings.Count(textOf(d.transcript(s.ID), "agent"), "I hang now") == 2 })
	e.line.set(true)
	begun := time.Now()
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	tr = d.idle(s.ID)
	if turn := lastTurn(tr); turn.StopReason != "cancelled" || time.Since(begun) > 10*time.Second {
		t.Fatalf("Cancel without a line: got %+v after %v, want cancelled within 10s", turn, time.Since(begun))
	}
	if exit := d.get(s.ID).Exit; exit == nil || exit.Problem != "place.unended" {
		t.Errorf("exit: got %+v, want problem place.unended", exit)
	}
	if e.instances() != 1 {
		t.Errorf("%d run there", e.instances())
	}
	e.line.set(false)
	d.prompt(s.ID, "echo back again") // the start ends the agent that was left
	d.idle(s.ID)
	if e.instances() != 1 {
		t.Errorf("%d run there", e.instances())
	}
}

// An agent that could not be ended is ended by the next start, even when its session has been deleted.
func TestRemoteAgentThatIsLeftIsEndedLater(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(t *testing.T, e *elsewhere, d *desk, id string){
		"it is deleted": func(t *testing.T, e *elsewhere, d *desk, id string) {
			t.Helper()
			e.line.set(true)
			d.lineIs(id, "broken")
			if err := d.Erase(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		},
		"another is started": func(t *testing.T, e *elsewhere, d *desk, id string) {
			t.Helper()
			e.endless.Store(true)
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.idle(id)
			d.prompt(id, "echo back again")
			d.idle(id)
			if n := e.instances(); n != 2 {
				t.Fatalf("%d run there", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := runtimeElsewhere(t, 0)
			dir := t.TempDir()
			d := deskWithPlaces(t, dir)
			id := d.createAt(d.addPlace(e, placeToken).ID).ID
			d.prompt(id, "hang")
			d.until("words", func() bool { return strings.Contains(textOf(d.transcript(id), "agent"), "I hang now") })
			how(t, e, d, id)
			e.endless.Store(false)
			d.close()
			e.line.set(false)
			if n := e.instances(); n != 1 {
				t.Fatalf("%d run there", n)
			}
			d = deskWithPlaces(t, dir)
			d.until("end", func() bool { return e.instances() == 0 })
			d.until("end of the search", func() bool {
				n, err := d.left()
				if err != nil {
					t.Fatal(err)
				}
				return n == 0
			})
		})
	}
}

// left returns how many remote agents are stored as running without a conversation.
func (d *desk) left() (n int, err error) {
	err = d.db.Read().QueryRow(`SELECT (SELECT count(*) FROM session WHERE line <> '') + (SELECT count(*) FROM stray)`).Scan(&n)
	return n, err
}

// A place of archived and deleted sessions only can be removed. Its agents end before its token is forgotten. When the place cannot be
// reached, the result tells how many agents are left, and no later start looks for them.
func TestRemovePlaceEndsItsAgents(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]bool{"it is there": false, "it cannot be reached": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := runtimeElsewhere(t, 0)
			dir := t.TempDir()
			d := deskWithPlacesAnd(t, dir, time.Minute)
			p := d.addPlace(e, placeToken)
			archived, deleted := d.createAt(p.ID).ID, d.createAt(p.ID).ID
			d.idle(deleted)
			d.prompt(archived, "permission")
			d.request(archived)
			_, err := d.remotes.Remove(t.Context(), p.ID)
			refused(t, err, "place.used")
			if _, err := d.Change(t.Context(), archived, session.Patch{Archived: new(true)}); err != nil {
				t.Fatal(err)
			}
			if n := e.instances(); n != 2 {
				t.Fatalf("%d agents run there", n)
			}
			left := 0
			if broken {
				e.line.set(true)
				d.lineIs(archived, "broken")
				left = 2
			}
			if err := d.Delete(t.Context(), deleted); err != nil {
				t.Fatal(err)
			}
			gone, err := d.remotes.Remove(t.Context(), p.ID)
			if err != nil || gone.ID != p.ID || gone.Left != left || e.instances() != left {
				t.Errorf("Remove(%s): got %+v, %v with %d agents there; want %d left", p.ID, gone, err, e.instances(), left)
			}
			if len(d.remotes.List()) != 1 {
				t.Errorf("List after Remove: got %+v, want this machine alone", d.remotes.List())
			}
			tr := d.idle(archived)
			if turn, now := lastTurn(tr), d.get(archived); turn.StopReason != "interrupted" || now.Phase != lifecycle.Closed {
				t.Errorf("archived session: got turn %+v, %s; want interrupted and closed", turn, now.Phase)
			}
			d.close()
			d = deskWithPlacesAnd(t, dir, time.Minute)
			d.until("end of the search", func() bool {
				n, err := d.left()
				if err != nil {
					t.Fatal(err)
				}
				return n == 0
			})
		})
	}
}

func TestPlaceListsAgentsAndDirectories(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	p := d.addPlace(e, placeToken)
	list, err := d.remotes.Agents(t.Context(), p.ID)
	if err != nil || !slices.ContainsFunc(list, func(a remotes.PlaceAgent) bool { return a.ID == "mock" && a.Name != "" && a.Installed }) {
		t.Errorf("Agents(%s): got %+v, %v; want mock among them, installed", p.ID, list, err)
	}
	if err := os.MkdirAll(filepath.Join(d.work, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	dirs, err := d.remotes.Directories(t.Context(), p.ID, d.work)
	if err != nil || len(dirs.Items) != 1 || dirs.Items[0].Path != filepath.Join(d.work, "inner") || dirs.Parent != filepath.Dir(d.work) {
		t.Errorf("Directories(%s): got %+v, %v; want inner, and the parent", d.work, dirs, err)
	}
	if _, err = d.remotes.Directories(t.Context(), p.ID, d.work+"/none"); err == nil {
		t.Error("a directory that is not there was listed")
	}
}
