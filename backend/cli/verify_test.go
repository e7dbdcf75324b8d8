package cli_test

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/maintenance"
	"deskhand/backend/store"
)

// harm changes a database that no process has open.
func harm(t *testing.T, dir, text string) {
	t.Helper()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyCommandFindsAndRepairs(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	if out, stderr, code := run(t, dir, "verify"); code != 0 || !strings.Contains(out, "All is well") {
		t.Fatalf("deskhand verify: got exit %d\n%s%s\nwant 0 and that all is well", code, out, stderr)
	}
	harm(t, dir, `UPDATE entry SET data = json_set(data, '$.text', 'something else') WHERE json_extract(data, '$.kind') = 'user'`)
	out, stderr, code := run(t, dir, "verify", "--json")
	var v maintenance.Verification
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 1 || len(v.Findings) != 1 || v.Findings[0].Code != "entries.differ" || v.Findings[0].Repaired {
		t.Fatalf("deskhand verify --json of a changed entry: got exit %d %v\n%s%s\nwant 1 and entries.differ, not repaired", code, err, out, stderr)
	}
	if out, _, code := run(t, dir, "verify"); code != 1 || !strings.Contains(out, "1 different") || !strings.Contains(out, "--take-journal") {
		t.Errorf("deskhand verify of a changed entry: got exit %d\n%s\nwant 1, 1 different, and --take-journal offered", code, out)
	}
	if out, _, code := run(t, dir, "verify", "--repair"); code != 1 || strings.Contains(out, "repaired") || !strings.Contains(out, "something else") ||
		!strings.Contains(out, "the quick zeppelin") || !strings.Contains(out, "--take-journal") || !strings.Contains(out, "fits its checksum") {
		t.Errorf("verify --repair: got exit %d\n%s\nwant exit 1, both sides and the choice", code, out)
	}
	if out, _, code := run(t, dir, "verify", "--take-journal", v.Findings[0].Session); code != 1 || !strings.Contains(out, "repaired") {
		t.Errorf("verify --take-journal: got exit %d\n%s\nwant exit 1, and repaired", code, out)
	}
	srv, _ := server(t, dir) // verify through a running server too
	if out, stderr, code := run(t, dir, "verify"); code != 0 {
		t.Errorf("deskhand verify through a server: got exit %d\n%s%s\nwant 0", code, out, stderr)
	}
	if text, _, _ := run(t, dir, "sessions", "show", "last"); !strings.Contains(text, "the quick zeppelin") || strings.Contains(text, "something else") {
		t.Errorf(`deskhand sessions show last: got text %s, want text with "the quick zeppelin" and text without "something else"`, text)
	}
	if out, stderr, code := run(t, dir, "verify", "--agents"); code != 0 {
		t.Errorf("deskhand verify --agents: got exit %d\n%s%s\nwant 0", code, out, stderr)
	}
	_ = srv.Process.Kill()
	_, _ = srv.end()
	harm(t, dir, `UPDATE session SET acp_session_id = 'forgotten'`)
	if out, _, code := run(t, dir, "verify", "--agents"); code != 1 || !strings.Contains(out, "no longer knows it") || !strings.Contains(out, "has a conversation that is not here") {
		t.Errorf("deskhand verify --agents with an agent that forgets: got exit %d\n%s\nwant 1 and both conversations told", code, out)
	}
	if _, _, code := run(t, dir, "verify", "nonsense"); code != 2 {
		t.Errorf("exit %d, want 2", code)
	}
}
