//go:build e2e

package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/e2e/agents/llm"
)

// loaded keeps the machine busy until the test ends.
func loaded(t *testing.T, loops int) {
	t.Helper()
	for range loops {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // the process exists: nobody else has waited for it
			_ = cmd.Wait()
		})
	}
}

// TestFilesBothWaysOverRestarts: on a busy machine, and over two restarts in a row, an agent has Deskhand's own tools from its first turn
// on, and the model learns at least the name of a copied file.
func TestFilesBothWaysOverRestarts(t *testing.T) {
	var script []llm.Turn
	for n := range 3 {
		script = append(script, llm.Turn{When: fmt.Sprintf("round %d", n), Steps: []llm.Step{
			{MCP: "attachment_add", Input: map[string]any{"paths": []string{"given.txt"}}}, {Text: "There it is."},
		}})
	}
	for _, id := range []string{"qwen-code"} {
		t.Run(id, func(t *testing.T) {
			list := pinned(t)
			agent := list[slices.IndexFunc(list, func(a realAgent) bool { return a.ID == id })]
			agent.path(t) // installed before the machine is busy
			model := openScripted(t, script)
			p := newPlace(t, model)
			onPath(t, &p, agent, model)
			p.repository(t)
			write(t, p, "given.txt", []byte("Given.\n"))
			loaded(t, 8)
			session := ""
			for n := range 3 {
				f := follow(startServer(t, p))
				if n == 0 {
					f.open(id, p)
					session = f.session.ID
				} else {
					f.only = session
					f.s.call("GET", "/client/sessions/"+session, nil, &f.session)
				}
				archive := filepath.Join(p.home, fmt.Sprintf("the archive %d.zip", n))
				if err := os.WriteFile(archive, []byte("PK\x05\x06"+strings.Repeat("\x00", 18)), 0o600); err != nil {
					t.Fatal(err)
				}
				var begun struct{ Turn struct{ ID string } }
				f.s.call("POST", "/client/sessions/"+session+"/prompt", map[string]any{
					"message": fmt.Sprintf("This is round %d.", n), "attachments": []map[string]string{{"path": archive}},
				}, &begun)
				if end := f.leave(begun.Turn.ID); end.StopReason != "end_turn" {
					t.Fatalf("round %d: stop reason %q, %+v", n, end.StopReason, end.Error)
				}
				if text, _ := reached(t, model, fmt.Sprintf("round %d", n)); !strings.Contains(text, filepath.Base(archive)) {
					t.Errorf("round %d: the model was told nothing of %q:\n%s", n, archive, clip(text))
				}
				entries, _ := f.s.entriesOf(session)
				given := 0
				for _, e := range entries {
					if e.Kind == "attachment" {
						given++
					}
					if e.Kind == "notice" && strings.Contains(e.Notice.Title, "own tools were not there") {
						t.Errorf("round %d: %s", n, e.Notice.Title)
					}
				}
				if given != n+1 {
					t.Errorf("round %d: the agent has given %d files, want %d\n%s", n, given, n+1, readable(entries))
				}
				if status := p.git(t, "status", "--porcelain", "--untracked-files=all"); strings.Contains(status, ".deskhand") {
					t.Errorf("round %d: git offers %s", n, status)
				}
				f.end(p)
			}
		})
	}
}
