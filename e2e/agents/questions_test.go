//go:build e2e

package agents

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/requests"
	"deskhand/backend/transcript"
	"deskhand/e2e/agents/llm"
)

// Requests that single agents make in a way of their own, beside the requests of all agents in the matrix: a form that is answered by the
// routes of questions, declined and cancelled; a plan; a question on which the agent itself gives up.

// withAgent starts Deskhand with one agent, more of its environment, and a model with a script, and opens a session.
func withAgent(t *testing.T, id string, env map[string]string, script ...llm.Turn) (*follower, *llm.Model, place) {
	t.Helper()
	list := pinned(t)
	i := slices.IndexFunc(list, func(a realAgent) bool { return a.ID == id })
	agent := list[i]
	model := openScripted(t, append(script, shellScript()...))
	p := newPlace(t, model)
	onPath(t, &p, agent, model)
	p.set(env)
	s := startServer(t, p)
	f := follow(s)
	f.open(agent.ID, p)
	return f, model, p
}

// heard tells whether the model was told something as the result of a tool.
func heard(model *llm.Model, text string) bool {
	return slices.ContainsFunc(model.Requests(), func(r llm.Request) bool {
		return slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return m.Role == "tool" && strings.Contains(m.Text, text) })
	})
}

// waits gives the request that waits.
func (f *follower) waits() requests.Request {
	f.s.t.Helper()
	f.until("a request", func() bool { _, ok := f.waiting(); return ok })
	request, _ := f.waiting()
	return request
}

func askFor(word string, ask llm.Ask) llm.Turn {
	return llm.Turn{When: "ask for " + word, Steps: []llm.Step{{Text: "I need to know. ", Ask: &ask}, {Text: "I go on."}}}
}

func TestClaudeAsks(t *testing.T) {
	f, model, _ := withAgent(t, "claude", nil,
		askFor("a colour", llm.Ask{Question: "Which colour?", Options: []string{"Red", "Blue"}}),
		askFor("a shape", llm.Ask{Question: "Which shape?", Options: []string{"Round", "Square"}}),
		askFor("a size", llm.Ask{Question: "Which size?", Options: []string{"Small", "Large"}}),
		askFor("a tone", llm.Ask{Question: "Which tone?", Options: []string{"Loud", "Quiet"}}),
	)
	path := func(r requests.Request) string {
		return "/client/sessions/" + r.Session + "/questions/" + r.ID
	}
	reply := func(r requests.Request, words string) {
		f.s.call("POST", path(r)+"/reply", map[string]any{"answers": [][]string{{words}}}, nil)
	}

	turn := f.prompt("Please ask for a colour.")
	r := f.waits()
	if r.Kind != "form" || !strings.Contains(string(r.Schema), "question_0_custom") {
		t.Fatalf(`waits: got r %+v, want Kind "form" and Schema with "question_0_custom"`, r)
	}
	var inbox struct{ Questions []requests.WaitingQuestion }
	f.s.call("GET", "/client/inbox", nil, &inbox)
	if len(inbox.Questions) != 1 || !strings.HasPrefix(inbox.Questions[0].Prompt, "Which colour?") || !slices.Equal(inbox.Questions[0].Options, []string{"Red", "Blue"}) || !inbox.Questions[0].FreeText {
		t.Errorf(`got inbox.Questions %+v, want 1 in inbox.Questions, inbox.Questions[0].Prompt beginning with "Which colour?", inbox.Questions[0].Options []string{"Red", "Blue"} and inbox.Questions[0].FreeText`, inbox.Questions)
	}
	reply(r, "Blue")
	f.done(turn)
	if !heard(model, "Blue") {
		t.Error("the model does not hear what was chosen")
	}

	turn = f.prompt("Please ask for a shape.")
	reply(f.waits(), "a trapezium") // no option: the answer is the text beside the question
	f.done(turn)
	if !heard(model, "a trapezium") {
		t.Error("the model does not hear words of one's own")
	}

	// Declined is skipped: the turn goes on.
	turn = f.prompt("Please ask for a size.")
	r = f.waits()
	f.s.call("POST", path(r)+"/reject", nil, nil)
	end := f.done(turn)
	if end.StopReason != "end_turn" || !strings.Contains(f.said(), "I go on.") {
		t.Errorf("declined: %s, and it said %q", end.StopReason, f.said())
	}
	if status, body := f.s.try("POST", path(r)+"/reject", nil); status != http.StatusConflict {
		t.Errorf("a second time: %d %s", status, body)
	}

	// Cancelled aborts the tool call.
	before := strings.Count(f.said(), "I go on.")
	turn = f.prompt("Please ask for a tone.")
	r = f.waits()
	f.s.call("POST", "/client/requests/"+r.ID+"/answer", requests.Answer{Action: "cancel"}, nil)
	end = f.done(turn)
	aborted := slices.ContainsFunc(f.sorted(), func(e transcript.Entry) bool { return e.Turn == turn && e.Tool != nil && e.Tool.Status == "failed" })
	if !aborted && strings.Count(f.said(), "I go on.") > before {
		t.Errorf("cancelled: %s\n%s", end.StopReason, f.transcript())
	}
	t.Logf("cancelled, the turn ends with %s", end.StopReason)
	f.ready()
}

// TestClaudePlans: ExitPlanMode is a permission with the ways to go on, and a question to who knows no permissions.
func TestClaudePlans(t *testing.T) {
	planned := func(what string) llm.Turn {
		return llm.Turn{When: "plan the " + what, Steps: []llm.Step{{Text: "Here it is. ", Plan: "1. Dig\n2. Sow"}, {Text: "I carry it out."}}}
	}
	f, model, _ := withAgent(t, "claude", nil, planned("garden"), planned("orchard"))
	for _, what := range []string{"orchard", "garden"} {
		f.s.call("POST", "/client/sessions/"+f.session.ID+"/config", map[string]any{"id": "mode", "value": "plan"}, nil)
		turn := f.prompt("Please plan the " + what + ".")
		r := f.waits()
		if r.Kind != "permission" || r.Tool == nil || r.Tool.Kind != "switch_mode" || len(r.Options) < 3 {
			t.Fatalf(`waits: got r %+v, want Kind "permission", Tool not nil, r.Tool.Kind "switch_mode" and at least 3 in Options`, r)
		}
		var inbox struct{ Questions []requests.WaitingQuestion }
		f.s.call("GET", "/client/inbox", nil, &inbox)
		if len(inbox.Questions) != 1 || len(inbox.Questions[0].Options) != len(r.Options) || inbox.Questions[0].Kind != "permission" {
			t.Fatalf(`got inbox.Questions %+v, want 1 in inbox.Questions, the length of inbox.Questions[0].Options len(r.Options) and inbox.Questions[0].Kind "permission"`, inbox.Questions)
		}
		path := "/client/sessions/" + r.Session + "/questions/" + r.ID
		if what == "garden" {
			f.s.call("POST", path+"/reject", nil, nil)
			t.Logf("rejected, the turn ends with %s", f.done(turn).StopReason)
			if heard(model, "approved your plan") {
				t.Error("the model was told that its plan was approved")
			}
			continue
		}
		i := slices.IndexFunc(r.Options, func(o requests.Option) bool { return strings.HasPrefix(o.Kind, "allow") })
		f.s.call("POST", path+"/reply", map[string]any{"answers": [][]string{{r.Options[i].Name}}}, nil)
		if end := f.done(turn); end.StopReason != "end_turn" || !strings.Contains(f.said(), "I carry it out.") {
			t.Errorf("done: want end.StopReason \"end_turn\" and f.said() with \"I carry it out.\", got end.StopReason %s\nend.Error %+v\nf.transcript() %s", end.StopReason, end.Error, f.transcript())
		}
	}
}

// impatient replaces codex for its adapter, and changes one thing: a question about a colour waits for a moment only. Codex's own models
// choose that time, by means that no script has.
const impatient = `#!/usr/bin/env node
const { spawn } = require("node:child_process");
const codex = spawn(process.env.REAL_CODEX, process.argv.slice(2), { stdio: ["inherit", "pipe", "inherit"] });
require("node:readline").createInterface({ input: codex.stdout }).on("line", (line) => {
  if (line.includes("item/tool/requestUserInput") && line.includes("colour")) {
    const message = JSON.parse(line);
    message.params.autoResolutionMs = 700;
    line = JSON.stringify(message);
  }
  process.stdout.write(line + "\n");
});
codex.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => codex.kill(signal));
`

// TestCodexGivesUp: a question of Codex waits for as long as its model says; then Codex withdraws the question, and continues without an
// answer.
func TestCodexGivesUp(t *testing.T) {
	list := pinned(t)
	agent := list[slices.IndexFunc(list, func(a realAgent) bool { return a.ID == "codex" })]
	agent.path(t)
	found, err := filepath.Glob(filepath.Join(agent.home(t), "node_modules/@openai/codex-*/vendor/*/bin/codex"))
	if err != nil || len(found) != 1 {
		t.Fatal("codex itself is not where it was: ", found, err)
	}
	wrapper := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(wrapper, []byte(impatient), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	f, model, _ := withAgent(t, "codex", map[string]string{"CODEX_PATH": wrapper, "REAL_CODEX": found[0]},
		askFor("a colour", llm.Ask{Question: "Which colour?", Options: []string{"Red", "Blue"}}),
		askFor("a shape", llm.Ask{Question: "Which shape?", Options: []string{"Round", "Square"}}),
	)
	turn := f.prompt("Please ask for a shape.")
	r := f.waits()
	if r.Kind != "form" {
		t.Fatalf(`waits: got r %+v, want Kind "form"`, r)
	}
	f.s.call("POST", "/client/sessions/"+r.Session+"/questions/"+r.ID+"/reply", map[string]any{"answers": [][]string{{"a trapezium"}}}, nil)
	f.done(turn)
	if !heard(model, "a trapezium") {
		t.Error("the model does not hear words of one's own")
	}
	turn = f.prompt("Please ask for a colour.")
	r = f.waits()
	f.until("the end of the request", func() bool { return f.asked[r.ID].Status != "requested" })
	if end := f.asked[r.ID]; end.Status != "cancelled" {
		t.Errorf(`got end %+v, want end.Status "cancelled"`, end)
	}
	status, body := f.s.try("POST", "/client/requests/"+r.ID+"/answer", requests.Answer{Action: "decline"})
	if status != http.StatusConflict || !strings.Contains(string(body), `"cancelled"`) {
		t.Errorf("a late answer: %d %s", status, body)
	}
	if end := f.done(turn); end.StopReason != "end_turn" || strings.Count(f.said(), "I go on.") != 2 {
		t.Errorf("%s, and it said %q", end.StopReason, f.said())
	}
}

// TestOpenCodeAsksForPermissionOnly: OpenCode asks no questions; an action allowed once is done, and a rejected action is not.
func TestOpenCodeAsksForPermissionOnly(t *testing.T) {
	f, _, p := withAgent(t, "opencode", nil, askFor("a colour", llm.Ask{Question: "Which colour?", Options: []string{"Red", "Blue"}}))
	turn := f.prompt("Please ask for a colour.")
	if end := f.done(turn); end.StopReason != "end_turn" || !strings.Contains(f.said(), llm.NoTool) || len(f.asked) != 0 {
		t.Errorf("%s, it said %q, and asked %d times", end.StopReason, f.said(), len(f.asked))
	}
	turn = f.prompt("Please write the forbidden.")
	r := f.waits()
	kinds := make([]string, len(r.Options))
	for i, o := range r.Options {
		kinds[i] = o.Kind
	}
	if r.Kind != "permission" || !slices.Equal(kinds, []string{"allow_once", "allow_always", "reject_once"}) {
		t.Errorf(`got r %+v, want Kind "permission" and kinds []string{"allow_once", "allow_always", "reject_once"}`, r)
	}
	var inbox struct{ Questions []requests.WaitingQuestion }
	f.s.call("GET", "/client/inbox", nil, &inbox)
	if len(inbox.Questions) != 0 {
		t.Errorf("an approval is no question: %+v", inbox.Questions)
	}
	f.answer("reject_once")
	f.done(turn)
	if _, err := os.Stat(filepath.Join(p.work, "forbidden.txt")); err == nil {
		t.Error("the refused command ran")
	}
}
