package demoagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestConfigOptions(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		set := func(id string, value any) exchange {
			return p.call("session/set_config_option", map[string]any{"sessionId": session, "configId": id, "value": value})
		}
		values := func(e exchange) string {
			t.Helper()
			var response struct{ ConfigOptions []configOption }
			p.decode(e.result, &response)
			var out []string
			for _, option := range response.ConfigOptions {
				out = append(out, fmt.Sprintf("%s(%s %s)=%v", option.ID, option.Category, option.Type, option.CurrentValue))
			}
			return strings.Join(out, " ")
		}
		if got := values(set("model", "demo-small")); got != "mode(mode select)=ask model(model select)=demo-small "+
			"thought_level(thought_level select)=low brief(model_config boolean)=false" {
			t.Error(got)
		}
		set("thought_level", "off")
		set("brief", true)
		e := set("mode", "code")
		if len(e.updates) != 2 {
			t.Errorf("a new mode was told by %s", e.updates)
		}
		turn := p.prompt(session, "go") // this mode asks nothing
		turn.wantSaid(t, "The edit is written; in this mode I need not ask.")
		if turn.thought != "" || strings.Contains(turn.said, "help") {
			t.Errorf("thought %q, said %s", turn.thought, turn.said)
		}
		var context usageUpdate
		p.decode(turn.updates[len(turn.updates)-1], &context)
		if context.Size != 32_000 || context.Used == 0 {
			t.Errorf("usage %+v", context)
		}
		for id, value := range map[string]any{"mode": "yolo", "model": true, "brief": "maybe", "thought_level": 7, "other": "x"} {
			if e := set(id, value); e.err == nil || e.err.Code != -32602 {
				t.Errorf("set(%s, %v): got err %v, want err not nil and e.err.Code -32602", id, value, e.err)
			}
		}
	})
}

func TestPlanMode(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		e := p.mustCall("session/set_mode", map[string]any{"sessionId": session, "modeId": "plan"})
		if len(e.updates) != 2 {
			t.Errorf("the mode was told by %s", e.updates)
		}
		p.prompt(session, "go").wantSaid(t, "In **plan mode** I change nothing.")
		wantFile(t, cwd, "")
	})
}

func TestHighThought(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		p.mustCall("session/set_config_option", map[string]any{"sessionId": session, "configId": "thought_level", "value": "high"})
		p.onRequest = p.selects(rejectOnce)
		if turn := p.prompt(session, "go"); !strings.Contains(turn.thought, longThought) {
			t.Errorf("thought %q", turn.thought)
		}
	})
}

// TestBooleanAsSelect: a client that knows no boolean options gets a choice of on and off.
func TestBooleanAsSelect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		session, _ := p.session(`{"session":{"configOptions":{"boolean":null}}}`)
		e := p.mustCall("session/set_config_option", map[string]any{"sessionId": session, "configId": "brief", "value": "on"})
		if !strings.Contains(string(e.result), `"type":"select","currentValue":"on","options":[{"value":"off"`) {
			t.Errorf("options %s", e.result)
		}
	})
}

// TestAttachmentsOfAPlainPrompt: the answer names the attachments of a prompt, and words in attachments select no step.
func TestAttachmentsOfAPlainPrompt(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		p.onRequest = p.selects(rejectOnce)
		turn := p.turn(p.call("session/prompt", map[string]any{"sessionId": session, "prompt": json.RawMessage(
			`[{"type":"text","text":"Look\n\nAttachments:\n- crash.log\n"},{"type":"image","data":"AAAA","mimeType":"image/png"},` +
				`{"type":"resource_link","uri":"file:///hang","name":"hang"},{"type":"resource","resource":{"uri":"file:///e","text":"error"}},` +
				`{"type":"resource","resource":{"uri":"file:///b","blob":"AAA="}},{"type":"text","text":"slow"},{"type":"hologram"}]`)}))
		turn.wantStop(t, "end_turn")
		for _, want := range []string{
			"> Look\n", "- image image/png, 3 bytes\n", "- link hang, file:///hang\n", "- file file:///e, 5 bytes\n",
			"- file file:///b, 2 bytes\n", "- text, 4 bytes\n", "- a block of the unknown type \"hologram\"\n",
		} {
			turn.wantSaid(t, want)
		}
	})
}

// TestLoadReplays: a restarted agent replays every message and every tool call of the history.
func TestLoadReplays(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.onRequest = p.selects(allowOnce)
		told := []turnSeen{
			p.prompt(session, "Tidy up here, please"), p.prompt(session, "terminal and diff"), p.prompt(session, "burst"), p.prompt(session, "error"),
		}
		p.mustCall("session/set_config_option", map[string]any{"sessionId": session, "configId": "mode", "value": "plan"})
		p.close()

		p = restart(t)
		moved := t.TempDir()
		e := p.mustCall("session/load", map[string]any{"sessionId": session, "cwd": moved, "mcpServers": []any{}})
		p.commands()
		var state sessionState
		p.decode(e.result, &state)
		if state.Modes.CurrentModeID != "plan" || len(state.ConfigOptions) != 4 {
			t.Errorf("state %s", e.result)
		}
		replayed := p.turn(e)
		messages, tools := map[string]string{
			"prompt-1-0": "Tidy up here, please", "prompt-2-0": "terminal and diff", "prompt-3-0": "burst", "prompt-4-0": "error",
		}, map[string]map[string]any{}
		for _, turn := range told {
			maps.Copy(messages, turn.messages)
			maps.Copy(tools, turn.tools)
		}
		if !maps.Equal(replayed.messages, messages) {
			t.Errorf("replayed\n%v\nwant\n%v", replayed.messages, messages)
		}
		if fmt.Sprint(replayed.tools) != fmt.Sprint(tools) {
			t.Errorf("replayed\n%v\nwant\n%v", replayed.tools, tools)
		}
		if got := replayed.kinds; got[0] != "user_message_chunk" || got[len(got)-2] != "session_info_update" || got[len(got)-1] != "usage_update" {
			t.Errorf("kinds %v", got)
		}
		if len(replayed.updates) > 100 {
			t.Errorf("the chunks were not joined: %d updates", len(replayed.updates))
		}
		p.prompt(session, "go").wantSaid(t, "In **plan mode**")
	})
}

// TestLoadAfterCancel: the replay ends cancelled and unfinished tool calls.
func TestLoadAfterCancel(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		id := p.request("session/prompt", promptParams(session, "permission"))
		for m := p.next(); m.Method != "session/request_permission"; {
			m = p.next()
		}
		p.notify("session/cancel", map[string]any{"sessionId": session})
		p.onRequest = func(received) {}
		p.until(id)
		replayed := p.turn(p.mustCall("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}))
		p.commands()
		if got := replayed.tool(t, 0)["status"]; got != "failed" {
			t.Errorf("the tool call is %v", got)
		}
	})
}

func TestLoadWhileRunning(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.request("session/prompt", promptParams(session, "slow"))
		for _, method := range []string{"session/load", "session/resume"} {
			if e := p.call(method, map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}); e.err == nil || e.err.Code != -32600 {
				t.Errorf("%s: got err %v, want err not nil and e.err.Code -32600", method, e.err)
			}
		}
	})
}

func TestResumeReplaysNothing(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.prompt(session, "thought")
		p.close()
		p = restart(t)
		e := p.mustCall("session/resume", map[string]any{"sessionId": session, "cwd": cwd})
		p.commands()
		if len(e.updates) != 0 {
			t.Errorf("updates %s", e.updates)
		}
		if turn := p.prompt(session, "thought"); turn.kinds[0] == "session_info_update" || turn.messages["message-2-1"] == "" {
			t.Errorf("the session did not go on: %v", turn.kinds)
		}
	})
}

func TestList(t *testing.T) {
	inBubble(t, func(p *peer, _, cwd string) {
		t := p.t
		list := func(params map[string]any) listResponse {
			t.Helper()
			var response listResponse
			p.decode(p.mustCall("session/list", params).result, &response)
			return response
		}
		if got := list(nil); len(got.Sessions) != 0 {
			t.Errorf("a session without a prompt is listed: %+v", got)
		}
		var want []string
		for n := range pageSize + 3 {
			id := p.sessionIn(`{}`, cwd, `[]`)
			p.prompt(id, fmt.Sprintf("plan %d", n))
			want = append([]string{id}, want...)
		}
		elsewhere, _ := p.session(`{}`)
		p.prompt(elsewhere, "plan")

		first := list(map[string]any{"cwd": cwd})
		second := list(map[string]any{"cwd": cwd, "cursor": first.NextCursor})
		var got []string
		for _, info := range append(first.Sessions, second.Sessions...) {
			got = append(got, info.SessionID)
		}
		if !slices.Equal(got, want) || second.NextCursor != "" || len(first.Sessions) != pageSize {
			t.Errorf("listed %d + %d, next %q", len(first.Sessions), len(second.Sessions), second.NextCursor)
		}
		if info := list(nil).Sessions[0]; info.SessionID != elsewhere || info.Title != "plan" || info.Cwd == cwd {
			t.Errorf("the newest is %+v", info)
		}
		if _, err := time.Parse(time.RFC3339, first.Sessions[0].UpdatedAt); err != nil {
			t.Error(err)
		}
	})
}

// TestBrokenHistories: broken history files and foreign files affect no other session.
func TestBrokenHistories(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.prompt(session, "thought")
		p.mustCall("session/close", map[string]any{"sessionId": session})
		dir := os.Getenv(stateVariable)
		write := func(name, contents string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(contents), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		broken := "0199a5b0-0000-7000-8000-000000000000"
		write("notes.txt", "mine")
		write(broken+".jsonl", "{")
		write(".save-123", "left over")
		history, err := os.ReadFile(filepath.Join(dir, session+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		write(session+".jsonl", string(history)+"{\"turn\":1,\"upda")
		if e := p.mustCall("session/list", nil); strings.Count(string(e.result), `"sessionId"`) != 1 {
			t.Errorf("list %s", e.result)
		}
		if e := p.call("session/load", map[string]any{"sessionId": broken, "cwd": cwd, "mcpServers": []any{}}); e.err == nil || e.err.Code != -32603 {
			t.Errorf("a broken history: %v", e.err)
		}
		replayed := p.turn(p.mustCall("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}))
		p.commands()
		replayed.wantSaid(t, "I have thought about it.")
	})
}

// TestHistoryCutsWhatIsLong: the history limits the length of a text and of any other block.
func TestHistoryCutsWhatIsLong(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		long := "silent " + strings.Repeat("é", maxText)
		image := strings.Repeat("A", maxText)
		p.call("session/prompt", map[string]any{"sessionId": session, "prompt": json.RawMessage(
			`[{"type":"text","text":"` + long + `"},{"type":"image","mimeType":"image/png","data":"` + image + `"}]`)})
		replayed := p.turn(p.mustCall("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}))
		p.commands()
		kept := replayed.messages["prompt-1-0"]
		want := long[:maxText-1] + "\n\n[262152 more bytes are not kept in the history][image image/png, 196608 bytes, not kept in the history]"
		if kept != want {
			t.Errorf("%d bytes are kept, the end is %q", len(kept), kept[max(0, len(kept)-150):])
		}
	})
}

func TestBounded(t *testing.T) {
	megabyte := json.RawMessage(`"` + strings.Repeat("x", 1<<20-2) + `"`)
	tests := []struct{ turns, want []int }{
		{nil, nil},
		{[]int{1, 2, 3, 4}, []int{1, 2, 3, 4}},
		{[]int{1, 2, 3, 4, 5}, []int{2, 3, 4, 5}},
		{[]int{1, 1, 1, 2, 2, 3}, []int{2, 2, 3}},
		{[]int{1, 2, 2, 2, 2, 2}, []int{2, 2, 2, 2, 2}}, // the newest turn is never cut
	}
	for _, test := range tests {
		var records []record
		for _, turn := range test.turns {
			records = append(records, record{Turn: turn, Update: megabyte})
		}
		var got []int
		for _, r := range bounded(records) {
			got = append(got, r.Turn)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v became %v, want %v", test.turns, got, test.want)
		}
	}
}

// TestSweep: sweep removes unfinished files once they are too old to belong to a running process.
func TestSweep(t *testing.T) {
	t.Setenv(stateVariable, t.TempDir())
	dir := os.Getenv(stateVariable)
	for name, age := range map[string]time.Duration{".save-old": 2 * time.Hour, ".save-new": 0, "old.txt": 2 * time.Hour} {
		path := filepath.Join(dir, name)
		when := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	openStore()
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if !slices.Equal(left, []string{filepath.Join(dir, ".save-new"), filepath.Join(dir, "old.txt")}) {
		t.Errorf("left %s", left)
	}
}

func TestFileURI(t *testing.T) {
	for path, want := range map[string]string{"/a b/ü#?.md": "file:///a%20b/%C3%BC%23%3F.md", "C:/x": "file:///C:/x"} {
		if got := fileURI(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestTitle(t *testing.T) {
	for prompt, want := range map[string]string{
		"Fix it":                    "Fix it",
		"\n  Fix it \n and more":    "Fix it",
		"":                          "Prompt without text",
		strings.Repeat("漢", 61):     strings.Repeat("漢", 59) + "…",
		strings.Repeat("word ", 20): strings.TrimSpace(strings.Repeat("word ", 12)[:59]) + "…",
	} {
		if got := title(prompt); got != want {
			t.Errorf("%q: %q, want %q", prompt, got, want)
		}
	}
}

// TestPieces: cutting a text into chunks loses nothing.
func TestPieces(t *testing.T) {
	for _, whole := range []string{"", "x", helpText(ownWords()), sampleMarkdown, strings.Repeat("漢", 100)} {
		if got := strings.Join(pieces(whole), ""); got != whole {
			t.Errorf("%q became %q", whole, got)
		}
	}
}
