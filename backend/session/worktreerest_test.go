package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/unprivileged"
)

// TestWorktreeRemovalLeavesWhatCannotBeDeleted: files in a folder that belongs to another user, as a container leaves them, stay after a
// removal. Their place is told, at once and later.
func TestWorktreeRemovalLeavesWhatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	w := s.Worktree
	d.ready(s.ID)
	d.writeTo(w.Path, "new.txt", "new\n")
	d.writeTo(w.Path, ".gitignore", "/pg/\n")
	const nobody = 65534
	folder := filepath.Join(w.Path, "pg")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	d.writeTo(folder, "data", "of a container\n")
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Skip("nothing can be given to somebody else: ", err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(filepath.Dir(w.Path), func(name string, _ os.DirEntry, _ error) error {
			_ = os.Lchown(name, os.Getuid(), os.Getgid())
			return nil
		})
	})
	unprivileged.Bind(t)
	removed, err := d.Worktrees().Remove(t.Context(), s.ID)
	if err != nil || removed.Kept == nil || d.get(s.ID).Worktree.State != "removed" {
		t.Fatalf("Remove with a file that cannot be deleted: got %+v, %v; want it removed, its work kept", removed, err)
	}
	if _, err := os.Lstat(filepath.Join(removed.Left, "pg")); removed.Left == "" || err != nil || d.get(s.ID).Worktree.Left != removed.Left {
		t.Errorf("it is in %q, and later in %q: %v", removed.Left, d.get(s.ID).Worktree.Left, err)
	}
	back, err := d.restoreTree(t.Context(), s.ID)
	if err != nil || back.Worktree.State != "ready" || back.Worktree.Left != "" || d.textAt(w.Path, "new.txt") != "new\n" {
		t.Errorf("Restore: got %+v, %v; want it ready with new.txt, nothing left", back.Worktree, err)
	}
}

// A half-made worktree keeps the files that somebody has put into it, even ignored ones, and the next start finds no session for it.
func TestWorktreeHalfMadeKeepsWhatWasPutIntoIt(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	path := s.Worktree.Path
	d.ready(s.ID)
	d.writeTo(path, "noise.log", "hours of it")
	d.half(s.ID, "making", "")
	d = d.again()
	d.until("settled", func() bool {
		var rows int
		err := d.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM worktree`).Scan(&rows)
		return err == nil && rows == 0
	})
	if d.textAt(path, "noise.log") != "hours of it" {
		t.Error("it is lost")
	}
}
