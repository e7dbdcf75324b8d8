package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/unprivileged"
)

// TestRemoveDeletesReadOnlyFolders: a removal is over when all is kept and git has forgotten the worktree, also where files of somebody else's, as
// containers leave them, stay.
func TestRemoveDeletesReadOnlyFolders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of somebody else's")
	}
	b := set(t)
	b.leave(b.repo, ".gitignore", "cache/\n")
	b.do(b.repo, "add", "--all")
	b.do(b.repo, "commit", "--quiet", "-m", "rules")
	for round := range 2 { // what an earlier one has left is in nobody's way
		path, _ := b.made("fix")
		b.leave(path, "new.txt", "mine\n", "cache/pg/data", "x")
		for _, name := range []string{"cache/pg", "cache/pg/data"} {
			if err := os.Chown(filepath.Join(path, name), 54321, 54321); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(path, "cache/pg"), 0o755); err != nil { //nolint:gosec // as it is
			t.Fatal(err)
		}
		t.Run("", func(t *testing.T) {
			unprivileged.Bind(t)
			kept := b.remove(path)
			if kept.Commit == "" {
				t.Errorf("Remove: got %+v, want a kept commit", kept)
			}
			if gone, err := b.Resume(t.Context(), b.repo, path, kept); err != nil || !gone {
				t.Errorf("Resume, round %d: got gone %v, error %v, want gone", round, gone, err)
			}
			if err := b.Restore(t.Context(), b.repo, path, kept); err != nil {
				t.Error(err)
			}
		})
		if data, err := os.ReadFile(filepath.Join(path, "new.txt")); err != nil || string(data) != "mine\n" {
			t.Errorf("new.txt after Restore: got %q, error %v, want mine", data, err)
		}
		b.remove(path)
		b.do(b.repo, "branch", "--quiet", "-D", "deskhand/fix")
	}
}

// TestResumeLeavesNewFilesAtPath: another program that writes where the worktree was makes nobody believe that it is still there.
func TestResumeLeavesNewFilesAtPath(t *testing.T) {
	b := set(t)
	path, _ := b.made("fix")
	b.leave(path, "new.txt", "mine\n")
	kept := b.remove(path)
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), ".deleted-fix")); err != nil { // as far as a removal was
		t.Fatal(err)
	}
	b.leave(path, ".cache/x", "a watcher's")
	if gone, err := b.Resume(t.Context(), b.repo, path, kept); err != nil || !gone {
		t.Errorf("Resume with the path taken: got gone %v, error %v, want gone", gone, err)
	}
	if data, err := os.ReadFile(filepath.Join(path, ".cache/x")); err != nil || string(data) != "a watcher's" {
		t.Errorf("file at the taken path: got %q, error %v, want the watcher's", data, err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil {
		t.Error(err)
	}
}
