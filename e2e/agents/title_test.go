//go:build e2e

package agents

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"deskhand/e2e/agents/llm"
)

// TestCodexKeepsTitle: the title that a person gives a conversation is that of Codex's own list.
func TestCodexKeepsTitle(t *testing.T) {
	f, _, p := withAgent(t, "codex", nil, llm.Turn{When: "hello", Steps: []llm.Step{{Text: "Hello."}}})
	f.done(f.prompt("hello there"))
	const title = "The lamp of Fanad"
	f.s.call("PATCH", "/client/sessions/"+f.session.ID, map[string]string{"title": title}, nil)
	eventually(t, 30*time.Second, "the title in Codex's list", func() error {
		status, answer := f.s.try("GET", "/client/agents/codex/sessions?directory="+p.work, nil)
		var list struct{ Items []struct{ Title string } }
		if status != 200 {
			return errors.New(string(answer))
		}
		decode(t, answer, &list)
		for _, one := range list.Items {
			if one.Title == title {
				return nil
			}
		}
		return fmt.Errorf("the list is %s", answer)
	})
	f.s.stop()
	p.mustBeGone(t, 5*time.Second)
}
