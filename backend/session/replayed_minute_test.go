package session_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/session"
)

// A session of Gemini's is loaded in the next minute of the clock, and the transcript tells the wait.
func TestLoadWaitsForNextMinuteOfGemini(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := agenttest.Program(t)
	file := fmt.Sprintf(`{"agents":[{"id":"gemini","override":true,"command":%q,"args":["forgetful-agent","load"]}]}`, agent)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "gemini", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "one")
	d.idle(s.ID)
	// The session begins in this minute, however late in it.
	d.readySince(s.ID, time.Now().Truncate(time.Minute))
	d.close()

	if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < 20*time.Second {
		<-time.After(left) // a start may take seconds, so the minute must not end before the load
	}
	d = open(t, dir)
	d.readySince(s.ID, time.Now().Truncate(time.Minute))
	d.prompt(s.ID, "two")
	d.until("notice", func() bool {
		tr := d.transcript(s.ID)
		e := find(tr, "notice")
		return e != nil && strings.HasPrefix(e.Notice.Title, "Waiting for the next minute")
	})
	for _, data := range d.journal(s.ID) {
		if strings.Contains(string(data), "session/load") {
			t.Errorf("%s was sent in the same minute", data)
		}
	}
	d.close() // does not wait for the minute

	d = open(t, dir)
	d.readySince(s.ID, time.Now().Add(-2*time.Minute))
	d.prompt(s.ID, "three")
	tr := d.idle(s.ID)
	if text := textOf(tr, "agent"); !strings.HasSuffix(text, "initialize session/load session/prompt\n") {
		t.Error(text)
	}
}

// readySince changes the time at which the agent last opened the session.
func (d *desk) readySince(id string, at time.Time) {
	d.t.Helper()
	err := d.db.Write(d.t.Context(), func(tx *sql.Tx) error {
		result, err := tx.ExecContext(d.t.Context(), `UPDATE frame SET at = ?, sum = NULL WHERE session = ? AND n =
			(SELECT max(n) FROM frame WHERE session = ? AND dir = 'note' AND instr(CAST(payload AS TEXT), '"session.ready"') > 0)`, at.UnixMilli(), id, id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n != 1 {
			return fmt.Errorf("%d notes, %w", n, err)
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}
