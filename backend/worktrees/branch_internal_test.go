package worktrees

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What git itself has checked out is what is told: a branch, none, a linked work tree's, one before its first commit.
func TestBranch(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=trunk"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	repo, plain := filepath.Join(root, "repo"), filepath.Join(root, "plain")
	sub := filepath.Join(repo, "deep", "down")
	for _, dir := range []string{plain, sub} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	look := func(dir string) Branch {
		t.Helper()
		head, ok := headAbove(dir)
		if !ok {
			return Branch{}
		}
		return branchOf(head)
	}
	if got := look(plain); got != (Branch{}) {
		t.Fatalf("in no repository: %+v", got)
	}
	git(repo, "init", "-q")
	if got := look(sub); got != (Branch{Name: "trunk"}) {
		t.Fatalf("before the first commit: %+v", got)
	}
	git(repo, "commit", "-q", "--allow-empty", "-m", "one")
	git(repo, "switch", "-q", "-c", "fix/login")
	if got := look(sub); got != (Branch{Name: "fix/login"}) {
		t.Fatalf("on a branch: %+v", got)
	}
	linked := filepath.Join(root, "linked")
	git(repo, "worktree", "add", "-q", "-b", "beside", linked)
	if got := look(linked); got != (Branch{Name: "beside"}) {
		t.Fatalf("in a linked work tree: %+v", got)
	}
	git(repo, "switch", "-q", "--detach")
	if got := look(repo); got.Name != "" || len(got.Commit) < 40 {
		t.Fatalf("on no branch: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(plain, ".git"), []byte("not what git writes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := look(plain); got != (Branch{}) {
		t.Fatalf("a .git that is none: %+v", got)
	}
}
