package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/worktrees"
)

// TestWorktreeUnpluggedIsNeitherRemovedNorRestored: a worktree that is locked in git, because it lies on a disk that is not plugged in, is
// neither removed nor restored, and is unchanged when the disk is back.
func TestWorktreeUnpluggedIsNeitherRemovedNorRestored(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func(d *desk, id string) error{
		"removed": func(d *desk, id string) error { _, err := d.Worktrees().Remove(d.t.Context(), id); return err },
		"made":    func(d *desk, id string) error { _, err := d.restoreTree(d.t.Context(), id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, s := withTree(t)
			path := s.Worktree.Path
			d.ready(s.ID)
			d.writeTo(path, "new.txt", "new\n")
			d.git(d.work, "worktree", "lock", path)
			rename(t, path, path+"-unplugged")
			refused(t, try(d, s.ID), "worktree.locked")
			if state, _ := d.stateOf(s.ID); state != "ready" || d.get(s.ID).Worktree.State != "missing" {
				t.Errorf("it is %s, and shown as %s", state, d.get(s.ID).Worktree.State)
			}
			rename(t, path+"-unplugged", path)
			if now := d.get(s.ID).Worktree; now.State != "ready" || d.textAt(path, "new.txt") != "new\n" {
				t.Errorf("worktree plugged in again: got %+v, want it ready with new.txt", now)
			}
			d.git(d.work, "worktree", "unlock", path)
			if removed, err := d.Worktrees().Remove(t.Context(), s.ID); err != nil || removed.Kept == nil {
				t.Errorf("Remove: got %+v, %v; want its work kept", removed, err)
			}
		})
	}
}

// A worktree that was restored in part can be removed: the program was killed while its git ran, and somebody has put files there since.
func TestWorktreeRestoredInPartCanBeRemoved(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	path := s.Worktree.Path
	d.ready(s.ID)
	d.writeTo(path, "new.txt", "new\n")
	first, err := d.Worktrees().Remove(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	before := first.Kept.Commit
	var kept string
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT kept FROM worktree WHERE id = ?`, s.ID).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	d.half(s.ID, "restoring", kept)
	d.git(d.work, "worktree", "add", "--quiet", path, s.Worktree.Branch)
	git := d.git(path, "rev-parse", "--absolute-git-dir")
	d.writeTo(git, "locked", "initializing")
	d.writeTo(git, "index.lock", "")
	if err := os.Remove(filepath.Join(git, "index")); err != nil {
		t.Fatal(err)
	}
	d.writeTo(path, "mine.txt", "mine\n")
	d = d.again()
	removed, err := freed(func() (worktrees.WorktreeRemoval, error) { return d.Worktrees().Remove(t.Context(), s.ID) })
	if err != nil || removed.Kept == nil {
		t.Fatalf("Remove of a worktree restored in part: got %+v, %v; want its work kept", removed, err)
	}
	if d.git(d.work, "show", removed.Kept.Commit+":mine.txt") != "mine" {
		t.Error("what was put there is lost")
	}
	if of := d.git(d.work, "for-each-ref", "--contains="+before, "--format=%(refname)", "refs/deskhand/kept"); of == "" {
		t.Error("what was kept before is on no ref")
	}
}
