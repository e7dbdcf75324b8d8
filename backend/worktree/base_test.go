package worktree_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"deskhand/backend/worktree"
)

// branches makes a repository with branches of several ages, and a remote whose default branch is main.
func branches(t testing.TB) *bench {
	t.Helper()
	b := set(t)
	b.do(b.repo, "checkout", "--quiet", "-b", "older")
	b.do(b.repo, "commit", "--quiet", "--allow-empty", "--date=@1000000000", "-m", "older")
	b.do(b.repo, "checkout", "--quiet", "-b", "newest", "main")
	b.leave(b.repo, "new.txt", "new\n")
	b.do(b.repo, "add", "--all")
	b.do(b.repo, "commit", "--quiet", "-m", "newest")
	b.do(b.repo, "tag", "v1")
	b.do(filepath.Dir(b.repo), "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
	b.do(b.repo, "remote", "add", "origin", "../origin.git")
	b.do(b.repo, "push", "--quiet", "origin", "main", "newest")
	b.do(b.repo, "fetch", "--quiet")
	b.do(b.repo, "remote", "set-head", "origin", "main")
	b.do(b.repo, "checkout", "--quiet", "older")
	return b
}

func TestBasesBeginWithTheLikelyOnes(t *testing.T) {
	b := branches(t)
	list, err := b.Bases(t.Context(), b.look(b.repo))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range list {
		got = append(got, one.Name)
	}
	if len(got) < 3 || !slices.Equal(got[:3], []string{"older", "main", "origin/main"}) || len(got) != 5 {
		t.Errorf("Bases with older checked out: got %q, want older, main, origin/main and the newest, newest and origin/newest", got)
	}
}

func TestABaseIsABranchOrACommitAndNothingElse(t *testing.T) {
	b := branches(t)
	p := b.look(b.repo)
	newest := b.do(b.repo, "rev-parse", "newest")
	for name, want := range map[string]worktree.Base{
		"newest":        {Name: "newest", Commit: newest, Branch: true},
		"origin/newest": {Name: "origin/newest", Commit: newest, Branch: true, Remote: true},
		"v1":            {Name: "v1", Commit: newest},
		newest[:9]:      {Name: newest[:9], Commit: newest},
		newest:          {Name: newest, Commit: newest},
	} {
		if got, err := b.At(t.Context(), p, name); err != nil || got != want {
			t.Errorf("At(%q): got %+v, %v; want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{"none", "newest~1", "HEAD", "@", "-v", "--all", "refs/heads/newest", "", "..", "newest^{tree}", "deadbeef", b.do(b.repo, "rev-parse", "newest^{tree}")} {
		if got, err := b.At(t.Context(), p, name); !errors.Is(err, worktree.ErrBase) {
			t.Errorf("At(%q): got %+v, %v; want ErrBase", name, got, err)
		}
	}
}

func TestWorktreesOfUnusualCheckouts(t *testing.T) {
	b := set(t)
	make := func(name string) (string, error) {
		p, err := b.Look(t.Context(), b.repo)
		if err != nil {
			return "", err
		}
		path := filepath.Join(p.Beside(), name)
		return path, b.Make(t.Context(), p, path, name)
	}
	clean := func(what, path string) {
		t.Helper()
		if said := b.do(path, "status", "--porcelain"); said != "" {
			t.Errorf("git status in a worktree of %s: got %q, want nothing", what, said)
		}
	}

	b.do(b.repo, "checkout", "--quiet", "--detach")
	b.do(b.repo, "commit", "--quiet", "--allow-empty", "-m", "on no branch")
	path, err := make("detached")
	if head := b.do(b.repo, "rev-parse", "HEAD"); err != nil || b.do(path, "rev-parse", "detached") != head {
		t.Errorf("a worktree of a detached head: got %v, want one at %s", err, head)
	}
	clean("a detached head", path)
	if list, err := b.Bases(t.Context(), b.look(b.repo)); err != nil || len(list) != 2 || list[0].Name != "main" {
		t.Errorf("Bases with no branch checked out: got %+v, %v; want main and the worktree's", list, err)
	}

	b.do(b.repo, "checkout", "--quiet", "main")
	b.do(b.repo, "sparse-checkout", "set", "sub")
	if path, err = make("sparse"); err != nil {
		t.Fatal(err)
	}
	clean("a sparse checkout", path)
	if got := b.do(path, "ls-files", "-v", "sub/deep.txt"); got != "H sub/deep.txt" {
		t.Errorf("a file of the part that is checked out: got %q, want it there", got)
	}
	b.do(b.repo, "sparse-checkout", "disable")

	b.do(filepath.Dir(b.repo), "clone", "--quiet", b.repo, "lib")
	b.do(b.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "lib")
	b.do(b.repo, "commit", "--quiet", "-m", "a submodule")
	if path, err = make("with-submodule"); err != nil {
		t.Fatal(err)
	}
	clean("a repository with a submodule", path)
	if list, _ := filepath.Glob(filepath.Join(path, "lib", "*")); len(list) != 0 {
		t.Errorf("the submodule in the worktree: got %q, want it empty", list)
	}

	b.do(b.repo, "checkout", "--quiet", "--orphan", "nothing")
	if _, err := make("unborn"); !errors.Is(err, worktree.ErrNoCommit) {
		t.Errorf("a worktree of a branch without a commit: got %v, want ErrNoCommit", err)
	}
}
