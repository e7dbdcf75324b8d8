package worktree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/unprivileged"
	"deskhand/backend/worktree"
)

// anothers gives a folder to somebody else, and takes from this test what root may in it: a container leaves such.
func anothers(t *testing.T, top, folder string) {
	t.Helper()
	const nobody = 65534
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Skip("nothing can be given to somebody else: ", err)
	}
	t.Cleanup(func() { // by a thread that may not delete it either, but may give it back
		_ = filepath.WalkDir(top, func(name string, _ os.DirEntry, _ error) error {
			_ = os.Lchown(name, os.Getuid(), os.Getgid())
			return nil
		})
	})
	unprivileged.Bind(t)
}

// TestWhatCannotBeDeletedDoesNotHoldUpARemoval: it is over all the same, tells where the rest is, and the next one does not stumble over it.
func TestWhatCannotBeDeletedDoesNotHoldUpARemoval(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.leave(path, "new.txt", "mine\n", "cache/pg/data", "of a container\n")
	anothers(t, filepath.Dir(b.repo), filepath.Join(path, "cache", "pg"))
	rests := ""
	for round := range 2 {
		var kept worktree.Kept
		err := b.Remove(t.Context(), b.repo, path, ref, func(k worktree.Kept) error { kept = k; return nil })
		left, is := errors.AsType[*worktree.LeftError](err)
		if !is || filepath.Dir(left.Path) != filepath.Dir(path) || left.Path == rests {
			t.Fatalf("round %d: %v", round, err)
		}
		rests = left.Path
		if _, err := os.Lstat(filepath.Join(rests, "cache", "pg")); err != nil || strings.Contains(b.do(b.repo, "worktree", "list"), path) {
			t.Errorf("round %d: %v", round, err)
		}
		// It is over: nobody asks for it again and again.
		if gone, err := b.Resume(t.Context(), b.repo, path, kept); err != nil || !gone {
			t.Errorf("round %d: %v %v", round, gone, err)
		}
		if err := b.Restore(t.Context(), b.repo, path, kept); err != nil {
			t.Fatal(err)
		}
		b.leave(path, "cache/pg/data", "of a container\n")
		if err := os.Chown(filepath.Join(path, "cache", "pg"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}

	// One that was killed before it could tell.
	away := filepath.Join(filepath.Dir(path), ".deleted-fix")
	kept := worktree.Kept{Head: b.do(path, "rev-parse", "HEAD"), Branch: "deskhand/fix"}
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	gone, err := b.Resume(t.Context(), b.repo, path, kept)
	if !gone || !errors.As(err, new(*worktree.LeftError)) {
		t.Errorf("%v %v", gone, err)
	}
	if gone, err := b.Resume(t.Context(), b.repo, path, kept); !gone || err != nil {
		t.Errorf("%v %v", gone, err)
	}
}

// TestAPathThatIsMadeAgainDoesNotHoldUpARemoval: a program that watches files writes where they were, while git is told to forget them.
func TestAPathThatIsMadeAgainDoesNotHoldUpARemoval(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program that stands for git is a shell script")
	}
	b := set(t)
	path, p := b.made("fix")
	b.leave(path, "new.txt", "mine\n")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *'worktree remove'*) mkdir -p '" + path + "/.cache'; echo >'" + path + "/.cache/x';; esac\nexec '" + real + "' \"$@\"\n"
	if err := writeProgram(filepath.Join(bin, "git"), script); err != nil {
		t.Fatal(err)
	}
	before := b.env
	b.env = append(slices.Clip(b.env), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	kept := b.removeTo(path)
	b.env = before
	over := func() {
		t.Helper()
		if strings.Contains(b.do(b.repo, "worktree", "list"), path) || !strings.Contains(b.all(path), "x") || strings.Contains(b.all(filepath.Dir(path)), "mine") {
			t.Errorf("%s\n%s", b.do(b.repo, "worktree", "list"), b.all(filepath.Dir(path)))
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || !strings.Contains(b.all(path), "mine") {
			t.Fatalf("%v\n%s", err, b.all(path))
		}
	}
	over()

	// As one that was killed there finds it.
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), ".deleted-fix")); err != nil {
		t.Fatal(err)
	}
	b.leave(path, ".cache/x", "x\n")
	if gone, err := b.Resume(t.Context(), b.repo, path, kept); !gone || err != nil {
		t.Errorf("%v %v", gone, err)
	}
	over()

	// A work tree that is there is as it was, whatever lies beside it.
	b.leave(filepath.Join(filepath.Dir(path), ".deleted-fix"), "rest.txt", "kept long ago\n")
	if gone, err := b.Resume(t.Context(), b.repo, path, kept); gone || err != nil {
		t.Errorf("%v %v", gone, err)
	}
	if s, err := b.Inspect(t.Context(), path, p.Head); err != nil || len(s.Changes) != 1 {
		t.Errorf("%+v %v", s, err)
	}
}

// removeTo removes a work tree where something new may stand afterwards.
func (b *bench) removeTo(path string) (kept worktree.Kept) {
	b.t.Helper()
	if err := b.Remove(b.t.Context(), b.repo, path, ref, func(k worktree.Kept) error { kept = k; return nil }); err != nil {
		b.t.Fatal(err)
	}
	return kept
}

// TestCommitsThatOnlyTheReflogNamesAreKept: of an experiment on no branch, which nobody has gone back to.
func TestCommitsThatOnlyTheReflogNamesAreKept(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		b := set(t)
		path, p := b.made("fix")
		b.do(path, "checkout", "--quiet", "--detach")
		for _, name := range []string{"one", "two"} {
			b.leave(path, name+".txt", "an hour of work\n")
			b.do(path, "add", "--all")
			b.do(path, "commit", "--quiet", "-m", name)
		}
		id := b.do(path, "rev-parse", "HEAD")
		b.do(path, "checkout", "--quiet", "deskhand/fix")
		s, err := b.Inspect(t.Context(), path, p.Head)
		if err != nil || s.Strays != 2 || s.Commits != 0 {
			t.Errorf("%+v %v", s, err)
		}
		var kept worktree.Kept
		if deleted {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if kept, err = b.Rescue(t.Context(), b.repo, path, ref, worktree.Kept{Branch: "deskhand/fix", Head: p.Head}); err != nil {
				t.Fatal(err)
			}
			b.do(b.repo, "worktree", "prune")
		} else {
			kept = b.remove(path)
		}
		if kept.Strays != 2 || kept.Commit != "" {
			t.Errorf("%+v", kept)
		}
		if got := b.do(b.repo, "for-each-ref", "--points-at", id, "--format=%(refname)"); got != ref+"-"+id[:12] {
			t.Errorf("deleted by hand %v: %q", deleted, got)
		}
	}
}

// TestABranchOfARemoteKeepsNothing: the next fetch may take it away.
func TestABranchOfARemoteKeepsNothing(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.do(path, "checkout", "--quiet", "--detach")
	b.leave(path, "exp.txt", "an hour of work\n")
	b.do(path, "add", "--all")
	b.do(path, "commit", "--quiet", "-m", "experiment")
	id := b.do(path, "rev-parse", "HEAD")
	b.do(path, "update-ref", "refs/remotes/origin/topic", id)
	b.remove(path)
	b.do(b.repo, "update-ref", "-d", "refs/remotes/origin/topic")
	if got := b.do(b.repo, "for-each-ref", "--contains", id, "--format=%(refname)"); got != ref {
		t.Errorf("%q", got)
	}
}

// TestAFolderThatNobodyCanReadIsNotRemoved: nobody knows what is in it. Where the rules leave it out it goes, and is named.
func TestAFolderThatNobodyCanReadIsNotRemoved(t *testing.T) {
	t.Parallel()
	unprivileged.Bind(t)
	b := set(t)
	path, p := b.made("fix")
	b.leave(path, "cache/mine.txt", "mine\n", "deep/secret/mine.txt", "mine\n")
	for _, name := range []string{"cache", "deep/secret"} {
		folder := filepath.Join(path, name)
		if err := os.Chmod(folder, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) //nolint:gosec // a folder
	}
	_, err := b.Inspect(t.Context(), path, p.Head)
	if closed, is := errors.AsType[*worktree.UnreadableError](err); !is || closed.Path != "deep/secret" {
		t.Fatalf("%v", err)
	}
	err = b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { t.Error("it was told to be kept"); return nil })
	if !errors.As(err, new(*worktree.UnreadableError)) {
		t.Fatalf("%v", err)
	}
	if err := os.Chmod(filepath.Join(path, "deep/secret"), 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	s, err := b.Inspect(t.Context(), path, p.Head)
	if err != nil || len(s.Ignored) != 1 || s.Ignored[0] != (worktree.Ignored{Path: "cache/", Files: 1}) || len(s.Changes) != 1 {
		t.Errorf("%+v %v", s, err)
	}
	b.remove(path)
}

// TestAFolderThatMayOnlyBeListedIsNotRemoved: git takes what it cannot look at there for unchanged, and says nothing.
func TestAFolderThatMayOnlyBeListedIsNotRemoved(t *testing.T) {
	t.Parallel()
	unprivileged.Bind(t)
	b := set(t)
	path, p := b.made("fix")
	b.leave(path, "sub/deep.txt", "changed\n", "cache/mine.txt", "mine\n")
	for _, name := range []string{"sub", "cache"} {
		folder := filepath.Join(path, name)
		if err := os.Chmod(folder, 0o600); err != nil { //nolint:gosec // a folder
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) //nolint:gosec // a folder
	}
	_, err := b.Inspect(t.Context(), path, p.Head)
	if closed, is := errors.AsType[*worktree.UnreadableError](err); !is || closed.Path != "sub" {
		t.Errorf("%v", err)
	}
	err = b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { t.Error("it was told to be kept"); return nil })
	if closed, is := errors.AsType[*worktree.UnreadableError](err); !is || closed.Path != "sub" {
		t.Fatalf("%v", err)
	}
	if err := os.Chmod(filepath.Join(path, "sub"), 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	b.remove(path) // the other one is left out by the rules
}
