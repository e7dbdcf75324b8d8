package session_test

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/feed"
	"deskhand/backend/files"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/roster"
	"deskhand/backend/search"
	"deskhand/backend/session"
	"deskhand/backend/setup"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
)

// The test binary is the agent as well: it is the demo agent when the catalogue starts it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sleeping-desk" {
		if err := sleepingDesk(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "mcp-server" {
		mcpServer(os.Args[2:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// desk is a client on a data directory of its own, with helpers for tests.
type desk struct {
	remotes *remotes.Library
	search  *search.Index
	roster  *roster.Agents
	setups  *setup.Library
	*session.Client
	t     testing.TB
	dir   string // the data directory
	work  string // the directory in which agents work
	db    *store.DB
	set   *proxy.Set // the agents' processes
	close func()
}

// journal returns the frames of a session in order, with their directions.
func (d *desk) journal(id string) iter.Seq2[string, []byte] {
	d.t.Helper()
	type row struct {
		dir  string
		data []byte
	}
	var rows []row
	if err := d.Frames(d.t.Context(), id, func(dir string, data []byte) { rows = append(rows, row{dir, data}) }); err != nil {
		d.t.Fatal(err)
	}
	return func(yield func(string, []byte) bool) {
		for _, r := range rows {
			if !yield(r.dir, r.data) {
				return
			}
		}
	}
}

func open(tb testing.TB, dir string) *desk {
	tb.Helper()
	return openWith(tb, dir, proxy.Config{})
}

func openWith(tb testing.TB, dir string, processes proxy.Config) *desk {
	tb.Helper()
	return openAs(tb, dir, processes, session.Config{})
}

// openAs is openWith for a client of another config; fields that every client needs are filled in.
func openAs(tb testing.TB, dir string, processes proxy.Config, cfg session.Config) *desk {
	tb.Helper()
	db := storetest.Open(tb, dir)
	set, err := proxy.Open(processes)
	if err != nil {
		tb.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{
		Self: agenttest.Program(tb), File: filepath.Join(dir, "agents.json"), Vault: vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile}), WriteFile: store.WriteFile,
		Environ: append(os.Environ(), "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo")),
	})
	cfg.Store, cfg.Agents, cfg.Proxy, cfg.Version = db, catalogue, set, "test"
	cfg.Replace, cfg.Everywhere = files.Replace, filepath.Join(dir, "config")
	cfg.Patience = cmp.Or(cfg.Patience, 300*time.Millisecond)
	cfg.HoldPrompt = cmp.Or(cfg.HoldPrompt, time.Minute)
	places := remotes.Deps{Store: db, Logger: cfg.Logger, Version: cfg.Version, AgentName: catalogue.Name, Stall: 4 * time.Second} // longer than the two seconds of a runtime's "unknown instance"
	if places.Logger == nil {
		places.Logger = slog.New(slog.DiscardHandler)
	}
	places.Tokens = vault.Open(vault.Config{File: filepath.Join(dir, "place-tokens.json"), WriteFile: store.WriteFile})
	secrets := roster.NewSecrets(catalogue, []*vault.Vault{places.Tokens}, []string{"our-own-token"}, places.Logger)
	cfg.Remotes = remotes.New(places)
	cfg.Search = search.New(search.Deps{Store: db, Logger: places.Logger, AgentName: catalogue.Name})
	cfg.Roster = roster.New(roster.Deps{Catalogue: catalogue, Secrets: secrets})
	cfg.Setups = setup.New(setup.Deps{Store: db, Processes: set, Environ: catalogue.Environment().Environ, Logger: cfg.Logger})
	c, err := session.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Search.Start(tb.Context())
	d := &desk{Client: c, remotes: cfg.Remotes, search: cfg.Search, roster: cfg.Roster, setups: cfg.Setups, t: tb, dir: dir, db: db, set: set, work: filepath.Join(dir, "work")}
	if err := os.MkdirAll(d.work, 0o700); err != nil {
		tb.Fatal(err)
	}
	closed := false
	d.close = func() {
		if closed {
			return
		}
		closed = true
		stopped := c.Close()
		cfg.Search.Close()
		if err := errors.Join(stopped, catalogue.Close(), set.Close(), db.Close()); err != nil {
			tb.Error(err)
		}
	}
	tb.Cleanup(d.close)
	return d
}

func (d *desk) create() session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "mock", Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *desk) get(id string) session.Session {
	d.t.Helper()
	s, err := d.Get(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *desk) prompt(id, text string) session.Turn {
	d.t.Helper()
	turn, err := d.Prompt(d.t.Context(), id, text)
	if err != nil {
		d.t.Fatal(err)
	}
	return turn
}

// until waits for the condition, and checks it after each event.
func (d *desk) until(what string, holds func() bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), testkit.Limit)
	defer cancel()
	q := feed.Query{Gen: d.Feed().Gen(), Wait: 200 * time.Millisecond}
	for !holds() {
		batch, err := d.Feed().After(ctx, q)
		if err != nil || ctx.Err() != nil {
			d.t.Fatalf("no %s", what)
		}
		q.After = batch.Seq
	}
}

// idle waits until no turn runs, and returns the transcript.
func (d *desk) idle(id string) session.Transcript {
	d.t.Helper()
	d.until("end of the turn", func() bool {
		s := d.get(id)
		return s.Turn == nil && s.Phase != lifecycle.Starting && s.Phase != lifecycle.Replaying
	})
	return d.transcript(id)
}

func (d *desk) transcript(id string) session.Transcript {
	d.t.Helper()
	t, err := d.Transcripts().Entries(d.t.Context(), id, 0, 1000)
	if err != nil {
		d.t.Fatal(err)
	}
	return t
}

// request waits for an open request, and returns it.
func (d *desk) request(id string) requests.Request {
	d.t.Helper()
	var found requests.Request
	d.until("request", func() bool {
		list, err := d.Requests().Waiting(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(r requests.Request) bool { return r.Session == id })
		if i >= 0 {
			found = list[i]
		}
		return i >= 0 && d.get(id).Waiting > 0 // the request is stored before the session shows it
	})
	return found
}

func (d *desk) answer(r requests.Request, a requests.Answer) {
	d.t.Helper()
	if err := d.Answer(d.t.Context(), r.ID, a, "window"); err != nil {
		d.t.Fatal(err)
	}
}

func textOf(t session.Transcript, kind string) string {
	var b strings.Builder
	for _, e := range t.Items {
		if e.Kind == kind {
			b.WriteString(e.Text + "\n")
		}
	}
	return b.String()
}

func find(t session.Transcript, kind string) *transcript.Entry {
	for i := range t.Items {
		if t.Items[i].Kind == kind {
			return &t.Items[i]
		}
	}
	return nil
}

func optionOf(t *testing.T, r requests.Request, kind string) string {
	t.Helper()
	i := slices.IndexFunc(r.Options, func(o requests.Option) bool { return o.Kind == kind })
	if i < 0 {
		t.Fatalf("no option of kind %s in %+v", kind, r.Options)
	}
	return r.Options[i].ID
}

func refused(t *testing.T, err error, code string) *session.RefusedError {
	t.Helper()
	var r *session.RefusedError
	if !errors.As(err, &r) || r.Code != code {
		t.Fatalf("err = %v, want refused: %s", err, code)
	}
	return r
}

func lastTurn(t session.Transcript) session.Turn { return t.Turns[len(t.Turns)-1] }

// wantStop fails the test unless the last turn of a transcript has ended for this reason.
func wantStop(t testing.TB, tr session.Transcript, reason string) {
	t.Helper()
	if last := lastTurn(tr); last.StopReason != reason {
		t.Errorf("last turn: got %+v, want stop reason %s", last, reason)
	}
}

// sameAsRebuilt fails the test unless the stored entries are the entries that the journal folds to, with the same ids.
func (d *desk) sameAsRebuilt(id string) {
	d.t.Helper()
	want, err := d.Transcripts().Rebuild(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	slices.SortFunc(want, func(a, b transcript.Entry) int { return int(a.Seq - b.Seq) })
	have := d.transcript(id).Items
	for i := range max(len(have), len(want)) {
		var h, w []byte
		if i < len(have) {
			h, _ = json.Marshal(have[i])
		}
		if i < len(want) {
			w, _ = json.Marshal(want[i])
		}
		if string(h) != string(w) {
			d.t.Fatalf("entry %d of %d stored, %d rebuilt:\nstored  %s\nrebuilt %s", i, len(have), len(want), h, w)
		}
	}
}

func TestTurnFromPromptToEnd(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	if s.Phase != lifecycle.Starting && s.Phase != lifecycle.Ready || s.AgentName == "" {
		t.Fatalf("Create: got %+v, want it starting or ready, with the agent's name", s)
	}
	turn := d.prompt(s.ID, "please write a note\nsecond line") // the prompt is held while the agent starts
	if _, err := d.Prompt(t.Context(), s.ID, "another"); err != nil {
		refused(t, err, "turn.running")
	} else {
		t.Fatal("a second prompt was taken")
	}
	r := d.request(s.ID)
	if r.Kind != "permission" || r.Turn != turn.ID || r.Tool == nil || r.Agent == "" {
		t.Fatalf("request: got %+v, want a permission for a tool of turn %s, with the agent's name", r, turn.ID)
	}
	if s := d.get(s.ID); s.Phase != lifecycle.Waiting || s.Waiting != 1 || s.Turn.State != "requires_action" || !s.Unread {
		t.Fatalf("session with a request: got %+v, want it unread and waiting for 1, its turn in requires_action", s)
	}
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	tr := d.idle(s.ID)
	if e := find(tr, "user"); e == nil || e.Text != "please write a note\nsecond line" {
		t.Errorf("user entry %+v", e)
	}
	for _, kind := range []string{"agent", "thought", "tool", "plan", "request"} {
		if find(tr, kind) == nil {
			t.Errorf("no %s entry", kind)
		}
	}
	if last := lastTurn(tr); last.StopReason != "end_turn" || last.State != "done" || last.EndedAt == nil {
		t.Errorf("last turn: got %+v, want it done with end_turn and a time", last)
	}
	now := d.get(s.ID)
	if now.Phase != lifecycle.Ready || now.Title == "" || len(now.ConfigOptions) == 0 || len(now.Commands) == 0 || now.Usage == nil {
		t.Errorf("session after the turn: got %+v, want it ready, with title, options, commands and usage", now)
	}
	if got := tr.Requests[0]; got.Status != "answered" || got.AnsweredBy != "window" || got.ResolvedAt == nil {
		t.Errorf("request %+v", got)
	}
	late := refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "x"}, "cli"), "request.resolved")
	if late.Params["status"] != "answered" || late.Params["answeredBy"] != "window" {
		t.Errorf("a late answer is told %v", late.Params)
	}
	d.sameAsRebuilt(s.ID)
}

func TestRequestsOfEachKindAreAnswered(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()

	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "no such"}, "window"), "answer.unknown_option")
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "reject_once")})
	tr := d.idle(s.ID)
	if tr.Requests[0].Status != "rejected" {
		t.Errorf("request: got %+v, want it rejected", tr.Requests[0])
	}

	d.prompt(s.ID, "question")
	r = d.request(s.ID)
	if r.Kind != "question" || len(r.Questions) == 0 || len(r.Questions[0].Options) == 0 {
		t.Fatalf("request: got %+v, want a question with options", r)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{Answers: [][]string{{"a"}, {"b"}, {"c"}}}, "window"), "answer.count")
	chosen := r.Questions[0].Options[0].ID
	answers := make([][]string, len(r.Questions))
	for i, q := range r.Questions {
		answers[i] = []string{q.Options[0].ID}
	}
	d.answer(r, requests.Answer{Answers: answers})
	if text := textOf(d.idle(s.ID), "agent"); !strings.Contains(text, chosen) {
		t.Errorf("the agent does not tell %q: %s", chosen, text)
	}

	d.prompt(s.ID, "form")
	r = d.request(s.ID)
	if r.Kind != "form" || len(r.Schema) == 0 {
		t.Fatalf("request: got %+v, want a form with its schema", r)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{Action: "accept", Content: json.RawMessage(`[]`)}, "window"), "answer.invalid")
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{}, "window"), "answer.no_action")
	d.answer(r, requests.Answer{Action: "decline"})
	d.idle(s.ID)

	d.prompt(s.ID, "unknown request")
	r = d.request(s.ID)
	if r.Kind != "raw" || len(r.Raw) == 0 {
		t.Fatalf("request of an unknown method: got %+v, want it raw", r)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{Action: "accept"}, "window"), "answer.only_cancel")
	d.answer(r, requests.Answer{Action: "cancel"})
	wantStop(t, d.idle(s.ID), "end_turn")
	d.prompt(s.ID, "vendor request") // the request must not hold up the turn
	if e := find(d.idle(s.ID), "raw"); e == nil || e.Reason != "unknown_method" {
		t.Errorf("vendor request: %+v", e)
	}
	d.sameAsRebuilt(s.ID)
}

func TestJunkOfAgentIsShownAndSessionGoesOn(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "junk")
	tr := d.idle(s.ID)
	reasons := map[string]bool{}
	for _, e := range tr.Items {
		if e.Kind == "raw" {
			reasons[e.Reason] = true
		}
	}
	for _, want := range []string{"unknown_update", "broken_update", "invalid_stdout", "other_session"} {
		if !reasons[want] {
			t.Errorf("no raw entry with reason %s: %v", want, reasons)
		}
	}
	d.prompt(s.ID, "markdown")
	wantStop(t, d.idle(s.ID), "end_turn")
	d.sameAsRebuilt(s.ID)
}

func TestCancelEndsTurnAndRequest(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Patience: time.Minute})
	s := d.create()
	d.prompt(s.ID, "slow")
	d.until("text", func() bool { return textOf(d.transcript(s.ID), "agent") != "" })
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	wantStop(t, d.idle(s.ID), "cancelled")
	if s := d.get(s.ID); s.Phase != lifecycle.Ready {
		t.Errorf("after a cancel that was heeded: %s", s.Phase)
	}
	refused(t, d.Cancel(t.Context(), s.ID), "turn.none")

	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	tr := d.idle(s.ID)
	if lastTurn(tr).StopReason != "cancelled" || tr.Requests[len(tr.Requests)-1].Status != "cancelled" {
		t.Errorf("cancel while a request waits: got turn %+v and requests %+v, want both cancelled", lastTurn(tr), tr.Requests)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: r.Options[0].ID}, "window"), "request.resolved")
	var out []string // the agent's input: the cancel, then the error that nobody has answered
	for dir, data := range d.journal(s.ID) {
		if text := string(data); dir == "out" && (strings.Contains(text, `"session/cancel"`) || strings.Contains(text, `"outcome":"cancelled"`)) {
			out = append(out, text)
		}
	}
	if len(out) != 3 || !strings.Contains(out[1], `"session/cancel"`) {
		t.Errorf("cancels sent: got %q, want 3, the second of them session/cancel", out)
	}
}

func TestCancelEndsAgentThatDoesNotListen(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"hang", "stubborn"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			d := open(t, t.TempDir())
			s := d.create()
			d.prompt(s.ID, word)
			d.until("text", func() bool { return textOf(d.transcript(s.ID), "agent") != "" })
			if err := d.Cancel(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			tr := d.idle(s.ID)
			wantStop(t, tr, "cancelled")
			if e := find(tr, "divider"); e == nil || e.Divider.Code != "turn.interrupt_sent" {
				t.Errorf("the escalation is not told: %+v", e)
			}
			d.prompt(s.ID, "markdown") // starts the hibernated agent again
			tr = d.idle(s.ID)
			wantStop(t, tr, "end_turn")
			d.sameAsRebuilt(s.ID)
		})
	}
}

// deaf answers until it gets a prompt that contains its name; then it only writes, and neither reads nor ends.
func deaf(in io.Reader, out, _ io.Writer) int {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		result := `{"protocolVersion":1}`
		switch m.Method {
		case "session/new":
			result = `{"sessionId":"s"}`
		case "session/prompt":
			result = `{"stopReason":"end_turn"}`
			for strings.Contains(lines.Text(), "be deaf") {
				_, err := fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"and "}}}}`)
				if err != nil {
					return 1
				}
				time.Sleep(time.Second)
			}
		}
		if m.ID != nil {
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
	return 0
}

// clinging is a process some descendant of which runs for as long as anybody waits for its end.
type clinging struct {
	proxy.Process
	gone *atomic.Bool
}

func (p clinging) Kill(patience time.Duration) error {
	_ = p.Process.Kill(patience)
	time.Sleep(patience)
	p.gone.Store(patience > time.Second) // the wait of the agent's end, not of another caller
	return errors.New("a descendant is left")
}

// A cancel ends in a state that is shown within ten seconds, whatever the agent does; and two processes of one session never run at the
// same time.
func TestCancelEndsInTime(t *testing.T) {
	for name, clings := range map[string]bool{"deaf": false, "deaf, and something of it does not die": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var gone atomic.Bool
				spawn, spawned := proxytest.Spawn(deaf), 0
				d := openAs(t, dir, proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
					p, err := spawn(c)
					if spawned++; !clings {
						return p, err
					}
					if spawned > 1 {
						if !gone.Load() {
							t.Error("a second process was started before the first was gone")
						}
						return p, err
					}
					return clinging{p, &gone}, err
				}}, session.Config{Patience: session.Patience})
				s := d.create()
				d.prompt(s.ID, "be deaf")
				d.until("text", func() bool { return textOf(d.transcript(s.ID), "agent") != "" })
				begun := time.Now()
				if err := d.Cancel(t.Context(), s.ID); err != nil {
					t.Fatal(err)
				}
				tr := d.idle(s.ID)
				if took := time.Since(begun); took >= 10*time.Second {
					t.Errorf("cancel took %v, want less than 10s", took)
				}
				if now := d.get(s.ID); now.Phase != lifecycle.Closed || now.Exit == nil || lastTurn(tr).StopReason != "cancelled" {
					t.Errorf("session after the cancel: got %s, exit %+v, turn %+v; want it closed, with an exit, the turn cancelled", now.Phase, now.Exit, lastTurn(tr))
				}
				if got := dividers(tr); got != "turn.interrupt_sent turn.killed agent.exited" {
					t.Error(got)
				}
				if clings && gone.Load() {
					t.Error("the end of the process was waited for")
				}
				d.prompt(s.ID, "go on")
				if last := lastTurn(d.idle(s.ID)); last.StopReason != "end_turn" || spawned != 2 {
					t.Errorf("%+v, %d processes", last, spawned)
				}
				d.sameAsRebuilt(s.ID)
				d.close()
				pass(time.Second) // a killed agent in memory is about to write a last message
			})
		})
	}
}

func TestCrashIsToldAndRestartResumes(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "crash")
	tr := d.idle(s.ID)
	now := d.get(s.ID)
	if now.Phase != lifecycle.Closed || now.Exit == nil || now.Exit.Code == nil || *now.Exit.Code != 3 || now.Exit.StderrTail == "" {
		t.Fatalf("exit after a crash: got %+v, want code 3 with the end of stderr", now.Exit)
	}
	wantStop(t, tr, "agent_exited")
	if e := find(tr, "divider"); e == nil || e.Divider.Code != "agent.exited" || e.Divider.Exit == nil {
		t.Errorf("divider after a crash: got %+v, want agent.exited with its exit", e)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	tr = d.transcript(s.ID)
	if e := tr.Items[len(tr.Items)-1]; e.Kind != "divider" || e.Divider.Code != "session.resumed" {
		t.Errorf("last entry after Restart: got %+v, want the divider session.resumed", e)
	}
	if now := d.get(s.ID); now.Exit != nil || now.Generation != 2 {
		t.Errorf("session after Restart: got %+v, want generation 2 without an exit", now)
	}
	d.prompt(s.ID, "markdown")
	d.idle(s.ID)
	d.sameAsRebuilt(s.ID)
}

func TestSessionsAreThereAfterReopening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	d.prompt(s.ID, "markdown")
	d.idle(s.ID)
	title := "My own title"
	labels := []string{"a", "b"}
	draft := "half a thou"
	if _, err := d.Change(t.Context(), s.ID, session.Patch{Title: &title, Labels: &labels, Draft: &draft}); err != nil {
		t.Fatal(err)
	}
	before := d.transcript(s.ID)
	d.close()

	d = open(t, dir)
	page, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("List after reopening: got %+v, %v; want one session", page, err)
	}
	now := page.Items[0]
	if now.Title != title || !slices.Equal(now.Labels, labels) || now.Draft != draft || now.Phase != lifecycle.Closed || now.Exit != nil {
		t.Errorf("session after reopening: got %+v, want title %q, labels %q, draft %q, closed without an exit", now, title, labels, draft)
	}
	after := d.transcript(s.ID)
	if len(after.Items) != len(before.Items) || textOf(after, "agent") != textOf(before, "agent") {
		t.Errorf("%d entries, before %d", len(after.Items), len(before.Items))
	}
	d.prompt(s.ID, "markdown") // starts the agent again with its session
	tr := d.idle(s.ID)
	if !slices.ContainsFunc(tr.Items, func(e transcript.Entry) bool { return e.Divider != nil && e.Divider.Code == "session.resumed" }) {
		t.Error("the transcript does not tell that the session was resumed")
	}
	wantStop(t, tr, "end_turn")
	d.sameAsRebuilt(s.ID)
}

func TestQuitInATurnIsToldAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	d.close()
	d = open(t, dir)
	tr := d.transcript(s.ID)
	if lastTurn(tr).StopReason != "interrupted" || tr.Requests[0].Status != "expired" {
		t.Errorf("after a quit in a turn: got turn %+v, requests %+v; want interrupted and expired", lastTurn(tr), tr.Requests)
	}
	got := refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: r.Options[0].ID}, "window"), "request.resolved")
	if got.Params["status"] != "expired" {
		t.Errorf("Answer after a quit: got parameters %v, want status expired", got.Params)
	}
}

func TestAgentThatDoesNotStartTellsWhy(t *testing.T) {
	dir := t.TempDir()
	file := fmt.Sprintf(`{"agents":[
		{"id":"gone","command":"no-such-agent"},
		{"id":"dies","command":"/bin/sh","args":["-c","echo bad luck >&2; exit 7"]},
		{"id":"mute","command":"/bin/sh","args":["-c","echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"log in first\"}}'; cat >/dev/null"]},
		{"id":"old","command":"/bin/sh","args":["-c","echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":9}}'; cat >/dev/null"]},
		{"id":"text","command":%q}]}`, filepath.Join(dir, "agents.json"))
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o700); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	for agent, want := range map[string]string{
		"gone": "agent.not_installed", "dies": "agent.handshake_failed", "mute": "agent.auth_required", "old": "agent.protocol", "text": "agent.spawn_failed",
	} {
		t.Run(agent, func(t *testing.T) {
			s, err := d.Create(t.Context(), session.New{Agent: agent, Cwd: d.work})
			if err != nil {
				t.Fatal(err)
			}
			d.until("failure", func() bool { return d.get(s.ID).Phase == lifecycle.Closed })
			now := d.get(s.ID)
			if now.Exit == nil || now.Exit.Problem != want {
				t.Fatalf("exit: got %+v, want problem %s", now.Exit, want)
			}
			if agent == "dies" && (now.Exit.Code == nil || *now.Exit.Code != 7 || !strings.Contains(now.Exit.StderrTail, "bad luck")) {
				t.Errorf("exit: got %+v, want code 7 and its words on stderr", now.Exit)
			}
			if e := find(d.transcript(s.ID), "divider"); e == nil || e.Divider.Code != "agent.start_failed" {
				t.Errorf("divider: got %+v, want agent.start_failed", e)
			}
		})
	}
	_, err := d.Create(t.Context(), session.New{Agent: "unheard-of", Cwd: d.work})
	refused(t, err, "agent.unknown")
}

func TestSessionDirectoriesAreChecked(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	for path, code := range map[string]string{
		"relative": "directory.relative", filepath.Join(d.dir, "none"): "directory.missing", filepath.Join(d.dir, "deskhand.db"): "directory.not_one",
	} {
		_, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: path})
		refused(t, err, code)
	}
	a, b := d.create(), d.create()
	if a.Workspace.ID != b.Workspace.ID {
		t.Error("one directory has two workspaces")
	}
	d.idle(a.ID)
	d.idle(b.ID)
	d.close()
	d2 := open(t, d.dir)
	if err := os.RemoveAll(d.work); err != nil {
		t.Fatal(err)
	}
	if s := d2.get(a.ID); !s.Workspace.Missing {
		t.Error("a vanished directory is not told")
	}
	d2.prompt(a.ID, "hello")
	tr := d2.idle(a.ID)
	if s := d2.get(a.ID); s.Exit == nil || s.Exit.Problem != "directory.missing" || lastTurn(tr).State != "done" {
		t.Errorf("prompt in a vanished directory: got %+v, want problem directory.missing and the turn done", s)
	}
	if textOf(tr, "user") == "" {
		t.Error("the prompt is lost")
	}
}

// custom writes agents.json of a data directory with agents that are shell scripts.
func custom(t *testing.T, dir string, scripts map[string]string) {
	t.Helper()
	type agent struct {
		ID      string   `json:"id"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	var file struct {
		Agents []agent `json:"agents"`
	}
	for id, script := range scripts {
		file.Agents = append(file.Agents, agent{id, "/bin/sh", []string{"-c", script}})
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSecretsOfRequestsAndFailuresAreNotWritten(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
	dir := t.TempDir()
	custom(t, dir, map[string]string{
		"fails": `read l; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"bad key ` + key + `"}}'; cat >/dev/null`,
		"asks": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
			read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
			read l; echo '{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":null},"options":[{"optionId":"a","name":"Always curl -H ` + key + `","kind":"allow_always"}]}}'
			read l; echo '{"jsonrpc":"2.0","id":0,"method":"_sandboxagent/session/request_question","params":{"questionId":"q","prompt":"Use ` + key + `?","options":[["y","Yes, ` + key + `"]]}}'
			read l; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
			cat >/dev/null`,
	})
	d := open(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "fails", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.until("failure", func() bool { return d.get(s.ID).Exit != nil })
	if detail := d.get(s.ID).Exit.Params["detail"]; detail != "bad key [redacted]" {
		t.Errorf("the exit tells %q", detail)
	}
	if s, err = d.Create(t.Context(), session.New{Agent: "asks", Cwd: d.work}); err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "go")
	r := d.request(s.ID)
	if r.Options[0].Name != "Always curl -H [redacted]" || r.Title == "" {
		t.Errorf("permission: got title %q, options %+v; want the secret redacted in both", r.Title, r.Options)
	}
	d.answer(r, requests.Answer{OptionID: "a"})
	r = d.request(s.ID)
	if q := r.Questions[0]; q.Prompt != "Use [redacted]?" || q.Options[0].Label != "Yes, [redacted]" || q.Options[0].ID != "y" || r.Title != q.Prompt {
		t.Errorf("question: got %+v, want the secret redacted in its prompt, title and option", r)
	}
	d.answer(r, requests.Answer{Answers: [][]string{{"y"}}})
	wantStop(t, d.idle(s.ID), "end_turn")
	d.sameAsRebuilt(s.ID)
}

func TestRestartWaitsUntilTheProcessHasEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	life := filepath.Join(dir, "life")
	custom(t, dir, map[string]string{"slow": fmt.Sprintf(
		`trap '' TERM; p=$(cat %[1]s.pid 2>/dev/null) && kill -0 "$p" 2>/dev/null && echo twice >>%[1]s; echo $$ >%[1]s.pid; echo begins >>%[1]s; echo '{}'; cat >/dev/null; sleep 0.2`, life)})
	d := open(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "slow", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	said := func(n int) func() bool {
		return func() bool {
			have := 0
			for dir, data := range d.journal(s.ID) {
				if dir == "in" && string(data) == "{}" {
					have++
				}
			}
			return have == n
		}
	}
	d.until("first process", said(1))
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.until("second process", said(2))
	data, err := os.ReadFile(life)
	if err != nil || string(data) != "begins\nbegins\n" {
		t.Errorf("lives of the agent: got %q, %v; want two beginnings, the first before the second", data, err)
	}
}

func TestRestartInTheMiddleOfASpawnLeavesNoProcess(t *testing.T) {
	t.Parallel()
	spawning, spawn, ended := make(chan struct{}, 2), make(chan struct{}, 2), make(chan struct{}, 2)
	agent := proxytest.Spawn(func(stdin io.Reader, _, _ io.Writer) int {
		_, _ = io.Copy(io.Discard, stdin)
		ended <- struct{}{}
		return 0
	})
	d := openWith(t, t.TempDir(), proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
		spawning <- struct{}{}
		<-spawn
		return agent(c)
	}})
	s := d.create()
	<-spawning
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	spawn <- struct{}{}
	spawn <- struct{}{}
	select {
	case <-ended:
	case <-time.After(testkit.Limit):
		t.Error("the process that nobody wanted any more goes on")
	}
	<-spawning
}

func TestFullDiskLosesNoFrames(t *testing.T) {
	dir := t.TempDir()
	const chunks = 300
	agent := proxytest.Spawn(func(stdin io.Reader, stdout, _ io.Writer) int {
		in := bufio.NewScanner(stdin)
		say := func(format string, args ...any) { _, _ = fmt.Fprintf(stdout, format+"\n", args...) }
		for in.Scan() {
			var m struct {
				ID     int
				Method string
			}
			_ = json.Unmarshal(in.Bytes(), &m)
			switch m.Method {
			case "initialize":
				say(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":1}}`, m.ID)
			case "session/new":
				say(`{"jsonrpc":"2.0","id":%d,"result":{"sessionId":"s"}}`, m.ID)
			case "session/prompt":
				for i := range chunks {
					say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d "}}}}`, i)
				}
				say(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, m.ID)
			}
		}
		return 0
	})
	synctest.Test(t, func(t *testing.T) {
		const few = 4 << 10 // bytes of the agent's messages that are held in memory
		d := openWith(t, dir, proxy.Config{Spawn: agent, LogBytes: few})
		s := d.create()
		d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
		d.prompt(s.ID, "go")
		full, works, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- d.db.Write(t.Context(), func(*sql.Tx) error {
				close(full)
				<-works
				return nil
			})
		}()
		<-full
		time.Sleep(10 * time.Minute)
		close(works)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		tr := d.idle(s.ID)
		if words := strings.Fields(textOf(tr, "agent")); len(words) != chunks {
			t.Errorf("%d of %d chunks", len(words), chunks)
		}
		d.close()
	})
}

// alter changes the database under the client: without a table that it writes, the client's steps fail as on a full disk.
func (d *desk) alter(text string) {
	d.t.Helper()
	err := d.db.Write(d.t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(d.t.Context(), text)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func TestRefusingDiskShowsAndTakesNothing(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.until("ready", func() bool { now := d.get(s.ID); return now.Phase == lifecycle.Ready && len(now.Commands) > 0 }) // no further message comes by itself
	d.alter(`ALTER TABLE frame RENAME TO away`)
	for range 2 {
		if _, err := d.Prompt(t.Context(), s.ID, "markdown"); !errors.Is(err, session.ErrStorage) {
			t.Errorf("Prompt while the disk refuses = %v, want ErrStorage", err)
		}
	}
	if err := d.Cancel(t.Context(), s.ID); !errors.Is(err, session.ErrStorage) {
		t.Errorf("Cancel while the disk refuses = %v, want ErrStorage", err)
	}
	if now := d.get(s.ID); now.Turn != nil {
		t.Errorf("shown before it is stored: %+v", now.Turn)
	}
	d.alter(`ALTER TABLE away RENAME TO frame`)
	d.until("answer to the first", func() bool { // the step was held, not lost
		tr := d.transcript(s.ID)
		return len(tr.Turns) == 1 && tr.Turns[0].StopReason == "end_turn"
	})
	d.sameAsRebuilt(s.ID)
	d.alter(`ALTER TABLE frame RENAME TO away`)
	if _, err := d.Prompt(t.Context(), s.ID, "markdown"); !errors.Is(err, session.ErrStorage) {
		t.Errorf("Prompt while the disk refuses = %v, want ErrStorage", err)
	}
	q := feed.Query{Gen: d.Feed().Gen(), After: 0}
	if batch, _ := d.Feed().After(t.Context(), q); len(batch.Events) == 0 {
		t.Fatal("no events")
	}
	d.close() // the close does not wait for the disk, and no change that the disk did not take is shown
	for {
		batch, _ := d.Feed().After(t.Context(), q)
		if len(batch.Events) == 0 {
			break
		}
		q.After = batch.Seq
		for _, e := range batch.Events {
			if strings.Contains(string(e.Data), `"interrupted"`) {
				t.Errorf("feed: got %s %s, want no turn told as interrupted", e.Type, e.Data)
			}
		}
	}
}

// A patient caller gets the outcome of its prompt, however long the disk refuses; an impatient caller would repeat a prompt that is sent
// anyway.
func TestPatientPromptWaitsForRefusingDisk(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	// The agent's first reports are steps too: while the disk refuses them, a prompt is refused at once.
	d.until("ready", func() bool { now := d.get(s.ID); return now.Phase == lifecycle.Ready && len(now.Commands) > 0 })
	// stalled sends a patient prompt while the disk refuses, and returns the channel of its outcome.
	stalled := func() chan error {
		t.Helper()
		q := feed.Query{Gen: d.Feed().Gen(), Wait: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
		defer cancel()
		batch, err := d.Feed().After(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		q.After = batch.Seq
		d.alter(`ALTER TABLE frame RENAME TO away`)
		answer := make(chan error, 1)
		go func() {
			_, err := d.Prompt(session.Patiently(t.Context()), s.ID, "markdown")
			answer <- err
		}()
		for told := 0; told < 2; q.After = batch.Seq { // the event comes again, for readers that connect later
			if batch, err = d.Feed().After(ctx, q); err != nil || ctx.Err() != nil {
				t.Fatalf("feed: got error %v, want storage.failed", err)
			}
			for _, e := range batch.Events {
				if strings.Contains(string(e.Data), "storage.failed") {
					told++
				}
			}
		}
		return answer
	}
	answer := stalled()
	select {
	case err := <-answer:
		t.Fatal("told before it is known: ", err)
	case <-time.After(50 * time.Millisecond): // a longer wait proves nothing more
	}
	if _, err := d.Prompt(session.Patiently(t.Context()), s.ID, "another"); !errors.Is(err, session.ErrStorage) {
		t.Error("taken although nothing can be: ", err)
	}
	d.alter(`ALTER TABLE away RENAME TO frame`)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if tr := d.idle(s.ID); len(tr.Turns) != 1 {
		t.Errorf("%d turns", len(tr.Turns))
	}
	answer = stalled()
	d.close()
	if err := <-answer; !errors.Is(err, session.ErrStorage) {
		t.Error("what was lost is said to be done: ", err)
	}
}

// removeBlobs damages each journal that has a frame in a blob.
func (d *desk) removeBlobs() {
	d.t.Helper()
	blobs := filepath.Join(d.dir, "blobs")
	if list, err := os.ReadDir(blobs); err != nil || len(list) == 0 {
		d.t.Fatalf("nothing can be damaged: %v", err)
	}
	if err := os.RemoveAll(blobs); err != nil {
		d.t.Fatal(err)
	}
}

func TestDamagedJournalKeepsOthersOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	d.prompt(s.ID, "echo\n"+strings.Repeat("so long that it is a blob ", 4000))
	d.idle(s.ID)
	before := d.transcript(s.ID)
	err := d.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE turn SET state = 'running', stop_reason = '', ended_at = 0`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.close()
	d.removeBlobs()
	d = open(t, dir)
	if tr := d.transcript(s.ID); lastTurn(tr).StopReason != "interrupted" || len(tr.Items) < len(before.Items) {
		t.Errorf("%+v, %d entries", lastTurn(tr), len(tr.Items))
	}
}

func TestSecretsAreNeverWritten(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	secrets := []string{"sk-ant-api03-abcdefghijklmnopqrstuvwxyz", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "our-own-token", "AKIAABCDEFGHIJKLMNOP"}
	d.prompt(s.ID, "echo "+strings.Join(secrets, " "))
	if title := d.get(s.ID).Title; !strings.HasPrefix(title, "echo [redacted]") {
		t.Errorf("title %q", title)
	}
	tr := d.idle(s.ID)
	if !strings.Contains(textOf(tr, "user"), "[redacted]") {
		t.Error("nothing was redacted")
	}
	d.close()
	err := filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/demo/") { // the demo agent's own memory is not checked
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			if strings.Contains(string(data), secret) {
				t.Errorf("%s holds %s", filepath.Base(path), secret)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBurstOfUpdatesIsStoredWhole(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "burst")
	tr := d.idle(s.ID)
	text := textOf(tr, "agent")
	if !strings.Contains(text, "10000") && !strings.Contains(text, "9999") {
		t.Errorf("the end of the burst is missing: …%s", text[max(0, len(text)-200):])
	}
	d.sameAsRebuilt(s.ID)
}

// A message of 2 MiB is stored whole. The browser's tests send a message of 20 MiB, which would take the race detector a minute here.
func TestHugeMessageIsStoredWhole(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	said := strings.Repeat("one line of very many\n", 2<<20/22)
	d.begin(id, step{Update: json.RawMessage(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","messageId":"huge","content":{"type":"text","text":%q}}`, said))})
	tr := d.idle(id)
	i := slices.IndexFunc(tr.Items, func(e transcript.Entry) bool { return e.Kind == "agent" && e.Clipped > 0 })
	if i < 0 {
		t.Fatal("no entry is clipped")
	}
	e := tr.Items[i]
	whole, err := d.Transcripts().Text(t.Context(), id, e.ID)
	if err != nil || whole != said || len(whole) != len(e.Text)+e.Clipped || !strings.HasPrefix(whole, e.Text) {
		t.Errorf("%d bytes shown, %d clipped, %d whole, %v", len(e.Text), e.Clipped, len(whole), err)
	}
	d.sameAsRebuilt(id)
}

func TestConfigureSetsOptions(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	for _, o := range d.get(s.ID).ConfigOptions {
		refused(t, d.SetConfig(t.Context(), s.ID, o.ID, json.RawMessage(`null`)), "config.value")
		value, want := json.RawMessage(`true`), ""
		if o.Type == "select" {
			want = o.Choices[len(o.Choices)-1].Value
			value, _ = json.Marshal(want)
		}
		now, err := d.Configure(t.Context(), s.ID, o.ID, value)
		if err != nil {
			t.Fatalf("Configure(%s, %s): got %v, want it taken", o.ID, value, err)
		}
		i := slices.IndexFunc(now.ConfigOptions, func(n transcript.ConfigOption) bool { return n.ID == o.ID })
		if got := now.ConfigOptions[i]; got.Value != want || o.Type != "select" && !got.Checked {
			t.Errorf("got %+v in the answer to the change of %s to %s, want the new value", got, o.ID, value)
		}
	}
	refused(t, d.SetConfig(t.Context(), s.ID, "mode", json.RawMessage(`"nonsense"`)), "config.value")
	refused(t, d.SetConfig(t.Context(), s.ID, "nonsense", json.RawMessage(`"x"`)), "config.unknown")
}

func TestListIsReadByPages(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	var ids []string
	for range 5 {
		ids = append(ids, d.create().ID)
	}
	for _, id := range ids {
		d.idle(id)
	}
	archived := true
	if _, err := d.Change(t.Context(), ids[0], session.Patch{Archived: &archived}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	before := ""
	for {
		page, err := d.List(t.Context(), session.Which{}, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Items {
			if seen[s.ID] {
				t.Fatal("a session is on two pages")
			}
			seen[s.ID] = true
		}
		if before = page.Next; before == "" {
			break
		}
	}
	if len(seen) != 4 || seen[ids[0]] {
		t.Errorf("List by pages: got %v, want 4 sessions without the archived %s", seen, ids[0])
	}
	if page, err := d.List(t.Context(), session.Which{Archived: true}, "", 2); err != nil || len(page.Items) != 1 || page.Items[0].ArchivedAt == nil {
		t.Errorf("List of the archived: got %+v, %v; want one with its time", page, err)
	}
	if _, err := d.Get(t.Context(), "nope"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Get(nope) = %v, want ErrNotFound", err)
	}

	d.prompt(ids[1], "markdown")
	all := d.idle(ids[1]).Items
	var paged []transcript.Entry
	for cursor := int64(0); ; {
		page, err := d.Transcripts().Entries(t.Context(), ids[1], cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(slices.Clone(page.Items), paged...)
		if cursor = page.Next; cursor == 0 {
			break
		}
	}
	if len(paged) != len(all) || len(all) < 2 {
		t.Errorf("%d entries by pages, %d at once", len(paged), len(all))
	}
}
