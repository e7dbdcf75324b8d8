package editor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sessions "deskhand/backend/session"
)

const (
	nothing    = `{}`
	everything = `{"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}},"_meta":{"terminal_output":true}}`
)

func TestWhatIsNoMessageIsAnswered(t *testing.T) {
	p := openOffice(t).plainEditor()
	for line, code := range map[string]int{`{"broken`: -32700, `[{"id":1,"method":"x"}]`: -32600, `7`: -32600, `{"jsonrpc":"2.0"}`: -32600} {
		p.mu.Lock()
		p.got = nil
		p.mu.Unlock()
		p.say(line)
		m := p.until("refusal of "+line, func(m received) bool { return string(m.ID) == "null" })
		if m.Error == nil || m.Error.Code != code {
			t.Errorf("%s: %+v", line, m.Error)
		}
	}
	p.say(``) // a blank line is nothing
	p.say(`{"jsonrpc":"2.0","id":99,"result":{}}`)
	p.say(`{"jsonrpc":"2.0","method":"_somebody/else"}`)
	if m := p.answer(p.send("session/unheard_of", `{}`)); m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("%+v", m)
	}
	if m := p.answer(p.send("session/prompt", `{"sessionId":"none","prompt":[]}`)); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("%+v", m)
	}
	if m := p.answer(p.send("session/new", `{"cwd":"relative"}`)); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("%+v", m)
	}
}

// An agent that cannot be started is an error of session/new, and leaves no session behind.
func TestASessionThatDoesNotStartIsNone(t *testing.T) {
	o := openOffice(t)
	p := o.editor(nothing)
	gone := filepath.Join(o.work, "gone")
	if m := p.answer(p.send("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, gone))); m.Error == nil || !strings.Contains(m.Error.Message, gone) {
		t.Errorf("%+v", m)
	}
	page, err := o.List(t.Context(), false, "", 10)
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%+v, %v", page.Items, err)
	}
}

// What a directory would start is asked in the editor as well: so the session has a name before its agent is there. An editor that allows
// whatever it is asked has approved nothing.
func TestTrustIsAskedInTheEditor(t *testing.T) {
	o := openOffice(t)
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
		t.Errorf("%s", asked.Params)
	}
	if strings.Contains(string(asked.Params), `"kind":"allow_always"`) || strings.Count(string(asked.Params), `"kind":"allow_once"`) != 1 {
		t.Errorf("%s", asked.Params)
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"approve"}}}`, asked.ID))
	p.begin() // which is asked for the same, and was read behind that answer
	asked = p.until("question", func(m received) bool { return m.Method == "session/request_permission" })
	inbox, err := o.Inbox(t.Context())
	if err != nil || len(inbox) != 2 {
		t.Fatalf("%+v, %v", inbox, err)
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"without"}}}`, asked.ID))
	for _, r := range inbox {
		if r.Session == id {
			if err := o.Answer(t.Context(), r.ID, sessions.Answer{OptionID: "without"}, "window"); err != nil {
				t.Error(err)
			}
		}
	}
	if m := p.answer(p.prompt(id, "echo here")); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	if !strings.Contains(p.said("agent_message_chunk"), "echo here") {
		t.Errorf("it said %q", p.said("agent_message_chunk"))
	}
}

// What an editor cannot show waits in Deskhand, and the editor is told of it.
func TestAnEditorWithoutFormsIsToldOfOne(t *testing.T) {
	o := openOffice(t)
	p := o.editor(nothing)
	id := p.begin()
	turn := p.prompt(id, "form")
	asked := p.until("pointer", func(m received) bool { return m.Method == "session/request_permission" })
	inbox, err := o.Inbox(t.Context())
	if err != nil || len(inbox) != 1 || inbox[0].Kind != "form" {
		t.Fatalf("%+v, %v", inbox, err)
	}
	if err := o.Answer(t.Context(), inbox[0].ID, sessions.Answer{Action: "decline"}, "window"); err != nil {
		t.Fatal(err)
	}
	p.until("withdrawal", func(m received) bool {
		var w struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		return m.Method == "$/cancel_request" && json.Unmarshal(m.Params, &w) == nil && string(w.RequestID) == string(asked.ID)
	})
	if m := p.answer(turn); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"cancelled"}}`, asked.ID)) // as it has to

	turn = p.prompt(id, "visit")
	asked = p.until("second pointer", func(m received) bool {
		return m.Method == "session/request_permission" && string(m.ID) != string(asked.ID)
	})
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"deskhand-decline"}}}`, asked.ID))
	if m := p.answer(turn); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
}

// A program that the agent has Deskhand run shows in the editor: as output in _meta, or as text.
func TestProgramsAreShown(t *testing.T) {
	o := openOffice(t)
	for _, takes := range []string{everything, nothing} {
		p := o.editor(takes)
		id := p.begin()
		if m := p.answer(p.prompt(id, "spawn")); m.Error != nil {
			t.Fatalf("%+v", m.Error)
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

// A request that the editor takes back is answered, and what it began is let go of.
func TestRequestsAreTakenBack(t *testing.T) {
	o := openOffice(t)
	p := o.editor(everything)
	id := p.begin()
	turn := p.prompt(id, "slow")
	p.until("words", func(m received) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
	p.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + turn + `}}`)
	if m := p.answer(turn); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
		t.Errorf("%+v %s", m.Error, m.Result)
	}
	turn = p.prompt(id, "slow")
	p.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id))
	if m := p.answer(turn); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
		t.Errorf("%+v %s", m.Error, m.Result)
	}
	if _, err := o.Get(t.Context(), id); err != nil {
		t.Error("closing deletes nothing: ", err)
	}
	if m := p.answer(p.prompt(id, "echo")); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("%+v", m)
	}
}

// The end of the editor in the middle of a turn ends nothing but the editor.
func TestTheTurnOutlivesTheEditor(t *testing.T) {
	o := openOffice(t)
	p := o.editor(everything)
	id := p.begin()
	p.prompt(id, "slow")
	p.until("words", func(m received) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
	p.hangUp()
	if s, err := o.Get(t.Context(), id); err != nil || s.Turn == nil || s.Turn.State != "running" {
		t.Errorf("%+v, %v", s.Turn, err)
	}

	again := o.editor(everything)
	again.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, o.work))
	if said := again.said("user_message_chunk"); said != "slow" {
		t.Errorf("it hears that was said: %q", said)
	}
	again.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
	if m := again.answer(again.prompt(id, "echo after")); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
}

// A session that is deleted elsewhere is closed here.
func TestADeletedSessionIsClosed(t *testing.T) {
	o := openOffice(t)
	p := o.editor(everything)
	id := p.begin()
	turn := p.prompt(id, "slow")
	p.until("words", func(m received) bool { return strings.Contains(string(m.Params), "agent_message_chunk") })
	if err := o.Erase(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.answer(turn)
	if m := p.answer(p.prompt(id, "echo")); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("%+v", m)
	}
}

// Signing in is offered to editors that have a terminal for it.
func TestLoginIsOffered(t *testing.T) {
	o := openOffice(t)
	for capabilities, want := range map[string]string{nothing: `"authMethods":[]`, everything: `"args":["acp","--login"]`} {
		p := o.plainEditor()
		if can := p.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`); !strings.Contains(string(can), want) {
			t.Errorf("%s: %s", capabilities, can)
		}
	}
}

// A change of settings that waits for an agent which is not there yet is answered when its session goes.
func TestAChangeThatWaitsIsAnsweredWhenTheSessionGoes(t *testing.T) {
	o := openOffice(t)
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
		t.Errorf("%+v", m)
	}
}

// So is whatever else was asked of it and not begun.
func TestWhatWaitsIsAnsweredWhenTheSessionGoes(t *testing.T) {
	o := openOffice(t)
	p := o.editor(everything)
	id := p.begin()
	var sent []string
	p.send("session/close", fmt.Sprintf(`{"sessionId":%q}`, id))
	for range 20 {
		sent = append(sent, p.send("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"brief","value":true}`, id)))
	}
	for _, one := range sent {
		if m := p.answer(one); m.Error == nil {
			t.Errorf("%+v", m)
		}
	}
}

// An editor that goes away while its agent starts leaves nothing behind, unless somebody has begun something there at the window.
func TestAnEditorThatGoesTakesNobodysWork(t *testing.T) {
	t.Setenv("DESKHAND_TEST_MUTE", "1")
	o := openOffice(t)
	list := func() []sessions.Session {
		page, err := o.List(t.Context(), false, "", 10)
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
		q := sessions.Query{Gen: o.Feed().Gen(), Wait: time.Minute, Types: []string{"session.upsert"}}
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

// behind has the editor prompt behind a turn that somebody else began, and stops that one: the prompt is held then.
func (o *office) behind(p *pad, id, text string) (waits, item string) {
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

// held opens a session of an editor's in which its prompt is held, and nothing runs any more.
func (o *office) held(text string) (p *pad, id, waits, item string) {
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

// A prompt that waits behind a turn of the window's, and is held there, is said to do so, and can be taken back.
func TestAPromptThatIsHeld(t *testing.T) {
	for name, capabilities := range map[string]string{"with notices": everything, "without": nothing} {
		t.Run(name, func(t *testing.T) {
			o := openOffice(t)
			p := o.editor(capabilities)
			id := p.begin()
			waits, _ := o.behind(p, id, "echo mine")
			p.until("word of it", func(m received) bool {
				return strings.Contains(string(m.Params), "Your message waits in Deskhand") && strings.Contains(string(m.Params), "was stopped")
			})
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
			if m := p.answer(waits); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
				t.Errorf("%+v %s", m.Error, m.Result)
			}
		})
	}
}

// A prompt that begins while the editor takes its session up again: it has left the queue, and the journal that was read knows nothing of it yet.
func TestAPromptThatBeginsWhileItIsLookedFor(t *testing.T) {
	o := openOffice(t)
	p, id, waits, item := o.held("echo mine")
	below := *o.served.Load()
	var once sync.Once
	above := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/queue") {
			once.Do(func() { //nolint:contextcheck // it is the call's
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
		t.Errorf("%+v %s", m.Error, m.Result)
	}
}

// What became of prompts that wait while Deskhand was started again: one is held, one was deleted.
func TestPromptsThatWaitOverARestart(t *testing.T) {
	o := openOffice(t)
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
		t.Errorf("%+v %s", m.Error, m.Result)
	}
	p.until("word of the other", func(m received) bool { return strings.Contains(string(m.Params), "Your message waits in Deskhand") })
	held := false
	if _, err := o.ChangeQueued(t.Context(), id, list()[0].ID, sessions.QueuePatch{Held: &held}); err != nil {
		t.Fatal(err)
	}
	if m := p.answer(second); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"end_turn"`) {
		t.Errorf("%+v %s", m.Error, m.Result)
	}
}

// An editor that opens again what it has open hears the end of the turn that it waits for.
func TestOpeningAgainAnswersTheRunningPrompt(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			o := openOffice(t)
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
				t.Errorf("%+v %s", m.Error, m.Result)
			}
		})
	}
}

// TestAnAgentsErrorReachesTheEditorWhole: what went wrong stands in the data of most errors, and editors show it.
func TestAnAgentsErrorReachesTheEditorWhole(t *testing.T) {
	o := openOffice(t)
	p := o.editor(everything)
	id := p.begin()
	m := p.answer(p.prompt(id, "error"))
	if want := `{"details":"the prompt asked for an error"}`; m.Error == nil || m.Error.Code != -32603 || string(m.Error.Data) != want {
		t.Errorf("the prompt is answered with %+v, want the data %s", m.Error, want)
	}
}
