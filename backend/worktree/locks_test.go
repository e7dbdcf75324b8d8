package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/worktree"
)

// TestAbandonUnlocksWorktreeOfKilledGit: somebody has put something into a worktree that it was making, so it stays; the git that had locked
// it is dead.
func TestAbandonUnlocksWorktreeOfKilledGit(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	b.half(path)
	b.leave(path, "mine.txt", "mine\n")
	if gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/fix", worktree.Kept{Head: p.Head}); err != nil || gone {
		t.Fatalf("Abandon with a file: got gone %v, error %v, want not gone", gone, err)
	}
	if _, err := b.Inspect(t.Context(), path, p.Head); err != nil {
		t.Fatal(err)
	}
	if kept := b.remove(path); b.do(b.repo, "show", kept.Commit+":mine.txt") != "mine" {
		t.Errorf("Remove: got %+v, want a commit with mine.txt", kept)
	}

	// A lock of somebody's stays, and so does that of a git which is at work in what was made.
	path, _ = b.made("other")
	git := b.do(path, "rev-parse", "--absolute-git-dir")
	b.do(b.repo, "worktree", "lock", "--reason", "mine", path)
	b.leave(git, "index.lock", "")
	if gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/other", worktree.Kept{Head: p.Head}); err != nil || gone {
		t.Fatalf("Abandon of a locked worktree: got gone %v, error %v, want not gone", gone, err)
	}
	for _, name := range []string{"locked", "index.lock"} {
		if _, err := os.Lstat(filepath.Join(git, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestAbandonRefusesUnpluggedWorktree: nothing is where it was, and git is told by a lock that it will be.
func TestAbandonRefusesUnpluggedWorktree(t *testing.T) {
	t.Parallel()
	b, path, p := unplugged(t)
	gone, err := b.Abandon(t.Context(), b.repo, path, "", worktree.Kept{Branch: "deskhand/stick", Head: p.Head})
	if gone || !errors.Is(err, worktree.ErrLocked) || !strings.Contains(b.do(b.repo, "worktree", "list"), path) {
		t.Errorf("Abandon of an unplugged worktree: got gone %v, error %v, want ErrLocked and the record kept", gone, err)
	}
	if err := os.Rename(path+"-unplugged", path); err != nil {
		t.Fatal(err)
	}
	if now := b.look(path); now.Head != p.Head {
		t.Errorf("Look: got %+v, want the head %s", now, p.Head)
	}
}
