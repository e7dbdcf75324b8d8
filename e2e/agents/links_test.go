//go:build e2e

package agents

import (
	"slices"
	"strings"
	"testing"

	"deskhand/backend/session"
	"deskhand/e2e/agents/llm"
)

// TestLinksLeaveTheConversationWhole: a file that can only be linked, and that no model accepts, does no harm, neither in its own prompt
// nor in later prompts. OpenCode embeds linked files in its prompt, by the type of the link.
func TestLinksLeaveTheConversationWhole(t *testing.T) {
	for _, id := range three() {
		t.Run(id, func(t *testing.T) {
			f, model, p := withAgent(t, id, nil, llm.Turn{When: "look at the archive", Steps: []llm.Step{{Text: "Seen."}}}, llm.Turn{When: "go on", Steps: []llm.Step{{Text: "Gone on."}}})
			defer f.end(p)
			archive := []byte("PK\x05\x06" + strings.Repeat("\x00", 18))
			files := []map[string]string{
				{"path": write(t, p, "a.zip", archive)}, {"path": write(t, p, "words.go", []byte(strings.Repeat("// long\n", 40_000)))}, {"path": p.work},
			}
			var begun struct{ Turn session.Turn }
			f.s.call("POST", "/client/sessions/"+f.session.ID+"/prompt", map[string]any{"message": "Please look at the archive.", "attachments": files}, &begun)
			if end := f.done(begun.Turn.ID); end.StopReason != "end_turn" {
				t.Errorf("with the links: %s %+v", end.StopReason, end.Error)
			}
			text, got := reached(t, model, "look at the archive")
			if !strings.Contains(text, "a.zip") || !strings.Contains(text, "words.go") || slices.ContainsFunc(got, func(f llm.File) bool { return strings.Contains(string(f.Data), "PK\x05\x06") }) {
				t.Errorf("to the model came %d files and\n%.2000s", len(got), text)
			}
			if end := f.done(f.prompt("Please go on.")); end.StopReason != "end_turn" {
				t.Errorf("after them: %s %+v", end.StopReason, end.Error)
			}
		})
	}
}
