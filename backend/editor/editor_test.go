package editor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/feed"
	"deskhand/backend/requests"
	sessions "deskhand/backend/session"
)

const (
	nothing    = `{}`
	everything = `{"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}},"_meta":{"terminal_output":true}}`
)

func TestWhatIsNoMessageIsAnswered(t *testing.T) {
	p := openFixture(t).plainEditor()
	for line, code := range map[string]int{`{"broken`: -32700, `[{"id":1,"method":"x"}]`: -32600, `7`: -32600, `{"jsonrpc":"2.0"}`: -32600} {
		p.mu.Lock()
		p.got = nil
		p.mu.Unlock()
		p.say(line)
		m := p.until("refusal of "+line, func(m received) bool { return string(m.ID) == "null" })
		if m.Error == nil || m.Error.Code != code {
			t.Errorf("%s: got Error %+v, want Error not nil and m.Error.Code %v", line, m.Error, code)
		}
	}
	p.say(``) // a blank line is ignored
	p.say(`{"jsonrpc":"2.0","id":99,"result":{}}`)
	p.say(`{"jsonrpc":"2.0","method":"_somebody/else"}`)
	if m := p.answer(p.send("session/unheard_of", `{}`)); m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("answer: got m %+v, want Error not nil and m.Error.Code -32601", m)
	}
	if m := p.answer(p.send("session/prompt", `{"sessionId":"none","prompt":[]}`)); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("answer: got m %+v, want Error not nil and m.Error.Code -32002", m)
	}
	if m := p.answer(p.send("session/new", `{"cwd":"relative"}`)); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("answer: got m %+v, want Error not nil and m.Error.Code -32602", m)
	}
}

// TestASessionThatDoesNotStartIsNone: session/new fails when the agent cannot be started, and leaves no session.
func TestASessionThatDoesNotStartIsNone(t *testing.T) {
	o := openFixture(t)
	p := o.editor(nothing)
	gone := filepath.Join(o.work, "gone")
	if m := p.answer(p.send("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, gone))); m.Error == nil || !strings.Contains(m.Error.Message, gone) {
		t.Errorf("answer: got m %+v, want Error not nil and m.Error.Message with %v", m, gone)
	}
	page, err := o.List(t.Context(), sessions.Which{}, "", 10)
	if err != nil || len(page.Items) != 0 {
		t.Errorf(`List("", 10): got page.Items %+v, error %v, want no error and no page.Items`, page.Items, err)
	}
}

// TestTrustIsAskedInTheEditor: the editor is asked about a directory's executables too, so the session has an id before its agent runs. An
// editor that allows everything has approved nothing.
func TestTrustIsAskedInTheEditor(t *testing.T) {
	o := openFixture(t)
	dir := filepath.Join(o.work, ".sandbox-agent", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp.json"), []byte(`{"mine":{"type":"local","command":"/bin/false-server","args":[]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := o.editor(nothing)
	id := p.begin()
	asked := p.until("question", func(m received) bool { return m.Method == "session/request_permission" })
	if !strings.Contains(string(asked.Params), "/bin/false-server") || !strings.Contains(string(asked.Params), id) {
		t.Errorf(`until("question"): got asked.Params %s, want asked.Params with "/bin/false-server" and asked.Params with %v`, asked.Params, id)
	}
	if strings.Contains(string(asked.Params), `"kind":"allow_always"`) || strings.Count(string(asked.Params), `"kind":"allow_once"`) != 1 {
		t.Errorf("got asked.Params %s, want asked.Params without \"\\\"kind\\\":\\\"allow_always\\\"\" and 1 time \"\\\"kind\\\":\\\"allow_once\\\"\" in asked.Params", asked.Params)
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"approve"}}}`, asked.ID))
	p.begin() // the second session asks the same, and was read behind that answer
	asked = p.until("question", func(m received) bool { return m.Method == "session/request_permission" })
	inbox, err := o.Requests().Waiting(t.Context())
	if err != nil || len(inbox) != 2 {
		t.Fatalf("Inbox: got inbox %+v, error %v, want no error and 2 in inbox", inbox, err)
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"without"}}}`, asked.ID))
	for _, r := range inbox {
		if r.Session == id {
			if err := o.Answer(t.Context(), r.ID, requests.Answer{OptionID: "without"}, "window"); err != nil {
				t.Error(err)
			}
		}
	}
	if m := p.answer(p.prompt(id, "echo here")); m.Error != nil {
		t.Errorf("answer: got %+v, want nil", m.Error)
	}
	if !strings.Contains(p.said("agent_message_chunk"), "echo here") {
		t.Errorf("it said %q", p.said("agent_message_chunk"))
	}
}

// TestAnEditorWithoutFormsIsToldOfOne: a request that the editor cannot show waits in Deskhand, and the editor is told.
func TestAnEditorWithoutFormsIsToldOfOne(t *testing.T) {
	o := openFixture(t)
	p := o.editor(nothing)
	id := p.begin()
	turn := p.prompt(id, "form")
	asked := p.until("pointer", func(m received) bool { return m.Method == "session/request_permission" })
	inbox, err := o.Requests().Waiting(t.Context())
	if err != nil || len(inbox) != 1 || inbox[0].Kind != "form" {
		t.Fatalf(`Inbox: got inbox %+v, error %v, want no error, 1 in inbox and inbox[0].Kind "form"`, inbox, err)
	}
	if err := o.Answer(t.Context(), inbox[0].ID, requests.Answer{Action: "decline"}, "window"); err != nil {
		t.Fatal(err)
	}
	p.until("withdrawal", func(m received) bool {
		var w struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		return m.Method == "$/cancel_request" && json.Unmarshal(m.Params, &w) == nil && string(w.RequestID) == string(asked.ID)
	})
	if m := p.answer(turn); m.Error != nil {
		t.Errorf("answer: got %+v, want nil", m.Error)
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"cancelled"}}`, asked.ID)) // the answer that ACP requires

	turn = p.prompt(id, "visit")
	asked = p.until("second pointer", func(m received) bool {
		return m.Method == "session/request_permission" && string(m.ID) != string(asked.ID)
	})
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"deskhand-decline"}}}`, asked.ID))
	if m := p.answer(turn); m.Error != nil {
		t.Errorf("answer: got %+v, want nil", m.Error)
	}
}

// TestProgramsAreShown: a program that Deskhand runs for the agent shows in the editor, as output in _meta or as text.
func TestProgramsAreShown(t *testing.T) {
	o := openFixture(t)
	for _, takes := range []string{everything, nothing} {
		p := o.editor(takes)
		id := p.begin()
		if m := p.answer(p.prompt(id, "spawn")); m.Error != nil {
			t.Fatalf("answer: got %+v, want nil", m.Error)
		}
		var meta, text bool
		for _, m := range p.got {
			meta = meta || strings.Contains(string(m.Params), `"terminal_info"`) || strings.Contains(string(m.Params), `"terminal_output"`)
			text = text || strings.Contains(string(m.Params), "```console")
			if takes == nothing && strings.Contains(string(m.Params), `"type":"terminal"`) {
				t.Errorf("it is told of a terminal that it does not know: %s", m.Params)
			}
		}
		if meta != (takes == everything) || text != (takes == nothing) {
			t.Errorf("%s: in _meta %t, as text %t", takes, meta, text)
		}
		p.hangUp()
	}
}

// TestRequestsAreTakenBack: a request that the editor withdraws is answered, and its work is undone.
func TestRequestsAreTakenBack(t *testing.T) {
	o := openFixture(t)
	p := o.editor(everything)
	id := p.begin()
	turn := p.prompt(id, "slow")
	p.until("words", func(m received) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
	p.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + turn + `}}`)
	if m := p.answer(turn); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
		t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"cancelled\\\"\"", m.Error, m.Result)
	}
	turn = p.prompt(id, "slow")
	p.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id))
	if m := p.answer(turn); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
		t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"cancelled\\\"\"", m.Error, m.Result)
	}
	if _, err := o.Get(t.Context(), id); err != nil {
		t.Error("closing deletes nothing: ", err)
	}
	if m := p.answer(p.prompt(id, "echo")); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("answer: got m %+v, want Error not nil and m.Error.Code -32002", m)
	}
}

// TestTheTurnOutlivesTheEditor: the end of the editor in the middle of a turn leaves the turn running.
func TestTheTurnOutlivesTheEditor(t *testing.T) {
	o := openFixture(t)
	p := o.editor(everything)
	id := p.begin()
	p.prompt(id, "slow")
	p.until("words", func(m received) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
	p.hangUp()
	if s, err := o.Get(t.Context(), id); err != nil || s.Turn == nil || s.Turn.State != "running" {
		t.Errorf(`got Turn %+v, error %v, want no error, Turn not nil and s.Turn.State "running"`, s.Turn, err)
	}

	again := o.editor(everything)
	again.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, o.work))
	if said := again.said("user_message_chunk"); said != "slow" {
		t.Errorf("it hears that was said: %q", said)
	}
	again.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
	if m := again.answer(again.prompt(id, "echo after")); m.Error != nil {
		t.Errorf("answer: got %+v, want nil", m.Error)
	}
}

// TestADeletedSessionIsClosed: a session that another surface deletes is closed here.
func TestADeletedSessionIsClosed(t *testing.T) {
	o := openFixture(t)
	p := o.editor(everything)
	id := p.begin()
	turn := p.prompt(id, "slow")
	p.until("words", func(m received) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
	if err := o.Erase(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.answer(turn)
	if m := p.answer(p.prompt(id, "echo")); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("answer: got m %+v, want Error not nil and m.Error.Code -32002", m)
	}
}

// TestLoginIsOffered: editors with a terminal are offered a login.
func TestLoginIsOffered(t *testing.T) {
	o := openFixture(t)
	for capabilities, want := range map[string]string{nothing: `"authMethods":[]`, everything: `"args":["acp","--login"]`} {
		p := o.plainEditor()
		if can := p.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`); !strings.Contains(string(can), want) {
			t.Errorf(`%s: call("initialize"): got %s, want with %v`, capabilities, can, want)
		}
	}
}

// TestAChangeThatWaitsIsAnsweredWhenTheSessionGoes: a change of settings that waits for an agent is answered when the session is deleted.
func TestAChangeThatWaitsIsAnsweredWhenTheSessionGoes(t *testing.T) {
	o := openFixture(t)
	dir := filepath.Join(o.work, ".sandbox-agent", "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp.json"), []byte(`{"mine":{"type":"local","command":"/bin/false-server","args":[]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := o.editor(everything)
	id := p.begin()
	p.until("question", func(m received) bool { return m.Method == "session/request_permission" })
	change := p.send("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"brief","value":true}`, id))
	p.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id))
	if m := p.answer(change); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("answer: got m %+v, want Error not nil and m.Error.Code -32002", m)
	}
}

// TestWhatWaitsIsAnsweredWhenTheSessionGoes: other waiting requests are answered, too, when the session is deleted.
func TestWhatWaitsIsAnsweredWhenTheSessionGoes(t *testing.T) {
	o := openFixture(t)
	p := o.editor(everything)
	id := p.begin()
	var sent []string
	p.send("session/close", fmt.Sprintf(`{"sessionId":%q}`, id))
	for range 20 {
		sent = append(sent, p.send("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"brief","value":true}`, id)))
	}
	for _, one := range sent {
		if m := p.answer(one); m.Error == nil {
			t.Errorf("answer: got m %+v, want Error not nil", m)
		}
	}
}

// TestAnEditorThatGoesTakesNobodysWork: an editor that goes while its agent starts leaves no session, unless a person has used the session in
// the window.
func TestAnEditorThatGoesTakesNobodysWork(t *testing.T) {
	t.Setenv(agenttest.Mute, "1")
	o := openFixture(t)
	list := func() []sessions.Session {
		page, err := o.List(t.Context(), sessions.Which{}, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return page.Items
	}
	draft := "three paragraphs"
	for name, begin := range map[string]func(id string) error{
		"nothing": nil,
		"a draft": func(id string) error {
			_, err := o.Change(t.Context(), id, sessions.Patch{Draft: &draft})
			return err
		},
		"a message": func(id string) error {
			_, err := o.Send(t.Context(), id, sessions.Prompt{Message: "do the work", When: "queue"})
			return err
		},
	} {
		p := o.editor(nothing)
		p.send("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, o.work))
		q := feed.Query{Gen: o.Feed().Gen(), Wait: time.Minute, Types: []string{"session.upsert"}}
		for len(list()) == 0 {
			batch, err := o.Feed().After(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			q.After = batch.Seq
		}
		id, want := list()[0].ID, 0
		if begin != nil {
			want = 1
			if err := begin(id); err != nil {
				t.Fatal(err)
			}
		}
		p.hangUp()
		if left := list(); len(left) != want {
			t.Errorf("%s: %d sessions are left", name, len(left))
		}
		if want > 0 {
			if err := o.Erase(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// behind makes the editor prompt behind another surface's turn, and cancels that turn, which holds the prompt.
func (o *fixture) behind(p *fakeEditor, id, text string) (waits, item string) {
	o.t.Helper()
	if _, err := o.Send(o.t.Context(), id, sessions.Prompt{Message: "slow"}); err != nil {
		o.t.Fatal(err)
	}
	waits = p.prompt(id, text)
	o.wait("the message in the queue", func() bool {
		list, err := o.Queue(o.t.Context(), id)
		if err == nil && len(list) == 1 {
			item = list[0].ID
		}
		return item != ""
	})
	if err := o.Cancel(o.t.Context(), id); err != nil {
		o.t.Fatal(err)
	}
	return waits, item
}

// held opens an editor's session with a held prompt and no running turn.
func (o *fixture) held(text string) (p *fakeEditor, id, waits, item string) {
	o.t.Helper()
	p = o.editor(everything)
	id = p.begin()
	waits, item = o.behind(p, id, text)
	o.wait("the end of the turn", func() bool {
		s, err := o.Get(o.t.Context(), id)
		return err == nil && s.Turn == nil
	})
	return p, id, waits, item
}

// TestAPromptThatIsHeld: the editor is told of its held prompt, and can withdraw the prompt.
func TestAPromptThatIsHeld(t *testing.T) {
	for name, capabilities := range map[string]string{"with notices": everything, "without": nothing} {
		t.Run(name, func(t *testing.T) {
			o := openFixture(t)
			p := o.editor(capabilities)
			id := p.begin()
			waits, _ := o.behind(p, id, "echo mine")
			p.until("word of it", func(m received) bool {
				return strings.Contains(string(m.Params), "Your message waits in Deskhand") && strings.Contains(string(m.Params), "was stopped")
			})
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
			if m := p.answer(waits); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
				t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"cancelled\\\"\"", m.Error, m.Result)
			}
		})
	}
}

// TestAPromptThatBeginsWhileItIsLookedFor: a prompt begins while the editor reopens its session. The prompt has left the queue, and the
// journal that was read does not have the turn yet.
func TestAPromptThatBeginsWhileItIsLookedFor(t *testing.T) {
	o := openFixture(t)
	p, id, waits, item := o.held("echo mine")
	below := *o.served.Load()
	var once sync.Once
	above := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/queue") {
			once.Do(func() { //nolint:contextcheck // the context is the call's
				if _, err := o.ChangeQueued(r.Context(), id, item, sessions.QueuePatch{Send: true}); err != nil {
					t.Error(err)
				}
			})
		}
		below.ServeHTTP(w, r)
	}))
	o.served.Store(&above)
	p.call("session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, o.work))
	if m := p.answer(waits); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"end_turn"`) {
		t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"end_turn\\\"\"", m.Error, m.Result)
	}
}

// TestPromptsThatWaitOverARestart: of the prompts that wait during a restart of Deskhand, a held prompt stays and a deleted prompt is
// answered.
func TestPromptsThatWaitOverARestart(t *testing.T) {
	o := openFixture(t)
	p := o.editor(everything)
	id := p.begin()
	if _, err := o.Send(t.Context(), id, sessions.Prompt{Message: "slow"}); err != nil {
		t.Fatal(err)
	}
	list := func() []sessions.QueueItem {
		list, err := o.Queue(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := p.prompt(id, "echo first")
	o.wait("one message", func() bool { return len(list()) == 1 })
	second := p.prompt(id, "echo second")
	o.wait("two messages", func() bool { return len(list()) == 2 })
	o.restart(func() {
		if err := o.RemoveQueued(t.Context(), id, list()[0].ID); err != nil {
			t.Fatal(err)
		}
	})
	if m := p.answer(first); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
		t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"cancelled\\\"\"", m.Error, m.Result)
	}
	p.until("word of the other", func(m received) bool { return strings.Contains(string(m.Params), "Your message waits in Deskhand") })
	held := false
	if _, err := o.ChangeQueued(t.Context(), id, list()[0].ID, sessions.QueuePatch{Held: &held}); err != nil {
		t.Fatal(err)
	}
	if m := p.answer(second); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"end_turn"`) {
		t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"end_turn\\\"\"", m.Error, m.Result)
	}
}

// TestOpeningAgainAnswersTheRunningPrompt: an editor that reopens an open session still gets the end of its turn.
func TestOpeningAgainAnswersTheRunningPrompt(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			o := openFixture(t)
			p := o.editor(everything)
			id := p.begin()
			turn := p.prompt(id, "slow")
			p.until("words", func(m received) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
			p.call(method, fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, o.work))
			if s, err := o.Get(t.Context(), id); err != nil || s.Turn == nil {
				t.Fatalf("the turn runs: %+v, %v", s, err)
			}
			p.mu.Lock()
			answered := slices.ContainsFunc(p.got, func(m received) bool { return m.Method == "" && string(m.ID) == turn })
			p.mu.Unlock()
			if answered {
				t.Error("its prompt was answered before it ended")
			}
			if said, want := p.said("user_message_chunk"), map[string]string{"session/load": "slow"}[method]; said != want {
				t.Errorf("it hears %q, want %q", said, want)
			}
			if err := o.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if m := p.answer(turn); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
				t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"cancelled\\\"\"", m.Error, m.Result)
			}
		})
	}
}

// TestAnAgentsErrorReachesTheEditorWhole: the editor gets the data of an error, which names the cause of most errors.
func TestAnAgentsErrorReachesTheEditorWhole(t *testing.T) {
	o := openFixture(t)
	p := o.editor(everything)
	id := p.begin()
	m := p.answer(p.prompt(id, "error"))
	if want := `{"details":"the prompt asked for an error"}`; m.Error == nil || m.Error.Code != -32603 || string(m.Error.Data) != want {
		t.Errorf("the prompt is answered with %+v, want the data %s", m.Error, want)
	}
}

// TestANewSessionThatTheAgentRefusesTellsWhy: the reason stands in the data of the agent's error.
func TestANewSessionThatTheAgentRefusesTellsWhy(t *testing.T) {
	o := openFixture(t)
	o.agents(`{"agents":[{"id":"x","command":"sh","args":["-c",` + strconv.Quote(`read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error","data":{"details":"the licence has run out"}}}'; cat >/dev/null`) + `]}]}`)
	p := o.editor(nothing)
	m := p.answer(p.send("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, o.work)))
	if m.Error == nil || !strings.Contains(m.Error.Message, "the licence has run out") {
		t.Errorf("session/new of an agent that refuses it: got %+v, want an error that says that the licence has run out", m.Error)
	}
}

// TestABrokenFileOfAgentsIsNamed: an editor is told which file is broken, and at which line.
func TestABrokenFileOfAgentsIsNamed(t *testing.T) {
	o := openFixture(t)
	file := o.agents("{\n \"agents\": [\n  {\"id\": \"x\", \"command\": \"true\",}\n ]\n}\n")
	p := o.plainEditor()
	m := p.answer(p.send("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`))
	if m.Error == nil || !strings.Contains(m.Error.Message, file+", line 3: ") {
		t.Errorf("initialize with a broken agents.json: got %+v, want an error that names %s and its line", m.Error, file)
	}
}

// agents writes agents.json, and lets editors begin with the agent x.
func (o *fixture) agents(content string) (file string) {
	o.t.Helper()
	o.agent, file = "x", filepath.Join(filepath.Dir(o.work), "agents.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return file
}
