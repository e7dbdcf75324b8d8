package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/session"
)

// An agent that deletes a conversation after it was loaded once keeps its memory over many starts, its own and those of another
// conversation.
func TestLoadRestoresChatsThatAgentCleansUp(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	agent := agenttest.Program(t)
	file := fmt.Sprintf(`{"agents":[{"id":"gemini","override":true,"command":%q,"args":["forgetful-agent","load","cleans"],"env":{"HOME":%q}}]}`, agent, home)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	var ids []string
	for _, text := range []string{"one", "two"} {
		s, err := d.Create(t.Context(), session.New{Agent: "gemini", Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		d.prompt(s.ID, text)
		d.idle(s.ID)
		d.readySince(s.ID, time.Now().Add(-2*time.Minute))
		ids = append(ids, s.ID)
	}
	for n := range 3 {
		d.close()
		d = open(t, dir)
		for _, id := range ids {
			d.prompt(id, fmt.Sprintf("again %d", n))
			if got := dividers(d.idle(id)); strings.Contains(got, "session.fresh") || !strings.HasSuffix(got, "session.loaded") {
				t.Errorf("start %d: got the dividers %q, want session.loaded at the end and never session.fresh", n, got)
			}
		}
	}
}
