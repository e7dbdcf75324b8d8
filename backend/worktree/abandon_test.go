package worktree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deskhand/backend/worktree"
)

// stays tells whether a worktree whose making was cut off is left alone, once somebody has put something into it.
func (b *bench) stays(what string, put func(path string)) {
	b.t.Helper()
	name := strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(what)
	path, p := b.made(name)
	put(path)
	before := b.all(path)
	gone, err := b.Abandon(b.t.Context(), b.repo, path, "deskhand/"+name, worktree.Kept{Head: p.Head})
	if err != nil || gone || b.all(path) != before {
		b.t.Errorf("Abandon after %s: got gone %v, error %v, content %v, want it unchanged", what, gone, err, b.all(path) != before)
	}
}

// TestAbandonKeepsPersonsFiles: into a worktree whose making was cut off, while git was at it and after. Ignored files are somebody's
// too, since no agent was ever there.
func TestAbandonKeepsPersonsFiles(t *testing.T) {
	t.Parallel()
	b := set(t)
	b.do(b.repo, "config", "--global", "filter.lossy.clean", "grep -v OUT")
	b.leave(b.repo, ".gitattributes", "*.nb filter=lossy\n", "book.nb", "in\n")
	b.do(b.repo, "add", "--all")
	b.submodule("lib")
	b.stays("ignored", func(path string) { b.leave(path, "cache/.env", "SECRET=1\n") })
	b.stays("ignored, half", func(path string) { b.half(path); b.leave(path, "noise.log", "hours of it\n") })
	b.stays("changed, half", func(path string) { b.half(path); b.leave(path, "sub/deep.txt", "changed\n") })
	b.stays("of a submodule", func(path string) { b.leave(path, "lib/notes.txt", "mine\n") })
	b.stays("a filter's loss", func(path string) { b.leave(path, "book.nb", "in\nOUT precious\n") })

	// One that comes back: what was kept is there, and something that the rules leave out.
	path, _ := b.made("back")
	b.leave(path, "mine.txt", "mine\n")
	kept := b.remove(path)
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil {
		t.Fatal(err)
	}
	b.leave(path, "noise.log", "hours of it\n")
	if gone, err := b.Abandon(t.Context(), b.repo, path, "", kept); err != nil || gone || !strings.Contains(b.all(path), "noise.log") {
		t.Errorf("Abandon of a restored worktree: got gone %v, error %v, want the file kept", gone, err)
	}
}

// TestAbandonKeepsWorkThatOnlyGitHas: no file of such a worktree tells of it.
func TestAbandonKeepsWorkThatOnlyGitHas(t *testing.T) {
	t.Parallel()
	b := set(t)
	b.stays("staged", func(path string) {
		b.leave(path, "staged.txt", "staged, and nowhere else\n")
		b.do(path, "add", "staged.txt")
		_ = os.Remove(filepath.Join(path, "staged.txt"))
	})
	b.stays("a commit", func(path string) { b.do(path, "commit", "--quiet", "--allow-empty", "-m", "mine") })
	b.stays("thrown away", func(path string) {
		b.do(path, "checkout", "--quiet", "--detach")
		b.do(path, "commit", "--quiet", "--allow-empty", "-m", "an experiment")
		b.do(path, "checkout", "--quiet", "-")
	})
	b.stays("empty repo", func(path string) { b.do(path, "init", "--quiet", "inner") })
	b.stays("another repo", func(path string) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		b.do(b.repo, "clone", "--quiet", "--no-checkout", b.repo, path)
	})
	b.stays("a lock", func(path string) { b.do(b.repo, "worktree", "lock", "--reason", "mine", path) })
}

// submodule commits one that is checked out nowhere.
func (b *bench) submodule(name string) {
	b.t.Helper()
	b.do(b.repo, "update-index", "--add", "--cacheinfo", "160000,"+b.do(b.repo, "rev-parse", "HEAD")+","+name)
	b.do(b.repo, "commit", "--quiet", "-m", "with a submodule")
}

// half leaves a worktree as a git does that is killed in the middle of checking it out.
func (b *bench) half(path string) {
	b.t.Helper()
	git := b.do(path, "rev-parse", "--absolute-git-dir")
	b.leave(git, "locked", "initializing", "index.lock", "")
	if err := errors.Join(os.Remove(filepath.Join(path, "code.go")), os.Remove(filepath.Join(git, "index"))); err != nil {
		b.t.Fatal(err)
	}
	b.leave(path, "gone.txt", "go")
}

// TestAbandonRemovesUntouchedWorktree: git was killed in the middle of a file, of a beginning and of a return, and so were we at this very removal.
func TestAbandonRemovesUntouchedWorktree(t *testing.T) {
	t.Parallel()
	b := set(t)
	goes := func(what, path, branch string, k worktree.Kept) {
		t.Helper()
		if gone, err := b.Abandon(t.Context(), b.repo, path, branch, k); err != nil || !gone {
			t.Errorf("Abandon of %s: got gone %v, error %v, want gone", what, gone, err)
		}
		if _, err := os.Lstat(filepath.Dir(path)); err == nil || strings.Contains(b.do(b.repo, "worktree", "list"), path) {
			t.Fatalf("Abandon of %s: got remains, want none", what)
		}
	}
	path, p := b.made("fix")
	b.half(path)
	goes("a beginning", path, "deskhand/fix", worktree.Kept{Head: p.Head})
	path, _ = b.made("fix")
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), ".removed-fix")); err != nil {
		t.Fatal(err)
	}
	goes("out of the way", path, "deskhand/fix", worktree.Kept{Head: p.Head})
	path, _ = b.made("fix")
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), ".deleted-fix")); err != nil {
		t.Fatal(err)
	}
	goes("deleted in part", path, "deskhand/fix", worktree.Kept{Head: p.Head})

	// Somebody has moved it: its branch is no longer ours to delete.
	path, _ = b.made("fix")
	moved := filepath.Join(filepath.Dir(b.repo), "moved")
	b.do(b.repo, "worktree", "move", path, moved)
	goes("moved", path, "deskhand/fix", worktree.Kept{Head: p.Head})
	if b.do(moved, "rev-parse", "--abbrev-ref", "HEAD") != "deskhand/fix" {
		t.Error("its branch is gone")
	}

	path, _ = b.made("back")
	b.leave(path, "code.go", "two, and more\n", "new.txt", "new\n", "forced.log", "though it is ignored\n")
	b.do(path, "add", "--force", "forced.log")
	kept := b.remove(path)
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil {
		t.Fatal(err)
	}
	b.leave(path, "code.go", "two", "new.txt", "")
	b.do(path, "read-tree", "HEAD")
	goes("a return", path, "", kept)
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || !strings.Contains(b.all(path), "two, and more") {
		t.Errorf("Restore: got error %v and\n%s\nwant the kept file", err, b.all(path))
	}
}

// writeProgram writes a script while no other test forks: its child would hold the file open until its exec, and nobody could run it ("text file busy").
func writeProgram(file, script string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(file, []byte(script), 0o700) //nolint:gosec // it is run
}

// first has the library's git run a few lines of a shell before it does anything.
func (b *bench) first(lines string) {
	b.t.Helper()
	if runtime.GOOS == "windows" {
		b.t.Skip("the program that stands for git is a shell script")
	}
	real, err := exec.LookPath("git")
	if err != nil {
		b.t.Fatal(err)
	}
	bin := b.t.TempDir()
	script := "#!/bin/sh\n" + lines + "\nexec '" + real + "' \"$@\"\n"
	if err := writeProgram(filepath.Join(bin, "git"), script); err != nil {
		b.t.Fatal(err)
	}
	b.env = append(slices.Clip(b.env), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// TestAbandonReportsFullDisk: what cannot be looked at for it goes the next time.
func TestAbandonReportsFullDisk(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	env := b.env
	b.first("case \"$*\" in *read-tree*) echo 'fatal: unable to write new index file: No space left on device' >&2; exit 128;; esac")
	if gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/fix", worktree.Kept{Head: p.Head}); gone || !errors.Is(err, worktree.ErrFull) {
		t.Errorf("Abandon on a full disk: got gone %v, error %v, want ErrFull", gone, err)
	}
	b.env = env
	if gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/fix", worktree.Kept{Head: p.Head}); err != nil || !gone {
		t.Errorf("Abandon with space again: got gone %v, error %v, want gone", gone, err)
	}
}

// TestAbandonReportsRemains: a program that ran as somebody else has taken a folder, so that nothing in it can be deleted.
func TestAbandonReportsRemains(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	// Where the test is root's, git may delete what we may not.
	b.first("case \"$*\" in *'worktree remove'*) [ -e '" + path + "' ] && exit 1;; esac")
	if err := os.Chmod(filepath.Join(path, "sub"), 0o755); err != nil { //nolint:gosec // others may look into it
		t.Fatal(err)
	}
	anothers(t, filepath.Dir(b.repo), filepath.Join(path, "sub"))
	gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/fix", worktree.Kept{Head: p.Head})
	left, is := errors.AsType[*worktree.LeftError](err)
	if !gone || !is || filepath.Dir(left.Path) != filepath.Dir(path) {
		t.Fatalf("Abandon: got gone %v, error %v, want gone with a LeftError beside %s", gone, err, path)
	}
	if _, err := os.Lstat(filepath.Join(left.Path, "sub/deep.txt")); err != nil {
		t.Error(err)
	}
	if said := b.do(b.repo, "branch", "--list", "deskhand/*") + b.do(b.repo, "worktree", "list"); strings.Contains(said, "fix") {
		t.Error(said)
	}
	if gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/fix", worktree.Kept{Head: p.Head}); err != nil || !gone {
		t.Errorf("second Abandon: got gone %v, error %v, want gone", gone, err)
	}
}

// TestAbandonRunsNoFilter that the repository alone names: what is not approved while it is made is not afterwards.
func TestAbandonRunsNoFilter(t *testing.T) {
	t.Parallel()
	b := set(t)
	b.leave(b.repo, ".gitattributes", "*.go filter=mine\n")
	b.do(b.repo, "add", "--all")
	b.do(b.repo, "commit", "--quiet", "-m", "second")
	path, p := b.made("fix")
	marker := filepath.Join(t.TempDir(), "ran")
	b.do(b.repo, "config", "filter.mine.clean", "touch "+marker+"; cat")
	gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/fix", worktree.Kept{Head: p.Head})
	if _, ran := os.Lstat(marker); err != nil || !gone || ran == nil {
		t.Errorf("Abandon with a clean filter: got gone %v, error %v, filter ran %v, want gone, not run", gone, err, ran == nil)
	}
	// A filter of which nobody knows what it makes of files: they stay.
	path, _ = b.made("other")
	b.do(b.repo, "config", "filter.mine.smudge", "touch "+marker+"; cat")
	gone, err = b.Abandon(t.Context(), b.repo, path, "deskhand/other", worktree.Kept{Head: p.Head})
	if _, ran := os.Lstat(marker); err != nil || gone || ran == nil {
		t.Errorf("Abandon with a smudge filter: got gone %v, error %v, filter ran %v, want not gone, not run", gone, err, ran == nil)
	}
}

// TestInspectRefusesUnfinishedCherryPick: between two of them git says so in its list of them alone.
func TestInspectRefusesUnfinishedCherryPick(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	for _, text := range []string{"two\n", "three\n"} {
		b.leave(b.repo, "code.go", text)
		b.do(b.repo, "commit", "--quiet", "--all", "-m", text)
	}
	b.leave(path, "code.go", "mine\n")
	b.do(path, "commit", "--quiet", "--all", "-m", "mine")
	b.do(path, "-c", "alias.try=!git cherry-pick HEAD..main || true", "try")
	b.leave(path, "code.go", "both\n")
	b.do(path, "commit", "--quiet", "--all", "-m", "both")
	if _, err := b.Inspect(t.Context(), path, p.Head); !errors.Is(err, worktree.ErrUnfinished) {
		t.Errorf("Inspect: got error %v, want ErrUnfinished", err)
	}
	if err := b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { t.Error("it was told to be kept"); return nil }); !errors.Is(err, worktree.ErrUnfinished) {
		t.Errorf("Remove: got error %v, want ErrUnfinished", err)
	}
}

// TestRemoveIgnoresLockOfKilledGit: what was staged, by a copy of the index whose lock is still there.
func TestRemoveIgnoresLockOfKilledGit(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.leave(path, "code.go", "staged\n")
	b.do(path, "add", "code.go")
	staged := b.do(path, "write-tree")
	b.leave(path, "code.go", "and not\n")
	b.leave(b.do(path, "rev-parse", "--absolute-git-dir"), "deskhand-staged.lock", "", "deskhand-index.lock", "")
	if kept := b.remove(path); b.do(b.repo, "rev-parse", kept.Commit+"^2^{tree}") != staged {
		t.Error("what was staged is lost")
	}
}

// TestRemoveRefusesFilesInSubmodule: git looks into none that is not checked out, and would keep nothing of it.
func TestRemoveRefusesFilesInSubmodule(t *testing.T) {
	t.Parallel()
	b := set(t)
	b.submodule("lib")
	path, p := b.made("fix")
	if _, err := b.Inspect(t.Context(), path, p.Head); err != nil {
		t.Fatal(err)
	}
	b.leave(path, "lib/notes.txt", "mine\n")
	err := b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { t.Error("it was told to be kept"); return nil })
	if nested, is := errors.AsType[*worktree.NestedError](err); !is || nested.Path != "lib" || !nested.Submodule {
		t.Errorf("Remove: got error %v, want a NestedError of the submodule lib", err)
	}
}

// TestAbandonKeepsFilesPutThereMeanwhile: a program makes the path of a worktree again, whose making was cut off, while that is looked at out of
// the way.
func TestAbandonKeepsFilesPutThereMeanwhile(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("meanwhile")
	again := make(chan error, 1)
	go func() {
		for {
			if _, err := os.Lstat(path); err != nil {
				break
			}
			runtime.Gosched()
		}
		again <- errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, "mine.txt"), []byte("mine"), 0o600))
	}()
	gone, err := b.Abandon(t.Context(), b.repo, path, "deskhand/meanwhile", worktree.Kept{Head: p.Head})
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	if said, read := os.ReadFile(filepath.Join(path, "mine.txt")); read != nil || string(said) != "mine" || !gone || err != nil {
		t.Errorf("after Abandon: got file %q, error %v, gone %v, error %v, want mine and gone", said, read, gone, err)
	}
	if list := b.do(b.repo, "worktree", "list"); strings.Contains(list, "meanwhile") {
		t.Error(list)
	}
}

// TestRestoreRefusesLockedWorktree: git is told by a lock that a worktree lies on a disk which is not plugged in.
func TestRestoreRefusesLockedWorktree(t *testing.T) {
	t.Parallel()
	b, path, p := unplugged(t)
	if err := b.Restore(t.Context(), b.repo, path, worktree.Kept{Branch: "deskhand/stick", Head: p.Head}); !errors.Is(err, worktree.ErrLocked) {
		t.Error(err)
	}
	if err := os.Rename(path+"-unplugged", path); err != nil {
		t.Fatal(err)
	}
	if now := b.look(path); now.Head != p.Head {
		t.Errorf("Look: got %+v, want the head %s", now, p.Head)
	}
}
