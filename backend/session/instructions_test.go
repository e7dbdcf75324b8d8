package session_test

import (
	"encoding/json"
	"slices"
	"testing"

	"deskhand/backend/acp"
	"deskhand/backend/launch"
)

// openings returns the methods by which a session was opened, each with the system prompt that the agent got with it.
func (d *desk) openings(id string) (list []string) {
	for dir, data := range d.journal(id) {
		var m struct {
			Method string
			Params struct{ SystemPrompt *acp.SystemPrompt }
		}
		if dir != "out" || json.Unmarshal(data, &m) != nil || !slices.Contains([]string{"session/new", "session/load", "session/resume", "session/fork"}, m.Method) {
			continue
		}
		said := m.Method
		if p := m.Params.SystemPrompt; p != nil {
			said += " " + p.Mode + " " + p.Text()
		}
		list = append(list, said)
	}
	return list
}

// An agent gets the instructions of a person with every opening of its session, as they are then.
func TestInstructionsComeWithEveryOpening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "instructed forks lives resume")
	d := open(t, dir)
	put := func(seen, mode, text string) string {
		t.Helper()
		now, err := d.Launch().PutInstructions(t.Context(), launch.AllProjects, seen, mode, text)
		if err != nil {
			t.Fatal(err)
		}
		return now.Hash
	}
	hash := put("", acp.PromptAppend, "Be brief.")
	id := d.createOf("forgetful").ID
	d.prompt(id, "hello")
	d.idle(id)
	if g, err := d.Inspector().Given(t.Context(), id); err != nil || g.SystemPrompt == nil || g.SystemPrompt.Mode != acp.PromptAppend || g.SystemPrompt.Text != "Be brief." {
		t.Errorf("Given: got %+v, %v; want the instructions", g, err)
	}
	put(hash, acp.PromptOverride, "Be long.")
	if err := d.Restart(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.isReady(id)
	fork := d.forkOf(id)
	d.idle(fork.ID)
	want := []string{"session/new append Be brief.", "session/resume override Be long.", "session/fork override Be long."}
	if got := d.openings(id); !slices.Equal(got, want) {
		t.Errorf("the openings: got %q, want %q", got, want)
	}
}
