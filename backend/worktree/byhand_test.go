package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/worktree"
)

// TestRescueKeepsCommitsOfDeletedDirectory: git's record of it is the last that names what was checked out there, and what was staged.
func TestRescueKeepsCommitsOfDeletedDirectory(t *testing.T) {
	t.Parallel()
	b := set(t)
	ctx := t.Context()
	path, p := b.made("fix")
	known := worktree.Kept{Branch: "deskhand/fix", Head: p.Head}
	byHand := func() {
		t.Helper()
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	rescue := func() worktree.Kept {
		t.Helper()
		kept, err := b.Rescue(ctx, b.repo, path, ref, known)
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}

	// Commits that no branch has.
	b.do(path, "checkout", "--quiet", "--detach")
	b.leave(path, "code.go", "two\n")
	b.do(path, "commit", "--quiet", "--all", "-m", "second")
	head := b.do(path, "rev-parse", "HEAD")
	b.leave(path, "staged.txt", "staged\n")
	b.do(path, "add", "staged.txt")
	byHand()
	kept := rescue()
	if kept.Branch != "" || kept.Head != head || kept.Files != 1 {
		t.Errorf("Rescue: got %+v, want no branch, the head %s, 1 file", kept, head)
	}
	if gone, err := b.Resume(ctx, b.repo, path, kept); err != nil || !gone || strings.Contains(b.do(b.repo, "worktree", "list"), path) {
		t.Errorf("Resume: got gone %v, error %v, want gone and not listed by git", gone, err)
	}
	if b.do(b.repo, "for-each-ref", "--contains="+head, "--format=%(refname)") != ref {
		t.Error("no ref has the commit")
	}
	if err := b.Restore(ctx, b.repo, path, kept); err != nil || b.do(path, "rev-parse", "HEAD") != head || b.do(path, "status", "--porcelain") != "A  staged.txt" {
		t.Fatalf("Restore: got error %v, status %s, want the head %s and staged.txt", err, b.do(path, "status", "--porcelain"), head)
	}

	// What was kept before, and came back, is known once more; without git's record, too.
	b.do(path, "reset", "--quiet")
	byHand()
	if again := rescue(); again.Commit != kept.Commit || again.Head != head || again.Files != 1 {
		t.Errorf("second Rescue: got %+v, want the commit %s on %s, 1 file", again, kept.Commit, head)
	}
	b.do(b.repo, "worktree", "prune")
	if again := rescue(); again.Head != p.Head || again.Branch != "deskhand/fix" || again.Commit != "" {
		t.Errorf("Rescue of another commit: got %+v, want no kept commit", again)
	}

	// Where a branch has all of it nothing is kept.
	if err := b.Restore(ctx, b.repo, path, known); err != nil {
		t.Fatal(err)
	}
	b.leave(path, "code.go", "three\n")
	b.do(path, "commit", "--quiet", "--all", "-m", "third")
	head = b.do(path, "rev-parse", "HEAD")
	byHand()
	if kept := rescue(); kept != (worktree.Kept{Branch: "deskhand/fix", Head: head}) {
		t.Errorf("Rescue: got %+v, want the branch and %s alone", kept, head)
	}
	if _, err := os.Lstat(filepath.Join(b.repo, ".git", "worktrees", "fix")); err != nil {
		t.Error("git's record went with the look at it")
	}
}

// conflict leaves one in the index of a worktree, without git being in the middle of anything: as a stash does that does not fit. What else
// is staged there is staged.txt.
func (b *bench) conflict(path string) {
	b.t.Helper()
	b.do(path, "checkout", "--quiet", "-b", "theirs")
	b.leave(path, "code.go", "theirs\n")
	b.do(path, "commit", "--quiet", "--all", "-m", "theirs")
	b.do(path, "checkout", "--quiet", "-")
	b.leave(path, "code.go", "ours\n")
	b.do(path, "commit", "--quiet", "--all", "-m", "ours")
	b.do(path, "read-tree", "-m", "main", "HEAD", "theirs")
	b.leave(path, "staged.txt", "staged\n")
	b.do(path, "add", "staged.txt")
	if got := b.do(path, "ls-files", "--unmerged"); strings.Count(got, "code.go") != 3 {
		b.t.Fatalf("unmerged entries: got %s, want 3 of code.go", got)
	}
}

// TestRescueKeepsStagedFilesBesideConflict: it goes with git's record, which has no tree of it.
func TestRescueKeepsStagedFilesBesideConflict(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	b.conflict(path)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	kept, err := b.Rescue(t.Context(), b.repo, path, ref, worktree.Kept{Branch: "deskhand/fix", Head: p.Head})
	if err != nil || kept.Files != 1 || kept.Commit == "" {
		t.Fatalf("Rescue: got %+v, error %v, want a commit of 1 file", kept, err)
	}
	if got := b.do(b.repo, "show", ref+":staged.txt") + " " + b.do(b.repo, "show", ref+":code.go"); got != "staged ours" {
		t.Errorf("kept files: got %q, want staged and ours", got)
	}
}
