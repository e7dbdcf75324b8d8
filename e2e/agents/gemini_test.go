//go:build e2e

package agents

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/transcript"
	"deskhand/e2e/agents/llm"
)

// TestGeminiOverTwoRestarts: Gemini CLI deletes a conversation that it has loaded once, replays the history after its answer, and begins
// with its usual model after each start. Deskhand keeps the conversation, shows no entry twice, and sets the model again.
func TestGeminiOverTwoRestarts(t *testing.T) {
	agent := pinned(t)[slices.IndexFunc(pinned(t), func(a realAgent) bool { return a.ID == "gemini" })]
	model := openScripted(t, []llm.Turn{
		{When: "the first question", Steps: []llm.Step{{Text: "The first answer."}}},
		{When: "after one restart", Steps: []llm.Step{{Text: "The second answer."}}},
		{When: "after two restarts", Steps: []llm.Step{{Text: "The third answer."}}},
	})
	p := newPlace(t, model)
	onPath(t, &p, agent, model)
	s := startServer(t, p)
	f := follow(s)
	began := time.Now()
	f.open(agent.ID, p)
	id, acpID := f.session.ID, f.session.ACPSessionID
	const chosen = "gemini-2.5-pro"
	f.chooseModel(chosen)
	f.done(f.prompt("This is the first question."))
	next := time.Until(began.Truncate(time.Minute).Add(time.Minute + time.Second))
	time.Sleep(max(0, next)) // Deskhand would wait for that minute, and the test's patience is shorter
	for _, text := range []string{"This is after one restart.", "This is after two restarts."} {
		s.stop()
		p.mustBeGone(t, 2*time.Second)
		s = startServer(t, p)
		f = follow(s)
		f.only = id
		s.call("GET", "/client/sessions/"+id, nil, &f.session)
		f.done(f.prompt(text))
		if f.session.ACPSessionID != acpID {
			t.Errorf("the agent's session is %q, want %q", f.session.ACPSessionID, acpID)
		}
	}
	entries, _ := s.entriesOf(id)
	var told []string
	for _, e := range entries {
		switch e.Kind {
		case "user", "agent":
			told = append(told, strings.TrimSpace(e.Text))
		case "divider":
			told = append(told, e.Divider.Code)
		}
	}
	want := []string{
		"This is the first question.", "The first answer.", "This is after one restart.", "session.loaded", "The second answer.",
		"This is after two restarts.", "session.loaded", "The third answer.",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	requests := model.Requests()
	i := slices.IndexFunc(requests, func(r llm.Request) bool {
		text := fmt.Sprint(r.Messages)
		return strings.Contains(text, "after two restarts") && strings.Contains(text, "The first answer.") && strings.Contains(text, "The second answer.")
	})
	if i < 0 {
		t.Errorf("after two restarts the model was not told what had been said: %+v", requests[len(requests)-1].Messages)
	} else if requests[i].Model != chosen {
		t.Errorf("got the model %q, want %q", requests[i].Model, chosen)
	}
	s.stop()
	p.mustBeGone(t, 2*time.Second)

	cmd := exec.CommandContext(t.Context(), deskhand(), "doctor", agent.ID)
	cmd.Env = p.env
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "general.sessionRetention.enabled") {
		t.Errorf("doctor: %v\n%s\nwant the setting against the clean-up", err, out)
	}
}

// chooseModel changes the model, which the agent offers in the older way.
func (f *follower) chooseModel(model string) {
	f.s.t.Helper()
	is := func(o transcript.ConfigOption) bool { return o.Category == "model" }
	i := slices.IndexFunc(f.session.ConfigOptions, is)
	if i < 0 {
		f.s.t.Fatalf("no model among the options %+v", f.session.ConfigOptions)
	}
	f.s.call("POST", "/client/sessions/"+f.session.ID+"/config", map[string]any{"id": f.session.ConfigOptions[i].ID, "value": model}, nil)
	f.until("the model", func() bool {
		return f.session.ConfigOptions[slices.IndexFunc(f.session.ConfigOptions, is)].Value == model
	})
}
