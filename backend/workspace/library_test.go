package workspace

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
)

// fixture is the workspaces of a new database. The sessions follow a Move at once, unless busy is set.
type fixture struct {
	*Library

	t    *testing.T
	db   *store.DB
	dir  string
	busy error
}

func open(t *testing.T) *fixture {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{t: t, db: db, dir: t.TempDir()}
	local := host.Capabilities{Directories: host.NewDirectories(nil, nil)}
	f.Library = New(Deps{
		Store: db, Logger: slog.New(slog.DiscardHandler), Follow: f.follow,
		Host: func(place string) host.Capabilities { return host.Hosts{Local: local}.At(place) },
	})
	return f
}

func (f *fixture) follow(ctx context.Context, m *Move) error {
	if f.busy != nil {
		return f.busy
	}
	return f.db.Write(ctx, func(tx *sql.Tx) error {
		if err := m.Save(ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE session SET workspace = ?, cwd = ? WHERE workspace = ?`, m.To.ID, m.To.Path, m.From.ID)
		return err
	})
}

// in opens a workspace for a session with the given id.
func (f *fixture) in(session, path string) Workspace {
	f.t.Helper()
	w, err := f.Open(f.t.Context(), path)
	if err != nil {
		f.t.Fatal(err)
	}
	err = f.db.Write(f.t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(f.t.Context(), `INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft,
			acp_session_id, protocol_version, generation, facts, exit, created_at, updated_at, archived_at)
			VALUES (?, 'local', ?, ?, 'mock', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 1, 1, 0)`, session, w.ID, path)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

func (f *fixture) wantAt(session, want string) {
	f.t.Helper()
	var cwd, path string
	if err := f.db.Read().QueryRowContext(f.t.Context(), `SELECT s.cwd, w.path FROM session s JOIN workspace w ON w.id = s.workspace WHERE s.id = ?`, session).Scan(&cwd, &path); err != nil {
		f.t.Fatal(err)
	}
	if cwd != want || path != want {
		f.t.Errorf("session %s: got %s in the workspace at %s, want %s", session, cwd, path, want)
	}
}

// recognizes skips a test where the file system tells no time of birth.
func (f *fixture) recognizes(w Workspace) {
	f.t.Helper()
	if known, err := f.get(f.t.Context(), w.ID); err != nil || !known.birth.known() {
		f.t.Skipf("this file system tells no time of birth (%v)", err)
	}
}

func (f *fixture) make(elem ...string) string {
	f.t.Helper()
	path := filepath.Join(append([]string{f.dir}, elem...)...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f *fixture) rename(from, to string) {
	f.t.Helper()
	if err := os.Rename(from, to); err != nil {
		f.t.Fatal(err)
	}
}

// TestListFindsMovedDirectory: the new path of a missing directory is found beside the old path, and another directory there is not taken for
// the missing one.
func TestListFindsMovedDirectory(t *testing.T) {
	t.Parallel()
	f := open(t)
	above := f.make("src", "old")
	path := f.make("src", "old", "a", "b")
	first := f.in("s", path)
	f.recognizes(first)
	want := func(what string, missing bool, movedTo string) {
		t.Helper()
		list, err := f.List(t.Context())
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: got %+v, %v", what, list, err)
		}
		if w := list[0]; w.Missing != missing || w.MovedTo != movedTo || w.Place != "local" || w.Sessions != 1 {
			t.Errorf("%s: got %+v, want missing %v, moved to %q", what, w, missing, movedTo)
		}
	}
	want("in its place", false, "")
	renamed := filepath.Join(above, "a", "c")
	f.rename(path, renamed)
	want("renamed", true, renamed)
	f.rename(renamed, path)
	further := filepath.Join(f.dir, "src", "new")
	f.rename(above, further)
	want("renamed above", true, filepath.Join(further, "a", "b"))
	if err := os.RemoveAll(filepath.Join(further, "a")); err != nil {
		t.Fatal(err)
	}
	f.make("src", "new", "a", "b") // possibly with the inode of the removed directory
	want("another directory", true, "")
	if err := os.WriteFile(above, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want("below a file", true, "")
	if other := f.in("other", filepath.Join(further, "a", "b")); other.ID == first.ID {
		t.Error("a new directory: got the workspace of the removed one, want another workspace")
	}
}

// TestOpenKeepsDirectoriesApart: a directory that moves to the old path of another directory does not take over the other's sessions.
func TestOpenKeepsDirectoriesApart(t *testing.T) {
	t.Parallel()
	f := open(t)
	path, other := f.make("app"), f.make("other")
	renamed := filepath.Join(f.dir, "app-old")
	old, moved := f.in("old", path), f.in("moved", other)
	f.recognizes(old)
	f.rename(path, renamed)
	f.rename(other, path)
	if now := f.in("new", path); now.ID != moved.ID {
		t.Errorf("at the old path: got %+v, want the moved workspace %+v", now, moved)
	}
	f.wantAt("old", renamed)
	f.wantAt("moved", path)
}

// TestOpenKeepsPath: a directory that is gone, a link that leads elsewhere, and two directories that have changed places leave their sessions to
// the path.
func TestOpenKeepsPath(t *testing.T) {
	t.Parallel()
	f := open(t)
	removed, one, two, link := f.make("removed"), f.make("one"), f.make("two"), filepath.Join(f.dir, "link")
	if err := os.Symlink(f.make("v1"), link); err != nil {
		t.Skip(err)
	}
	ids := map[string]string{}
	for _, path := range []string{removed, one, two, link} {
		w := f.in(path, path)
		f.recognizes(w)
		ids[path] = w.ID
	}
	if err := errors.Join(os.Remove(removed), os.Remove(link), os.Symlink(f.make("v2"), link)); err != nil {
		t.Fatal(err)
	}
	f.make("removed")
	f.rename(one, one+"-")
	f.rename(two, one)
	f.rename(one+"-", two)
	for _, path := range []string{removed, link, one, two} {
		if now, err := f.Open(t.Context(), path); err != nil || now.ID != ids[path] || now.Path != path {
			t.Errorf("%s: got %+v, %v, want the workspace %s", path, now, err, ids[path])
		}
	}
}

// TestRelinkComesLate: two sessions are begun at once where a fresh clone has taken the path of a renamed directory. The birth that the second
// has seen is out of date when its turn comes, and the first session stays in the clone.
func TestRelinkComesLate(t *testing.T) {
	t.Parallel()
	f := open(t)
	path, renamed := f.make("app"), filepath.Join(f.dir, "app-old")
	old := f.in("old", path)
	f.recognizes(old)
	f.rename(path, renamed)
	f.make("app")
	f.in("joined", renamed) // the old session joins this workspace
	seen, err := f.get(t.Context(), old.ID)
	if err != nil {
		t.Fatal(err)
	}
	f.in("first", path)
	if _, err := f.relink(t.Context(), seen.ID, renamed, seen.birth, seen.birth); err != nil {
		t.Fatal(err)
	}
	f.wantAt("first", path)
	f.wantAt("old", renamed)
}

// TestOpenOfRotatedDirectories: directories are renamed one after the other, as old logs are, and each keeps its sessions.
func TestOpenOfRotatedDirectories(t *testing.T) {
	t.Parallel()
	f := open(t)
	fresh, one, two := f.make("app"), f.make("app.1"), filepath.Join(f.dir, "app.2")
	f.recognizes(f.in("newer", fresh))
	f.in("older", one)
	f.rename(one, two)
	f.rename(fresh, one)
	f.make("app")
	f.in("new", fresh)
	f.wantAt("new", fresh)
	f.wantAt("newer", one)
	f.wantAt("older", two)
}

// TestOpenOfBusyDirectory: while the sessions of a renamed directory cannot follow, a clone at the old path is refused, and the renamed
// directory is a workspace of its own.
func TestOpenOfBusyDirectory(t *testing.T) {
	t.Parallel()
	f := open(t)
	path, renamed := f.make("app"), filepath.Join(f.dir, "app-old")
	old := f.in("old", path)
	f.recognizes(old)
	f.rename(path, renamed)
	f.make("app")
	f.busy = refusal.Bad("workspace.busy")
	if _, err := f.Open(t.Context(), path); !errors.Is(err, f.busy) {
		t.Errorf("a clone at the old path: got %v, want %v", err, f.busy)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if w, err := f.Open(t.Context(), renamed); err != nil || w.ID == old.ID {
		t.Errorf("the renamed directory: got %+v, %v, want another workspace than %s", w, err, old.ID)
	}
	f.wantAt("old", path)
}

func TestRelinkIsRefused(t *testing.T) {
	t.Parallel()
	f := open(t)
	w := f.in("s", f.make("from"))
	far, err := f.OpenAt(t.Context(), "far", "/work")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.OpenAt(t.Context(), "far", "/work"); err != nil || again != far {
		t.Errorf("the same directory again: got %+v, %v, want %+v", again, err, far)
	}
	file := filepath.Join(f.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ id, path, code string }{
		{w.ID, "to", "directory.relative"},
		{w.ID, filepath.Join(f.dir, "none"), "directory.missing"},
		{w.ID, file, "directory.not_one"},
		{far.ID, f.dir, "workspace.remote"},
	} {
		_, err := f.Relink(t.Context(), tc.id, tc.path)
		if r, ok := errors.AsType[*refusal.Error](err); !ok || r.Code != tc.code {
			t.Errorf("Relink to %q: got %v, want %s", tc.path, err, tc.code)
		}
	}
	if _, err := f.Relink(t.Context(), "none", f.dir); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("an unknown workspace: got %v, want %v", err, refusal.ErrNotFound)
	}
}

func TestRebase(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/a/b": "/c", "/a/b/d/e": "/c/d/e", "/a/bc": "/a/bc", "/a": "/a"} {
		if got := Rebase(path, "/a/b", "/c"); got != want {
			t.Errorf("Rebase(%q): got %q, want %q", path, got, want)
		}
	}
}

// A look that is under way may be older than the removal of the directory, so that a verification looks once more.
func TestExamineLooksAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		path := filepath.Join(f.dir, "far")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		f.in("s", path)
		slow := true
		local := host.Capabilities{Directories: host.NewDirectories(func(path string) bool {
			gone := host.Gone(path)
			if slow {
				slow = false
				time.Sleep(2 * time.Second) // the disk's answer comes late
			}
			return gone
		}, nil)}
		f.deps.Host = func(string) host.Capabilities { return local }
		if list, err := f.List(t.Context()); err != nil || len(list) != 1 || list[0].Missing {
			t.Fatalf("List before the disk answers: got %+v, %v; want the directory, not missing", list, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if list, err := f.Examine(t.Context()); err != nil || len(list) != 1 || !list[0].Missing {
			t.Errorf("Examine while an older look is under way: got %+v, %v; want the directory missing", list, err)
		}
	})
}
