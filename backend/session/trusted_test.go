package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/session"
)

// unknownAgent writes an agent into agents.json that nothing is known of. It is the demo agent in truth.
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

// mine begins a conversation with the agent that nothing is known of.
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

func TestWhatTheAgentReadsIsAskedBeforeItStarts(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	d.there(".claude/settings.json", hook("sh tools/one.sh"))
	d.there("tools/one.sh", "echo one\n")
	d.there("CLAUDE.md", "Be kind.\n")
	s := d.mine()
	turn := d.prompt(s.ID, "mcp")
	r := d.request(s.ID)
	if r.Kind != "trust" || len(r.Executables) != 2 || len(r.Options) != 3 || r.Options[2].ID != "decline" || r.Options[2].Name != "Do not start" {
		t.Fatalf("%+v", r)
	}
	if e := r.Executables[0]; e.Kind != "hook" || e.Name != ".claude/settings.json Stop" || !strings.Contains(e.Detail, "command: sh tools/one.sh") || e.Approved {
		t.Errorf("%+v", e)
	}
	if e := r.Executables[1]; e.Kind != "script" || e.Name != "tools/one.sh" || e.Detail != "echo one\n" {
		t.Errorf("%+v", e)
	}
	if sent := d.sent(s.ID); sent != "" || len(d.set.List()) > 0 {
		t.Errorf("something was started: %s", sent)
	}
	refused(t, d.Answer(t.Context(), r.ID, session.Answer{OptionID: "without"}, "window"), "answer.unknown_option")
	d.answer(r, session.Answer{OptionID: "approve"})
	if last := lastTurn(d.idle(s.ID)); last.ID != turn.ID || last.StopReason != "end_turn" {
		t.Errorf("%+v", last)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID) // nobody is asked again

	d.there("tools/one.sh", "echo one\necho two\n")
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	again := d.request(s.ID)
	if e := again.Executables[0]; len(again.Executables) != 1 || e.Before != "echo one\n" || e.Detail != "echo one\necho two\n" {
		t.Errorf("%+v", again.Executables)
	}
	d.answer(again, session.Answer{OptionID: "once"})
	d.ready(s.ID)
	if list, err := d.Trust(t.Context(), d.work); err != nil || len(list) != 2 || !list[0].Approved || list[1].Approved {
		t.Errorf("%+v %v", list, err)
	}
	d.sameAsRebuilt(s.ID)
}

func TestTheDemoAgentReadsNothing(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.there(".claude/settings.json", hook("x"))
	d.ready(d.create().ID)
}

// A turn that waits for a person does not work, and a request without a turn makes no other one wait.
func TestTurnsThatWorkAreThoseThatWaitForNobody(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	d.there(".claude/settings.json", hook("x"))
	d.request(d.mine().ID) // of trust, and nothing was said yet
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
	d.answer(r, session.Answer{OptionID: optionOf(t, r, "reject_once")})
	d.idle(asks.ID)
}

func TestDeclinedItDoesNotStart(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	d.there(".mcp.json", `{"mcpServers":{"a":{"command":"npx"}}}`)
	s := d.mine()
	turn := d.prompt(s.ID, "mcp")
	d.answer(d.request(s.ID), session.Answer{OptionID: "decline"})
	tr := d.idle(s.ID)
	if last := lastTurn(tr); last.ID != turn.ID || last.StopReason != "agent_exited" || tr.Requests[0].Status != "rejected" {
		t.Errorf("%+v %+v", last, tr.Requests)
	}
	d.until("the end", func() bool { return d.get(s.ID).Phase == session.Closed })
	if now := d.get(s.ID); now.Exit == nil || now.Exit.Problem != "trust.declined" || now.Exit.Params["path"] != d.work || now.Waiting != 0 {
		t.Errorf("%+v", now.Exit)
	}
	if sent := d.sent(s.ID); sent != "" || len(d.set.List()) > 0 {
		t.Errorf("something was started: %s", sent)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.answer(d.request(s.ID), session.Answer{OptionID: "approve"})
	d.ready(s.ID)
	if now := d.get(s.ID); now.Exit != nil {
		t.Errorf("%+v", now.Exit)
	}
	d.sameAsRebuilt(s.ID)
}

// What changes while a person reads is asked about before anything starts.
func TestWhatChangesBeforeTheStartIsAskedAgain(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	for _, option := range []string{"approve", "once"} {
		d.there(".claude/settings.json", hook("one of "+option))
		s := d.mine()
		r := d.request(s.ID)
		d.there(".claude/settings.json", hook("two of "+option))
		d.answer(r, session.Answer{OptionID: option})
		again := d.request(s.ID)
		if e := again.Executables[0]; again.ID == r.ID || !strings.Contains(e.Detail, "two of "+option) || option == "approve" && !strings.Contains(e.Before, "one of approve") {
			t.Errorf("%s: %+v", option, e)
		}
		d.answer(again, session.Answer{OptionID: option})
		d.ready(s.ID)
	}
}

// Deskhand's own entries are asked about by themselves: without those the agent can start.
func TestWhatIsGivenAndWhatIsReadAreTwoQuestions(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	d.there(".claude/settings.json", hook("x"))
	d.mcpFile(`{"one":` + saysEntry(t, "one") + `}`)
	s := d.mine()
	d.answer(d.request(s.ID), session.Answer{OptionID: "approve"})
	d.until("the second question", func() bool { return d.get(s.ID).Waiting > 0 })
	r := d.request(s.ID)
	if len(r.Executables) != 1 || r.Executables[0].Kind != "mcp" || r.Options[2].ID != "without" {
		t.Fatalf("%+v", r)
	}
	d.there(".claude/settings.json", hook("y"))
	d.answer(r, session.Answer{OptionID: "without"})
	last := d.request(s.ID) // what changed during the second question
	if len(last.Executables) != 1 || last.Executables[0].Kind != "hook" || !strings.Contains(last.Executables[0].Before, "command: x") {
		t.Fatalf("%+v", last)
	}
	d.answer(last, session.Answer{OptionID: "approve"})
	d.ready(s.ID)
	if text := d.tools(s.ID); !strings.Contains(text, "no MCP servers") {
		t.Errorf("%s", text)
	}
}

func TestApprovedOneByOneElsewhere(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	for n := range 100 {
		d.there(fmt.Sprintf(".claude/hooks/%02d.sh", n), fmt.Sprint("echo ", n))
	}
	s := d.mine()
	r := d.request(s.ID)
	if len(r.Executables) != 100 {
		t.Fatalf("%d", len(r.Executables))
	}
	for i, e := range r.Executables {
		if now := d.get(s.ID); now.Phase != session.Waiting {
			t.Fatalf("it has started with %d of them", i)
		}
		if err := d.Approve(t.Context(), d.work, []string{e.Hash}); err != nil {
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
	if err := d.Approve(t.Context(), d.work, rest); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID)
}

func TestApprovalsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	d := openMine(t)
	ctx := t.Context()
	for _, command := range []string{"one", "two"} {
		d.there(".claude/settings.json", hook(command))
		list, err := d.Trust(ctx, d.work)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v %v", list, err)
		}
		if err := d.Approve(ctx, d.work, []string{list[0].Hash}); err != nil {
			t.Fatal(err)
		}
	}
	d.there(".mcp.json", `{"a":1}`)
	list, err := d.Trust(ctx, d.work)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	if err := d.Approve(ctx, d.work, []string{list[0].Hash}); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{"", d.work, d.work + "/"} {
		got, err := d.Approvals(ctx, directory)
		if err != nil || len(got) != 3 || got[0].Kind != "agent_config" || got[0].Directory != d.work || got[0].ApprovedAt.IsZero() {
			t.Fatalf("%q: %+v %v", directory, got, err)
		}
		if !strings.Contains(got[1].Detail, "two") || got[1].Older || !got[2].Older || !strings.Contains(got[2].Detail, "one") {
			t.Errorf("%+v", got)
		}
	}
	if got, err := d.Approvals(ctx, "/nowhere"); err != nil || len(got) != 0 {
		t.Errorf("%+v %v", got, err)
	}
	_, err = d.Approvals(ctx, "relative")
	refused(t, err, "directory.relative")
	if err := os.RemoveAll(d.work); err != nil {
		t.Fatal(err)
	}
	if err := d.RevokeAll(ctx, d.work); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Approvals(ctx, ""); err != nil || len(got) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

// A skill that was words is asked about again when it has commands that its agent runs, or gives leave for some.
func TestSkillThatIsNoLongerOnlyText(t *testing.T) {
	t.Parallel()
	for name, manual := range map[string]string{
		"leave":    "---\nname: s\ndescription: What it is.\nallowed-tools: Bash\n---\nDo it.\n",
		"hooks":    "---\nname: s\ndescription: What it is.\nhooks:\n  Stop: x\n---\nDo it.\n",
		"commands": "---\nname: s\ndescription: What it is.\n---\nDo it: !`id`.\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openSkilled(t, t.TempDir())
			d.there("kept/s/SKILL.md", "---\nname: s\ndescription: What it is.\n---\nDo it.\n")
			d.there(".sandbox-agent/config/skills.json", `{"kept":{"sources":[{"type":"local","source":"kept"}]}}`)
			first := d.start("claude")
			d.until("a question", func() bool { return d.get(first.ID).Waiting > 0 })
			d.answer(d.request(first.ID), session.Answer{OptionID: "approve"})
			d.ready(first.ID)
			d.ready(d.start("claude").ID)

			d.there("kept/s/SKILL.md", manual)
			second := d.start("claude")
			d.until("a second question", func() bool { s := d.get(second.ID); return s.Waiting > 0 || s.Phase == session.Ready })
			if d.get(second.ID).Waiting == 0 {
				t.Fatal("it was not asked")
			}
			if r := d.request(second.ID); len(r.Executables) != 1 || !strings.Contains(r.Executables[0].Detail, "s/SKILL.md") {
				t.Errorf("%+v", r.Executables)
			}
		})
	}
}

// A skill that was linked for one session, and that another one of its directory starts without, cannot be kept from that: it is asked about as
// what its agent reads by itself.
func TestASkillOfAnotherSessionThatWasTurnedDown(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	d.there(".git/HEAD", "ref: refs/heads/main\n")
	d.there("kept/s/SKILL.md", "---\nname: s\ndescription: What it is.\n---\nDo it.\n")
	d.there("kept/s/run.sh", "#!/bin/sh\n")
	d.there(".sandbox-agent/config/skills.json", `{"kept":{"sources":[{"type":"local","source":"`+filepath.ToSlash(filepath.Join(d.work, "kept"))+`"}]}}`)
	answer := func(id, option string) session.Request {
		t.Helper()
		r := d.request(id)
		d.answer(r, session.Answer{OptionID: option})
		return r
	}
	first := d.start("claude")
	answer(first.ID, "once")
	d.ready(first.ID)
	link := filepath.Join(d.work, ".claude", "skills", "s")
	if _, err := os.Stat(link); err != nil {
		t.Fatal(err)
	}

	second := d.start("claude")
	asked := answer(second.ID, "without")
	d.until("another question, or readiness", func() bool {
		s := d.get(second.ID)
		return s.Phase == session.Ready || s.Waiting > 0 && d.request(second.ID).ID != asked.ID
	})
	if n := len(d.set.List()); n != 1 {
		t.Fatalf("%d agents run", n)
	}
	r := answer(second.ID, "decline")
	if len(r.Executables) == 0 || !strings.HasPrefix(r.Executables[0].Name, ".claude/skills/s/") {
		t.Errorf("%+v", r.Executables)
	}
	d.until("end", func() bool { return d.get(second.ID).Phase == session.Closed })
	if s := d.get(second.ID); s.Exit == nil || s.Exit.Problem != "trust.declined" {
		t.Errorf("%+v", s.Exit)
	}

	third := d.start("claude") // which is to have it as well
	answer(third.ID, "once")
	d.until("readiness", func() bool { s := d.get(third.ID); return s.Phase == session.Ready || s.Waiting > 0 })
	if s := d.get(third.ID); s.Waiting > 0 {
		t.Errorf("it was asked twice: %+v", d.request(third.ID).Executables)
	}
	for _, id := range []string{first.ID, third.ID} { // what starts alone again starts without it
		if err := d.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	d.gone(".claude")
	if err := d.Restart(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	answer(second.ID, "without")
	d.ready(second.ID)
}

// The links that a session has for its skills are no news to another one.
func TestLinkedSkillsAreNotAskedAboutTwice(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	d.there(".git/HEAD", "ref: refs/heads/main\n")
	d.there("kept/s/SKILL.md", "---\nname: s\ndescription: What it is.\nallowed-tools: Bash\n---\nDo it.\n")
	d.there("kept/s/run.sh", "#!/bin/sh\n")
	d.there(".sandbox-agent/config/skills.json", `{"kept":{"sources":[{"type":"local","source":"`+filepath.ToSlash(filepath.Join(d.work, "kept"))+`"}]}}`)
	first := d.start("claude")
	for d.get(first.ID).Phase != session.Ready {
		d.until("a question or readiness", func() bool { s := d.get(first.ID); return s.Waiting > 0 || s.Phase == session.Ready })
		if d.get(first.ID).Waiting > 0 {
			r := d.request(first.ID)
			if slices.ContainsFunc(r.Executables, func(e session.Executable) bool { return e.Kind != "skill" }) {
				t.Fatalf("%+v", r.Executables)
			}
			d.answer(r, session.Answer{OptionID: "approve"})
		}
	}
	if _, err := os.Stat(filepath.Join(d.work, ".claude/skills/s/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	d.ready(d.start("claude").ID)
	if list, err := d.Trust(t.Context(), d.work); err != nil || len(list) != 1 {
		t.Errorf("%+v %v", list, err)
	}
}
