package session_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/workspace"
)

// directory makes a directory for the test, and returns its path without links.
func directory(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// recognizes skips a test on a file system that does not tell when a directory was made.
func recognizes(t *testing.T, d *desk, w workspace.Workspace) {
	t.Helper()
	var born int64
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT born FROM workspace WHERE id = ?`, w.ID).Scan(&born); err != nil {
		t.Fatal(err)
	}
	if born == 0 {
		t.Skip("this file system tells no time of birth")
	}
}

func (d *desk) in(agent, path string) session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: agent, Cwd: path})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *desk) workspaces() []workspace.KnownWorkspace {
	d.t.Helper()
	list, err := d.Workspaces().List(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

func (d *desk) relink(id, path string) workspace.KnownWorkspace {
	d.t.Helper()
	w, err := d.Workspaces().Relink(d.t.Context(), id, path)
	if err != nil {
		d.t.Fatal(err)
	}
	return w
}

// told returns the directories that the agent was sent, by the method that sent them.
func (d *desk) told(id string) []string {
	d.t.Helper()
	var list []string
	for dir, data := range d.journal(id) {
		var m struct {
			Method string
			Params struct{ Cwd string }
		}
		if dir == "out" && json.Unmarshal(data, &m) == nil && m.Params.Cwd != "" {
			list = append(list, m.Method+" "+m.Params.Cwd)
		}
	}
	return list
}

// When a directory is renamed while an agent is idle in it, opening the new path shows the directory's sessions, and the agent goes on
// there.
func TestSessionsFollowMovedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "resume close writes")
	d := openAs(t, dir, proxy.Config{Purpose: processes.ForSession}, session.Config{})
	from, to := directory(t, dir, "lighthouse"), filepath.Join(dir, "beacon")
	idle, asleep := d.in("forgetful", from), d.in("forgetful", from)
	for _, id := range []string{idle.ID, asleep.ID} {
		d.prompt(id, "one")
		d.idle(id)
	}
	recognizes(t, d, idle.Workspace)
	d.close()
	d = openAs(t, dir, proxy.Config{Purpose: processes.ForSession}, session.Config{})
	d.prompt(idle.ID, "two")
	before := d.idle(idle.ID)
	at := d.get(idle.ID).UpdatedAt
	rename(t, from, to)
	if list := d.workspaces(); len(list) != 1 || !list[0].Missing || list[0].MovedTo != to || list[0].Path != from || list[0].Sessions != 2 {
		t.Fatalf("workspaces after a rename: got %+v, want one, missing, moved to %s, with 2 sessions", list, to)
	}
	if s := d.get(idle.ID); !s.Workspace.Missing || s.Cwd != from {
		t.Fatalf("session after a rename: got %+v, want it missing and still in %s", s, from)
	}

	third := d.in("forgetful", to)
	if third.Workspace.ID != idle.Workspace.ID || third.Workspace.Path != to {
		t.Errorf("session at the new path: got workspace %+v, want %s at %s", third.Workspace, idle.Workspace.ID, to)
	}
	for _, id := range []string{idle.ID, asleep.ID} {
		s := d.get(id)
		if s.Cwd != to || s.Workspace.Path != to || s.Workspace.Missing || s.Phase != lifecycle.Closed || s.Exit != nil || s.Hibernated {
			t.Errorf("session %s: got %+v, want it closed in %s, without an exit", id, s, to)
		}
		tr := d.transcript(id)
		last := tr.Items[len(tr.Items)-1]
		if last.Divider == nil || last.Divider.Code != "workspace.moved" || last.Divider.Params["from"] != from || last.Divider.Params["to"] != to {
			t.Errorf("the transcript ends with %+v", last)
		}
		d.sameAsRebuilt(id)
	}
	if now := d.transcript(idle.ID); len(now.Items) != len(before.Items)+1 || d.get(idle.ID).UpdatedAt != at {
		t.Errorf("transcript after the move: got %d entries, updated %v; want %d, %v", len(now.Items), d.get(idle.ID).UpdatedAt, len(before.Items)+1, at)
	}
	d.until("the end of the agent", func() bool { return d.process(idle.ID) == 0 })
	for _, id := range []string{idle.ID, asleep.ID} {
		d.prompt(id, "three")
		if got := dividers(d.idle(id)); !strings.HasSuffix(got, "workspace.moved session.resumed") {
			t.Errorf("dividers: got %q, want workspace.moved session.resumed at the end", got)
		}
		told := d.told(id)
		if last := told[len(told)-1]; last != "session/resume "+to {
			t.Errorf("directories told: got %q, want session/resume with %s last", told, to)
		}
		d.sameAsRebuilt(id)
	}
	if list := d.workspaces(); len(list) != 1 || list[0].Missing || list[0].MovedTo != "" || list[0].Sessions != 3 {
		t.Errorf("workspaces: got %+v, want one that is there, with 3 sessions", list)
	}
}

func TestRelinkMergesWorkspaces(t *testing.T) {
	t.Parallel()
	patient := session.Config{Undo: time.Hour} // nothing is erased before it is restored
	d := openAs(t, t.TempDir(), proxy.Config{}, patient)
	from, to := directory(t, d.dir, "from"), directory(t, d.dir, "to")
	a, b, deleted := d.in("mock", from), d.in("mock", to), d.in("mock", from)
	// An imported session may work in a directory below its workspace.
	below := filepath.Join(from, "deep", "er")
	d.prompt(a.ID, "echo one")
	d.idle(a.ID)
	d.delete(deleted.ID)
	d.close()
	d = openAs(t, d.dir, proxy.Config{}, patient)
	if err := d.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE session SET cwd = ?, directories = ? WHERE id = ?`, below, `["`+filepath.Join(from, "x")+`","/elsewhere"]`, a.ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	w := d.relink(a.Workspace.ID, to+"/")
	if w.ID != b.Workspace.ID || w.Path != to || w.Missing || w.Sessions != 2 {
		t.Errorf("Relink(%s): got %+v, want %s at %s with 2 sessions", to, w, b.Workspace.ID, to)
	}
	s := d.get(a.ID)
	if s.Workspace.ID != b.Workspace.ID || s.Cwd != filepath.Join(to, "deep", "er") || !slices.Equal(s.Directories, []string{filepath.Join(to, "x"), "/elsewhere"}) {
		t.Errorf("session after Relink: got %+v, want workspace %s, its directories below %s", s, b.Workspace.ID, to)
	}
	if restored := d.restore(deleted.ID); restored.Cwd != to || restored.Workspace.ID != b.Workspace.ID {
		t.Errorf("restored session: got %+v, want it in %s of workspace %s", restored, to, b.Workspace.ID)
	}
	if list := d.workspaces(); len(list) != 1 || list[0].Sessions != 3 {
		t.Errorf("workspaces: got %+v, want one with 3 sessions", list)
	}
	for _, id := range []string{a.ID, deleted.ID} {
		d.sameAsRebuilt(id)
	}
	d.close()
	d = open(t, d.dir)
	if s := d.get(a.ID); s.Workspace.ID != b.Workspace.ID || s.Cwd != filepath.Join(to, "deep", "er") {
		t.Errorf("it was not stored: %+v", s)
	}
}

func TestRelinkIsRefused(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	from, to := directory(t, d.dir, "from"), directory(t, d.dir, "to")
	idle, busy := d.in("mock", from), d.in("mock", from)
	d.prompt(busy.ID, "please write a note")
	d.request(busy.ID)
	file := filepath.Join(d.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]string{
		"to": "directory.relative", filepath.Join(d.dir, "none"): "directory.missing", file: "directory.not_one", to: "workspace.busy",
	} {
		_, err := d.Workspaces().Relink(t.Context(), idle.Workspace.ID, path)
		refused(t, err, code)
	}
	if _, err := d.Workspaces().Relink(t.Context(), "none", to); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Relink(none) = %v, want ErrNotFound", err)
	}
	if s := d.get(idle.ID); s.Cwd != from {
		t.Errorf("session after refused relinks: got %+v, want it in %s", s, from)
	}
	d.idle(idle.ID)
	if err := d.Cancel(t.Context(), busy.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(busy.ID)
	if w := d.relink(idle.Workspace.ID, to); w.Path != to || w.Sessions != 2 {
		t.Errorf("Relink(%s): got %+v, want it there with 2 sessions", to, w)
	}
	if w := d.relink(idle.Workspace.ID, to); w.Path != to {
		t.Errorf("Relink(%s) a second time: got %+v, want it there", to, w)
	}
	if n := strings.Count(dividers(d.transcript(idle.ID)), "workspace.moved"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
	if err := d.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE workspace SET place = 'elsewhere' WHERE id = ?`, idle.Workspace.ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	_, err := d.Workspaces().Relink(t.Context(), idle.Workspace.ID, from)
	refused(t, err, "workspace.remote")
}

// A running turn keeps its session from following its directory when the new path is opened; a session at the new path is made without it.
func TestMovedDirectoryWaitsForTurn(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	from, to := directory(t, d.dir, "from"), filepath.Join(d.dir, "to")
	s := d.in("mock", from)
	recognizes(t, d, s.Workspace)
	d.prompt(s.ID, "please write a note")
	d.request(s.ID)
	rename(t, from, to)
	other := d.in("mock", to)
	if other.Workspace.ID == s.Workspace.ID || d.get(s.ID).Cwd != from {
		t.Fatalf("Create at the new path in a turn: got %+v beside %s, want another workspace and the session in %s", other, d.get(s.ID).Cwd, from)
	}
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	third := d.in("mock", to)
	if now := d.get(s.ID); now.Cwd != to || now.Workspace.ID != third.Workspace.ID || third.Workspace.ID != other.Workspace.ID {
		t.Errorf("session after its turn: got %+v, want it in %s, in the workspace of the others", now, to)
	}
}

// When a directory is renamed and a fresh clone takes its path, a session that is created at the path does not take over the renamed
// directory's sessions, which follow it; a running turn in one of them refuses the creation.
func TestFreshCloneTakesNoWorkspaceOver(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	path, renamed := directory(t, d.dir, "app"), filepath.Join(d.dir, "app-old")
	old := d.in("mock", path)
	recognizes(t, d, old.Workspace)
	d.prompt(old.ID, "please write a note")
	d.request(old.ID)
	rename(t, path, renamed)
	directory(t, path)
	_, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: path})
	refused(t, err, "workspace.busy")
	if err := d.Cancel(t.Context(), old.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(old.ID)
	clone := d.in("mock", path)
	if now := d.get(old.ID); now.Cwd != renamed || now.Workspace.ID != old.Workspace.ID || clone.Workspace.ID == old.Workspace.ID || clone.Cwd != path {
		t.Errorf("the old one is at %s of %s, the new one at %s of %s", now.Cwd, now.Workspace.ID, clone.Cwd, clone.Workspace.ID)
	}
	if again := d.in("mock", renamed); again.Workspace.ID != old.Workspace.ID {
		t.Errorf("the renamed directory is %+v, it was %+v", again.Workspace, old.Workspace)
	}
	d.sameAsRebuilt(old.ID)
}
