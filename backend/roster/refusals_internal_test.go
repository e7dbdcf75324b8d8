package roster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
)

// While an agent cannot be looked up, NoteLogin returns all the same. A refusal of before a login is not told after the login, and a refusal of
// another agent is.
func TestNoteLoginWaitsForNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := agenttest.Program(t)
	entry := func(id string) map[string]any { return map[string]any{"id": id, "command": program} }
	data, err := json.Marshal(map[string]any{"agents": []any{entry("stuck"), entry("late"), entry("wanting")}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{File: filepath.Join(dir, "agents.json")})
	a := New(Deps{Catalogue: catalogue})
	a.Use(Sessions{Publish: func(string, json.RawMessage) {}, SignedIn: func(string) {}, Writable: func() error { return nil }})
	refusal := &acp.Error{Code: acp.CodeAuthRequired, Message: "Sign in first"}
	a.telling.Lock() // as if the disk did not answer
	for _, id := range []string{"stuck", "late", "wanting"} {
		a.NoteLogin(id, refusal)
	}
	a.NoteLogin("late", nil) // somebody has signed in
	a.telling.Unlock()
	a.Close() // waits until the catalogue knows
	if err := catalogue.Close(); err != nil {
		t.Error(err)
	}
	for id, want := range map[string]string{"stuck": agents.NeedsLogin, "late": agents.Ready, "wanting": agents.NeedsLogin} {
		if got, err := catalogue.Agent(id); err != nil || got.State != want {
			t.Errorf("state of %s: got %s, %v, want %s", id, got.State, err, want)
		}
	}
}
