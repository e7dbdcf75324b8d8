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

// TestUndeletableRemainsDoNotStopRemoval: it is over all the same, tells where the rest is, and the next one does not stumble over it.
func TestUndeletableRemainsDoNotStopRemoval(t *testing.T) {
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
			t.Fatalf("Remove, round %d: got error %v, want a LeftError with a new path", round, err)
		}
		rests = left.Path
		if _, err := os.Lstat(filepath.Join(rests, "cache", "pg")); err != nil || strings.Contains(b.do(b.repo, "worktree", "list"), path) {
			t.Errorf("remains, round %d: got error %v, want them at %s and forgotten by git", round, err, rests)
		}
		// It is over: nobody asks for it again and again.
		if gone, err := b.Resume(t.Context(), b.repo, path, kept); err != nil || !gone {
			t.Errorf("Resume, round %d: got gone %v, error %v, want gone", round, gone, err)
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
		t.Errorf("Resume: got gone %v, error %v, want gone with a LeftError", gone, err)
	}
	if gone, err := b.Resume(t.Context(), b.repo, path, kept); !gone || err != nil {
		t.Errorf("second Resume: got gone %v, error %v, want gone", gone, err)
	}
}

// TestPathMadeAgainDoesNotStopRemoval: a program that watches files writes where they were, while git is told to forget them.
func TestPathMadeAgainDoesNotStopRemoval(t *testing.T) {
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
			t.Errorf("after the removal: got the list %s and the files %s, want the new file alone", b.do(b.repo, "worktree", "list"), b.all(filepath.Dir(path)))
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || !strings.Contains(b.all(path), "mine") {
			t.Fatalf("Restore: got error %v and\n%s\nwant the file mine", err, b.all(path))
		}
	}
	over()

	// As one that was killed there finds it.
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), ".deleted-fix")); err != nil {
		t.Fatal(err)
	}
	b.leave(path, ".cache/x", "x\n")
	if gone, err := b.Resume(t.Context(), b.repo, path, kept); !gone || err != nil {
		t.Errorf("Resume with the path made again: got gone %v, error %v, want gone", gone, err)
	}
	over()

	// A worktree that is there is as it was, whatever lies beside it.
	b.leave(filepath.Join(filepath.Dir(path), ".deleted-fix"), "rest.txt", "kept long ago\n")
	if gone, err := b.Resume(t.Context(), b.repo, path, kept); gone || err != nil {
		t.Errorf("Resume beside an older removal: got gone %v, error %v, want not gone", gone, err)
	}
	if s, err := b.Inspect(t.Context(), path, p.Head); err != nil || len(s.Changes) != 1 {
		t.Errorf("Inspect: got %+v, error %v, want 1 change", s, err)
	}
}

// removeTo removes a worktree where something new may stand afterwards.
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
			t.Errorf("Inspect: got %+v, error %v, want 2 strays, no commits", s, err)
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
			t.Errorf("kept state: got %+v, want 2 strays, no commit", kept)
		}
		if got := b.do(b.repo, "for-each-ref", "--points-at", id, "--format=%(refname)"); got != ref+"-"+id[:12] {
			t.Errorf("ref of the stray, deleted by hand %v: got %q, want %q", deleted, got, ref+"-"+id[:12])
		}
	}
}

// TestRemoteBranchDoesNotKeepCommit: the next fetch may take it away.
func TestRemoteBranchDoesNotKeepCommit(t *testing.T) {
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
		t.Errorf("refs of the commit: got %q, want %q", got, ref)
	}
}

// TestRemoveRefusesUnreadableFolder: nobody knows what is in it. Where the rules leave it out it goes, and is named.
func TestRemoveRefusesUnreadableFolder(t *testing.T) {
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
		t.Fatalf("Inspect: got error %v, want an UnreadableError of deep/secret", err)
	}
	err = b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { t.Error("it was told to be kept"); return nil })
	if !errors.As(err, new(*worktree.UnreadableError)) {
		t.Fatalf("Remove: got error %v, want an UnreadableError", err)
	}
	if err := os.Chmod(filepath.Join(path, "deep/secret"), 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	s, err := b.Inspect(t.Context(), path, p.Head)
	if err != nil || len(s.Ignored) != 1 || s.Ignored[0] != (worktree.Ignored{Path: "cache/", Files: 1}) || len(s.Changes) != 1 {
		t.Errorf("Inspect with the folder ignored: got %+v, error %v, want cache/ and 1 change", s, err)
	}
	b.remove(path)
}

// TestRemoveRefusesFolderThatMayOnlyBeListed: git takes what it cannot look at there for unchanged, and says nothing.
func TestRemoveRefusesFolderThatMayOnlyBeListed(t *testing.T) {
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
		t.Errorf("Inspect: got error %v, want an UnreadableError of sub", err)
	}
	err = b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { t.Error("it was told to be kept"); return nil })
	if closed, is := errors.AsType[*worktree.UnreadableError](err); !is || closed.Path != "sub" {
		t.Fatalf("Remove: got error %v, want an UnreadableError of sub", err)
	}
	if err := os.Chmod(filepath.Join(path, "sub"), 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
	b.remove(path) // the other one is left out by the rules
}
