package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/worktree"
)

// TestADirectoryThatSomebodyHasDeletedLosesNoCommit: git's record of it is the last that names what was checked out there, and what was staged.
func TestADirectoryThatSomebodyHasDeletedLosesNoCommit(t *testing.T) {
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
		t.Errorf("%+v", kept)
	}
	if gone, err := b.Resume(ctx, b.repo, path, kept); err != nil || !gone || strings.Contains(b.do(b.repo, "worktree", "list"), path) {
		t.Errorf("%v %v", gone, err)
	}
	if b.do(b.repo, "for-each-ref", "--contains="+head, "--format=%(refname)") != ref {
		t.Error("no ref has the commit")
	}
	if err := b.Restore(ctx, b.repo, path, kept); err != nil || b.do(path, "rev-parse", "HEAD") != head || b.do(path, "status", "--porcelain") != "A  staged.txt" {
		t.Fatalf("%v %s", err, b.do(path, "status", "--porcelain"))
	}

	// What was kept before, and came back, is known once more; without git's record, too.
	b.do(path, "reset", "--quiet")
	byHand()
	if again := rescue(); again.Commit != kept.Commit || again.Head != head || again.Files != 1 {
		t.Errorf("%+v", again)
	}
	b.do(b.repo, "worktree", "prune")
	if again := rescue(); again.Head != p.Head || again.Branch != "deskhand/fix" || again.Commit != "" {
		t.Errorf("what was kept on another commit: %+v", again)
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
		t.Errorf("%+v", kept)
	}
	if _, err := os.Lstat(filepath.Join(b.repo, ".git", "worktrees", "fix")); err != nil {
		t.Error("git's record went with the look at it")
	}
}

// conflict leaves one in the index of a work tree, without git being in the middle of anything: as a stash does that does not fit. What else
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
		b.t.Fatalf("%s", got)
	}
}

// TestWhatIsStagedBesideAConflictIsKept: it goes with git's record, which has no tree of it.
func TestWhatIsStagedBesideAConflictIsKept(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	b.conflict(path)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	kept, err := b.Rescue(t.Context(), b.repo, path, ref, worktree.Kept{Branch: "deskhand/fix", Head: p.Head})
	if err != nil || kept.Files != 1 || kept.Commit == "" {
		t.Fatalf("%+v %v", kept, err)
	}
	if got := b.do(b.repo, "show", ref+":staged.txt") + " " + b.do(b.repo, "show", ref+":code.go"); got != "staged ours" {
		t.Errorf("%q", got)
	}
}
