//go:build e2e

package agents

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"deskhand/backend/transcript"
	"deskhand/e2e/agents/llm"
)

// TestInstructionsReachTheModel: real agents give the model what a person has every agent told. An agent that only adds instructions to its own
// gets them added, which the conversation tells.
func TestInstructionsReachTheModel(t *testing.T) {
	for id, adds := range map[string]bool{"claude": false, "codex": true} {
		t.Run(id, func(t *testing.T) {
			model := openScripted(t, []llm.Turn{{When: "hello", Steps: []llm.Step{{Text: "Hello."}}}})
			p := newPlace(t, model)
			list := pinned(t)
			onPath(t, &p, list[slices.IndexFunc(list, func(a realAgent) bool { return a.ID == id })], model)
			s := startServer(t, p)
			const words = "You keep the lighthouse of Fanad."
			s.call("PUT", "/client/config/instructions?scope=all", map[string]any{"text": words, "mode": "override", "seen": ""}, nil)
			f := follow(s)
			f.open(id, p)
			f.done(f.prompt("hello there"))
			if !slices.ContainsFunc(model.Requests(), func(r llm.Request) bool { return bytes.Contains(r.Body, []byte(words)) }) {
				t.Errorf("no request to the model has %q", words)
			}
			told := slices.ContainsFunc(f.sorted(), func(e transcript.Entry) bool { return e.Notice != nil && e.Notice.Severity == "warning" })
			if told != adds {
				t.Errorf("the conversation tells that the instructions were only added: got %t, want %t\n%s", told, adds, f.transcript())
			}
			s.stop()
			p.mustBeGone(t, 5*time.Second)
		})
	}
}
