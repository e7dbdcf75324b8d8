package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// unknownAgent writes an agent into agents.json that the catalogue does not know; it is the demo agent.
func unknownAgent(t testing.TB, dir string) {
	t.Helper()
	agent := agenttest.Program(t)
	file, _ := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "mine", "command": agent, "args": []string{"demo-agent"}}}})
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
}

// there writes a file into the directory.
func (d *desk) there(name, text string) {
	d.t.Helper()
	at := filepath.Join(d.work, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func hook(command string) string {
	text, _ := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}}}}})
	return string(text)
}

// mine begins a conversation with the unknown agent.
func (d *desk) mine() session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "mine", Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func openMine(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	unknownAgent(t, dir)
	d := open(t, dir)
	d.there(".git/HEAD", "ref: refs/heads/main\n")
	return d
}

func TestTrustOfFilesThatAgentReadsIsAskedBeforeStart(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	d.there(".claude/settings.json", hook("sh tools/one.sh"))
	d.there("tools/one.sh", "echo one\n")
	d.there("CLAUDE.md", "Be kind.\n")
	s := d.mine()
	turn := d.prompt(s.ID, "mcp")
	r := d.request(s.ID)
	if r.Kind != "trust" || len(r.Executables) != 2 || len(r.Options) != 3 || r.Options[2].ID != "decline" || r.Options[2].Name != "Do not start" {
		t.Fatalf("request: got %+v, want trust of 2 executables, the third option to decline", r)
	}
	if e := r.Executables[0]; e.Kind != "hook" || e.Name != ".claude/settings.json Stop" || !strings.Contains(e.Detail, "command: sh tools/one.sh") || e.Approved {
		t.Errorf("executable: got %+v, want the hook, not approved", e)
	}
	if e := r.Executables[1]; e.Kind != "script" || e.Name != "tools/one.sh" || e.Detail != "echo one\n" {
		t.Errorf("executable: got %+v, want the script of the hook", e)
	}
	if sent := d.sent(s.ID); sent != "" || len(d.set.List()) > 0 {
		t.Errorf("something was started: %s", sent)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "without"}, "window"), "answer.unknown_option")
	d.answer(r, requests.Answer{OptionID: "approve"})
	if last := lastTurn(d.idle(s.ID)); last.ID != turn.ID || last.StopReason != "end_turn" {
		t.Errorf("last turn: got %+v, want %s with end_turn", last, turn.ID)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID) // no person is asked again

	d.there("tools/one.sh", "echo one\necho two\n")
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	again := d.request(s.ID)
	if e := again.Executables[0]; len(again.Executables) != 1 || e.Before != "echo one\n" || e.Detail != "echo one\necho two\n" {
		t.Errorf("executables after a change: got %+v, want the script with its text of before", again.Executables)
	}
	d.answer(again, requests.Answer{OptionID: "once"})
	d.ready(s.ID)
	if list, err := d.Launch().Executables(t.Context(), d.work); err != nil || len(list) != 2 || !list[0].Approved || list[1].Approved {
		t.Errorf("Executables(%s): got %+v, %v; want the hook approved and the script, approved once, not", d.work, list, err)
	}
	d.sameAsRebuilt(s.ID)
}

func TestTrustIsNotAskedForDemoAgent(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.there(".claude/settings.json", hook("x"))
	d.ready(d.create().ID)
}

// Working counts no turn that waits for a person, and a request without a turn changes no other turn.
func TestWorkingTurnsLeaveOutThoseThatWait(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	d.there(".claude/settings.json", hook("x"))
	d.request(d.mine().ID) // a trust request before the first prompt
	works := d.create()
	d.prompt(works.ID, "slow")
	d.until("work", func() bool { return d.Running() == 1 && d.Working() == 1 })
	asks := d.create()
	d.prompt(asks.ID, "please write a note")
	r := d.request(asks.ID)
	d.until("waiting", func() bool { return d.Running() == 2 && d.Working() == 1 })
	if err := d.Cancel(t.Context(), works.ID); err != nil {
		t.Fatal(err)
	}
	d.until("the end", func() bool { return d.Running() == 1 && d.Working() == 0 })
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "reject_once")})
	d.idle(asks.ID)
}

func TestTrustDeclinedStartsNoAgent(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	d.there(".mcp.json", `{"mcpServers":{"a":{"command":"npx"}}}`)
	s := d.mine()
	turn := d.prompt(s.ID, "mcp")
	d.answer(d.request(s.ID), requests.Answer{OptionID: "decline"})
	tr := d.idle(s.ID)
	if last := lastTurn(tr); last.ID != turn.ID || last.StopReason != "agent_exited" || tr.Requests[0].Status != "rejected" {
		t.Errorf("after decline: got turn %+v, requests %+v; want turn %s ended with agent_exited, the request rejected", last, tr.Requests, turn.ID)
	}
	d.until("the end", func() bool { return d.get(s.ID).Phase == lifecycle.Closed })
	if now := d.get(s.ID); now.Exit == nil || now.Exit.Problem != "trust.declined" || now.Exit.Params["path"] != d.work || now.Waiting != 0 {
		t.Errorf("exit: got %+v, want trust.declined of %s", now.Exit, d.work)
	}
	if sent := d.sent(s.ID); sent != "" || len(d.set.List()) > 0 {
		t.Errorf("something was started: %s", sent)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.answer(d.request(s.ID), requests.Answer{OptionID: "approve"})
	d.ready(s.ID)
	if now := d.get(s.ID); now.Exit != nil {
		t.Errorf("exit after approval: got %+v, want none", now.Exit)
	}
	d.sameAsRebuilt(s.ID)
}

func TestTrustApprovedOneByOneEndsRequest(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	for n := range 100 {
		d.there(fmt.Sprintf(".claude/hooks/%02d.sh", n), fmt.Sprint("echo ", n))
	}
	s := d.mine()
	r := d.request(s.ID)
	if len(r.Executables) != 100 {
		t.Fatalf("executables: got %d, want 100", len(r.Executables))
	}
	for i, e := range r.Executables {
		if now := d.get(s.ID); now.Phase != lifecycle.Waiting {
			t.Fatalf("it has started with %d of them", i)
		}
		if err := d.Launch().Approve(t.Context(), d.work, []string{e.Hash}); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			break
		}
	}
	var rest []string
	for _, e := range r.Executables[4:] {
		rest = append(rest, e.Hash)
	}
	if err := d.Launch().Approve(t.Context(), d.work, rest); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID)
}
