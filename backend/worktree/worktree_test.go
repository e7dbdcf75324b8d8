package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/proxy"
	"deskhand/backend/worktree"
)

// bench is a repository with a library.
type bench struct {
	*worktree.Library
	t    testing.TB
	repo string
	env  []string
}

const ref = "refs/deskhand/kept/one"

func set(t testing.TB) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, repo: filepath.Join(root, "app"), env: append(os.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere")}
	if b.Library, err = worktree.Open(t.Context(), worktree.Config{Beside: processes, Environ: func(context.Context) []string { return b.env }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), processes.Close()); err != nil {
			t.Error(err)
		}
	})
	b.do(root, "init", "--quiet", "--initial-branch=main", "app")
	b.leave(b.repo, "code.go", "one\n", "gone.txt", "gone\n", "sub/deep.txt", "deep\n", ".gitignore", "*.log\n/cache/\n")
	b.do(b.repo, "add", "--all")
	b.do(b.repo, "commit", "--quiet", "-m", "first")
	return b
}

// do is a person's own git.
func (b *bench) do(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(b.repo), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@localhost",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@localhost", "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %s: got error %v, want none\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) leave(dir string, files ...string) {
	b.t.Helper()
	for i := 0; i+1 < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(files[i+1]), 0o600)); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) look(dir string) worktree.Place {
	b.t.Helper()
	p, err := b.Look(b.t.Context(), dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// made makes a worktree.
func (b *bench) made(name string) (path string, p worktree.Place) {
	b.t.Helper()
	p = b.look(b.repo)
	path = filepath.Join(p.Beside(), name)
	if err := b.Make(b.t.Context(), p, path, "deskhand/"+name); err != nil {
		b.t.Fatal(err)
	}
	return path, p
}

// unplugged makes a worktree on a disk that is gone: git is told by a lock that it will be back, at the path's name with -unplugged until then.
func unplugged(t *testing.T) (b *bench, path string, p worktree.Place) {
	t.Helper()
	b = set(t)
	path, p = b.made("stick")
	b.do(b.repo, "worktree", "lock", path)
	if err := os.Rename(path, path+"-unplugged"); err != nil {
		t.Fatal(err)
	}
	return b, path, p
}

func (b *bench) remove(path string) worktree.Kept {
	b.t.Helper()
	var kept worktree.Kept
	if err := b.Remove(b.t.Context(), b.repo, path, ref, func(k worktree.Kept) error { kept = k; return nil }); err != nil && !errors.As(err, new(*worktree.LeftError)) {
		b.t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		b.t.Fatal("it is still there")
	}
	if list := b.do(b.repo, "worktree", "list"); strings.Contains(list, path) {
		b.t.Fatalf("git worktree list after Remove: got %s, want no %s", list, path)
	}
	return kept
}

// all is every file of a directory with what is in it.
func (b *bench) all(dir string) string {
	b.t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".git" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var text string
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text = string(data)
		} else if text, err = os.Readlink(name); err != nil {
			return err
		}
		way, err := filepath.Rel(dir, name)
		lines = append(lines, fmt.Sprintf("%s %v %q", way, info.Mode()&0o100 != 0, text))
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// TestRestoreBringsBackRemovedWorktree: staged, unstaged, new, deleted, executable, linked and hidden from git: all of it is kept, and all
// but what the rules leave out is there again, staged what was staged.
func TestRestoreBringsBackRemovedWorktree(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	if p.Branch != "main" || p.Top != b.repo || p.Main != b.repo || b.do(path, "branch", "--show-current") != "deskhand/fix" || b.do(path, "rev-parse", "HEAD") != p.Head {
		t.Fatalf("Make: got %+v, want a worktree of main in %s", p, b.repo)
	}
	b.leave(path, "committed.txt", "mine\n")
	b.do(path, "add", "committed.txt")
	b.do(path, "commit", "--quiet", "-m", "second")
	b.leave(path, "code.go", "staged\n", "half.txt", "staged\n", "hidden.txt", "x\n", "flag.txt", "x\n")
	b.do(path, "add", "code.go", "half.txt", "hidden.txt", "flag.txt")
	b.do(path, "commit", "--quiet", "-m", "third", "hidden.txt", "flag.txt")
	b.do(path, "update-index", "--assume-unchanged", "hidden.txt")
	b.do(path, "update-index", "--skip-worktree", "flag.txt")
	b.leave(path, "half.txt", "unstaged\n", "new/ä \"q\".txt", "new\n", "run.sh", "#!/bin/sh\n", "hidden.txt", "changed\n", "flag.txt", "changed\n", "noise.log", "12345", "cache/big", strings.Repeat("x", 1000))
	if err := errors.Join(os.Remove(filepath.Join(path, "gone.txt")), os.Chmod(filepath.Join(path, "run.sh"), 0o700), os.Symlink("code.go", filepath.Join(path, "link"))); err != nil {
		t.Fatal(err)
	}
	state, err := b.Inspect(t.Context(), path, p.Head)
	if err != nil {
		t.Fatal(err)
	}
	if state.Commits != 2 || state.Branch != "deskhand/fix" || len(state.Ignored) != 2 || state.Ignored[0] != (worktree.Ignored{Path: "cache/", Files: 1, Bytes: 1000}) || state.Ignored[1].Path != "noise.log" {
		t.Errorf("Inspect: got %+v, want 2 commits and 2 ignored entries", state)
	}
	if !slices.Contains(state.Changes, worktree.Change{Path: "gone.txt", Kind: "deleted"}) || !slices.Contains(state.Changes, worktree.Change{Path: "run.sh", Kind: "untracked"}) {
		t.Errorf("changes: got %+v, want gone.txt deleted and run.sh untracked", state.Changes)
	}
	before, index := b.all(path), b.do(path, "ls-files", "--stage")
	kept := b.remove(path)
	if kept.Commit == "" || kept.Files != 8 || kept.Branch != "deskhand/fix" || b.do(b.repo, "rev-parse", ref) != kept.Commit {
		t.Fatalf("Remove: got %+v, want a commit of 8 files on the ref", kept)
	}
	if _, err := os.Stat(p.Beside()); err == nil {
		t.Error("an empty folder is left")
	}
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for line := range strings.SplitSeq(before, "\n") {
		if !strings.HasPrefix(line, "cache/") && !strings.HasPrefix(line, "noise.log") {
			wanted = append(wanted, line)
		}
	}
	if now := b.all(path); now != strings.Join(wanted, "\n") {
		t.Errorf("restored files: got\n%s\nwant\n%s", now, strings.Join(wanted, "\n"))
	}
	if now := b.do(path, "ls-files", "--stage"); now != index {
		t.Errorf("restored index: got\n%s\nwant\n%s", now, index)
	}
}

// TestRemoveKeepsChangeWithOldTime: of as many bytes, with the time that the file had.
func TestRemoveKeepsChangeWithOldTime(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.do(b.repo, "config", "core.trustctime", "false")
	info, err := os.Stat(filepath.Join(path, "code.go"))
	if err != nil {
		t.Fatal(err)
	}
	b.leave(path, "code.go", "two\n")
	if err := os.Chtimes(filepath.Join(path, "code.go"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if kept := b.remove(path); kept.Files != 1 {
		t.Errorf("Remove: got %+v, want 1 file", kept)
	}
}

// TestGitStashAppliesKeptCommit: without us, as a stash.
func TestGitStashAppliesKeptCommit(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.leave(path, "code.go", "two\n", "new.txt", "new\n")
	kept := b.remove(path)
	b.do(b.repo, "checkout", "--quiet", kept.Branch)
	b.do(b.repo, "stash", "apply", "--quiet", ref)
	if all := b.all(b.repo); !strings.Contains(all, `code.go false "two\n"`) || !strings.Contains(all, `new.txt false "new\n"`) {
		t.Error(all)
	}
}

func TestNoHookRuns(t *testing.T) {
	t.Parallel()
	b := set(t)
	for _, name := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		b.leave(b.repo, ".git/hooks/"+name, "#!/bin/sh\ntouch '"+b.repo+"/../ran'\n")
		if err := os.Chmod(filepath.Join(b.repo, ".git/hooks", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path, _ := b.made("fix")
	b.leave(path, "new.txt", "new\n")
	if err := b.Restore(t.Context(), b.repo, path, b.remove(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(b.repo, "../ran")); err == nil {
		t.Error("a hook of the repository has run")
	}
}

// TestDropUnusedKeepsCommits: of the branch, and of none.
func TestDropUnusedKeepsCommits(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	b.do(path, "commit", "--quiet", "--allow-empty", "-m", "second")
	tip := b.do(path, "rev-parse", "HEAD")
	b.remove(path)
	if dropped, err := b.DropUnused(t.Context(), b.repo, "deskhand/fix", p.Head); err != nil || dropped || b.do(b.repo, "rev-parse", "deskhand/fix") != tip {
		t.Errorf("DropUnused of a branch with a commit: got dropped %v, error %v, want not dropped", dropped, err)
	}

	path, _ = b.made("other")
	b.do(path, "checkout", "--quiet", "--detach")
	b.do(path, "commit", "--quiet", "--allow-empty", "-m", "on no branch")
	tip = b.do(path, "rev-parse", "HEAD")
	kept := b.remove(path)
	if b.do(b.repo, "rev-parse", ref+"^1") != tip || kept.Branch != "" || kept.Head != tip {
		t.Errorf("Remove without a branch: got %+v, want the head %s kept", kept, tip)
	}
	if dropped, err := b.DropUnused(t.Context(), b.repo, "deskhand/other", p.Head); err != nil || !dropped {
		t.Errorf("DropUnused of an unused branch: got dropped %v, error %v, want dropped", dropped, err)
	}
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || b.do(path, "rev-parse", "HEAD") != tip {
		t.Error(err)
	}

	// Committed, and taken back: its reflog alone has it.
	path, _ = b.made("third")
	b.do(path, "commit", "--quiet", "--allow-empty", "-m", "second")
	b.do(path, "reset", "--quiet", "--hard", p.Head)
	b.remove(path)
	if dropped, err := b.DropUnused(t.Context(), b.repo, "deskhand/third", p.Head); err != nil || dropped {
		t.Errorf("DropUnused of a branch that was reset: got dropped %v, error %v, want not dropped", dropped, err)
	}
}

// TestRemoveRefusesWorkThatCannotBeKept.
func TestRemoveRefusesWorkThatCannotBeKept(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, p := b.made("fix")
	git := b.do(path, "rev-parse", "--absolute-git-dir")
	refuses := func(what string, want error) {
		t.Helper()
		_, before := b.Inspect(t.Context(), path, p.Head)
		err := b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { t.Error("it is kept"); return nil })
		if !errors.Is(err, want) || !errors.Is(before, want) {
			t.Errorf("Remove with %s: got error %v, Inspect %v, want %v", what, err, before, want)
		}
		if _, err := os.Stat(filepath.Join(path, "code.go")); err != nil {
			t.Fatal(err)
		}
	}
	b.leave(git, "index.lock", "")
	refuses("another git", worktree.ErrLocked)
	_ = os.Remove(filepath.Join(git, "index.lock"))
	b.do(b.repo, "worktree", "lock", path)
	refuses("a lock", worktree.ErrLocked)
	b.do(b.repo, "worktree", "unlock", path)
	b.leave(git, "MERGE_HEAD", p.Head)
	refuses("a merge", worktree.ErrUnfinished)
	_ = os.Remove(filepath.Join(git, "MERGE_HEAD"))
	b.conflict(path)
	refuses("conflicts alone", worktree.ErrUnfinished)
	b.do(path, "reset", "--quiet", "--hard")

	b.do(path, "init", "--quiet", "new/inner")
	b.leave(path, "new/inner/x", "x")
	nested := (*worktree.NestedError)(nil)
	err := b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { return nil })
	if !errors.As(err, &nested) || nested.Path != "new/inner" || nested.Submodule {
		t.Errorf("Remove: got error %v, want a NestedError of new/inner", err)
	}
	if err := os.RemoveAll(filepath.Join(path, "new")); err != nil {
		t.Fatal(err)
	}
	b.do(path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.repo, "lib")
	err = b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { return nil })
	if !errors.As(err, &nested) || nested.Path != "lib" || !nested.Submodule {
		t.Errorf("Remove: got error %v, want a NestedError of the submodule lib", err)
	}
	// What the caller does not take is not removed either.
	path, _ = b.made("other")
	refused := errors.New("the disk is full")
	if err := b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(path, "code.go")); err != nil {
		t.Error(err)
	}
}

// TestRemoveRefusesFileThatGitCannotKeep: a filter that must work does not.
func TestRemoveRefusesFileThatGitCannotKeep(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.leave(b.repo, ".git/info/attributes", "secret.txt filter=broken\n")
	b.do(b.repo, "config", "--global", "filter.broken.clean", "false")
	b.do(b.repo, "config", "--global", "filter.broken.required", "true")
	b.leave(path, "secret.txt", "x")
	if err := b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { return nil }); !errors.Is(err, worktree.ErrGit) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(path, "secret.txt")); err != nil {
		t.Error(err)
	}
}

// TestRemoveKeepsFilesWrittenMeanwhile: after it was kept, and before it goes.
func TestRemoveKeepsFilesWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	err := b.Remove(t.Context(), b.repo, path, ref, func(worktree.Kept) error { b.leave(path, "late.txt", "late\n"); return nil })
	if !errors.Is(err, worktree.ErrBusy) || !strings.Contains(b.all(path), "late") {
		t.Errorf("Remove with a late file: got error %v, want ErrBusy and the file", err)
	}
	if kept := b.remove(path); kept.Files != 1 {
		t.Errorf("second Remove: got %+v, want 1 file", kept)
	}
}

// TestLookRefusesDirectoriesWithoutRepository.
func TestLookRefusesDirectoriesWithoutRepository(t *testing.T) {
	t.Parallel()
	b := set(t)
	root := filepath.Dir(b.repo)
	for _, name := range []string{"none", "empty", "bare.git", "super"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.do(filepath.Join(root, "empty"), "init", "--quiet")
	b.do(filepath.Join(root, "bare.git"), "init", "--quiet", "--bare")
	b.do(filepath.Join(root, "super"), "init", "--quiet")
	b.do(filepath.Join(root, "super"), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.repo, "lib")
	for dir, want := range map[string]error{
		"none": worktree.ErrNoRepository, "empty": worktree.ErrNoCommit, "bare.git": worktree.ErrBare, "app/.git": worktree.ErrNoRepository,
		"super/lib": worktree.ErrSubmodule, "nowhere": worktree.ErrMissing,
	} {
		if p, err := b.Look(t.Context(), filepath.Join(root, dir)); !errors.Is(err, want) {
			t.Errorf("Look(%s): got %+v, error %v, want %v", dir, p, err, want)
		}
	}
	b.env = append(b.env, "PATH="+root)
	if _, err := b.Look(t.Context(), b.repo); !errors.Is(err, worktree.ErrNoGit) {
		t.Error(err)
	}
}

// TestFailedMakeLeavesNothing.
func TestFailedMakeLeavesNothing(t *testing.T) {
	t.Parallel()
	b := set(t)
	b.do(b.repo, "branch", "taken")
	b.do(b.repo, "branch", "above")
	p := b.look(filepath.Join(b.repo, "sub"))
	if p.Prefix != "sub" || p.Top != b.repo {
		t.Errorf("Look: got %+v, want the prefix sub in %s", p, b.repo)
	}
	path := filepath.Join(p.Beside(), "x")
	for branch, want := range map[string]error{"taken": worktree.ErrTaken, "above/below": worktree.ErrTaken, "-x": worktree.ErrName, "a..b": worktree.ErrName} {
		if err := b.Make(t.Context(), p, path, branch); !errors.Is(err, want) {
			t.Errorf("Make with the branch %s: got error %v, want %v", branch, err, want)
		}
	}
	if err := b.Make(t.Context(), p, b.repo, "new"); !errors.Is(err, worktree.ErrExists) {
		t.Error(err)
	}
	// The check-out breaks off in its middle: a filter that must work does not.
	b.leave(b.repo, ".git/info/attributes", "code.go filter=broken\n")
	b.do(b.repo, "config", "--global", "filter.broken.smudge", "false")
	b.do(b.repo, "config", "--global", "filter.broken.required", "true")
	if err := b.Make(t.Context(), p, path, "new"); !errors.Is(err, worktree.ErrGit) {
		t.Error(err)
	}
	b.do(b.repo, "config", "--global", "filter.broken.smudge", "sh -c 'echo No space left on device >&2; exit 1'")
	if err := b.Make(t.Context(), p, path, "new"); !errors.Is(err, worktree.ErrFull) {
		t.Error(err)
	}
	if _, err := os.Lstat(p.Beside()); err == nil {
		t.Error("something is left")
	}
	if said := b.do(b.repo, "branch", "--list", "new", "--format=%(refname)") + b.do(b.repo, "worktree", "list"); strings.Contains(said, "new") || strings.Contains(said, "/x") {
		t.Error(said)
	}
}

// TestLookFindsRepositoryOfLinkedWorktree: and begins with what is checked out in it.
func TestLookFindsRepositoryOfLinkedWorktree(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.do(path, "checkout", "--quiet", "--detach")
	b.do(path, "commit", "--quiet", "--allow-empty", "-m", "second")
	p := b.look(filepath.Join(path, "sub"))
	if p.Main != b.repo || p.Top != path || p.Branch != "" || p.Head != b.do(path, "rev-parse", "HEAD") || filepath.Base(p.Beside()) != "app.worktrees" {
		t.Fatalf("Look: got %+v, want a worktree of %s", p, b.repo)
	}
	second := filepath.Join(p.Beside(), "second")
	if err := b.Make(t.Context(), p, second, "deskhand/second"); err != nil || b.do(second, "rev-parse", "HEAD") != p.Head {
		t.Error(err)
	}
}

// TestRestoreLeavesMovedBranchAlone.
func TestRestoreLeavesMovedBranchAlone(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.leave(path, "new.txt", "new\n")
	kept := b.remove(path)
	b.do(b.repo, "checkout", "--quiet", kept.Branch)
	if err := b.Restore(t.Context(), b.repo, path, kept); !errors.Is(err, worktree.ErrInUse) {
		t.Error(err)
	}
	b.do(b.repo, "commit", "--quiet", "--allow-empty", "-m", "second")
	b.do(b.repo, "checkout", "--quiet", "main")
	if err := b.Restore(t.Context(), b.repo, path, kept); !errors.Is(err, worktree.ErrMoved) {
		t.Error(err)
	}
	b.do(b.repo, "branch", "--quiet", "-D", kept.Branch) // merged, say
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || !strings.Contains(b.all(path), "new.txt") || b.do(path, "branch", "--show-current") != kept.Branch {
		t.Error(err)
	}
}

// TestKillLeavesWholeWorktree: between any two steps.
func TestKillLeavesWholeWorktree(t *testing.T) {
	t.Parallel()
	b := set(t)
	ctx := t.Context()
	path, p := b.made("fix")
	begun := worktree.Kept{Head: p.Head, Branch: "deskhand/fix"}

	// Of a removal: before the directory is out of the way it is whole.
	if gone, err := b.Resume(ctx, b.repo, path, begun); err != nil || gone {
		t.Errorf("Resume before the rename: got gone %v, error %v, want not gone", gone, err)
	}
	// After that it goes on.
	aside := filepath.Join(filepath.Dir(path), ".removed-fix")
	if err := errors.Join(os.Rename(path, aside), os.MkdirAll(filepath.Join(aside, "cache/mod"), 0o700), os.Chmod(filepath.Join(aside, "cache/mod"), 0o500)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if gone, err := b.Resume(ctx, b.repo, path, begun); err != nil || !gone {
			t.Errorf("Resume after the rename: got gone %v, error %v, want gone", gone, err)
		}
	}
	if _, err := os.Lstat(p.Beside()); err == nil || strings.Contains(b.do(b.repo, "worktree", "list"), "fix") {
		t.Error("something is left")
	}

	// Of a beginning: git was at it, git had begun, and git was through.
	b.do(b.repo, "branch", "-D", "deskhand/fix")
	path, _ = b.made("fix")
	b.leave(b.do(path, "rev-parse", "--absolute-git-dir"), "locked", "initializing")
	_ = os.Remove(filepath.Join(path, "code.go"))
	for _, kill := range []func(){
		func() {},
		func() { b.leave(path, ".git", "gitdir: nowhere") },
		func() { b.made("fix") },
	} {
		kill()
		if gone, err := b.Abandon(ctx, b.repo, path, "deskhand/fix", begun); err != nil || !gone {
			t.Errorf("Abandon after a kill: got gone %v, error %v, want gone", gone, err)
		}
		if _, err := os.Lstat(p.Beside()); err == nil || b.do(b.repo, "branch", "--list", "deskhand/*") != "" {
			t.Error("something is left")
		}
	}
	// Somebody was at work in it meanwhile.
	path, _ = b.made("fix")
	b.leave(path, "mine.txt", "mine\n")
	if gone, err := b.Abandon(ctx, b.repo, path, "deskhand/fix", begun); err != nil || gone {
		t.Errorf("Abandon with a person's file: got gone %v, error %v, want not gone", gone, err)
	}

	// Of a return: what was kept is there in part.
	kept := b.remove(path)
	if err := b.Restore(ctx, b.repo, path, kept); err != nil {
		t.Fatal(err)
	}
	if gone, err := b.Abandon(ctx, b.repo, path, "", kept); err != nil || !gone {
		t.Errorf("Abandon of a restored worktree: got gone %v, error %v, want gone", gone, err)
	}
	if err := b.Restore(ctx, b.repo, path, kept); err != nil || !strings.Contains(b.all(path), "mine.txt") {
		t.Fatal(err)
	}
	b.leave(path, "mine.txt", "more\n")
	if gone, err := b.Abandon(ctx, b.repo, path, "", kept); err != nil || gone {
		t.Errorf("Abandon of a changed worktree: got gone %v, error %v, want not gone", gone, err)
	}
}

// TestSparseCheckoutIsKept: what is not checked out is no deletion.
func TestSparseCheckoutIsKept(t *testing.T) {
	t.Parallel()
	b := set(t)
	b.do(b.repo, "sparse-checkout", "set", "other")
	path, _ := b.made("fix")
	if _, err := os.Stat(filepath.Join(path, "sub")); err == nil {
		t.Skip("this git does not take the choice of folders over")
	}
	b.leave(path, "code.go", "two\n", "elsewhere/new.txt", "new\n")
	kept := b.remove(path)
	if kept.Files != 2 {
		t.Errorf("Remove: got %+v with %s, want 2 files", kept, b.do(b.repo, "diff", "--stat", kept.Commit+"^1", kept.Commit))
	}
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || !strings.Contains(b.all(path), `code.go false "two\n"`) {
		t.Errorf("Restore: got error %v and\n%s\nwant code.go with two", err, b.all(path))
	}
}
