package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/worktree"
)

// TestUnfinishedRemovalLosesNothing: it was cut off after the directory was out of the way, and before anybody had looked once more.
func TestUnfinishedRemovalLosesNothing(t *testing.T) {
	t.Parallel()
	b := set(t)
	ctx := t.Context()
	path, p := b.made("fix")
	aside := filepath.Join(filepath.Dir(path), ".removed-fix")
	kept := worktree.Kept{Head: p.Head, Branch: "deskhand/fix"}
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	b.leave(aside, "late.txt", "written by a program that had it open\n")

	// Something new at its path keeps both as they are.
	b.leave(path, "stub.txt", "new\n")
	_, err := b.Resume(ctx, b.repo, path, kept)
	if away, is := errors.AsType[*worktree.AsideError](err); !is || away.Path != aside {
		t.Errorf("Resume with a new file at the path: got error %v, want an AsideError of %s", err, aside)
	}
	if got := b.all(path) + b.all(aside); !strings.Contains(got, "stub.txt") || !strings.Contains(got, "late.txt") {
		t.Errorf("files: got %s, want stub.txt and late.txt", got)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}

	// What nobody has kept comes back.
	if gone, err := b.Resume(ctx, b.repo, path, kept); err != nil || gone || !strings.Contains(b.all(path), "late.txt") {
		t.Errorf("Resume with a new file: got gone %v, error %v, want it back with late.txt", gone, err)
	}
	if gone, err := b.Resume(ctx, b.repo, path, worktree.Kept{}); err != nil || gone {
		t.Errorf("Resume of a worktree in its place: got gone %v, error %v, want not gone", gone, err)
	}
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	if gone, err := b.Resume(ctx, b.repo, path, worktree.Kept{}); err != nil || gone || !strings.Contains(b.all(path), "late.txt") {
		t.Errorf("Resume without a kept state: got gone %v, error %v, want it back", gone, err)
	}

	// Without what makes it a worktree nobody can tell what of it is kept: it is back, and a worktree again.
	if err := errors.Join(os.Rename(path, aside), os.Remove(filepath.Join(aside, ".git"))); err != nil {
		t.Fatal(err)
	}
	if gone, err := b.Resume(ctx, b.repo, path, kept); err != nil || gone || !strings.Contains(b.all(path), "late.txt") || b.do(path, "branch", "--show-current") != "deskhand/fix" {
		t.Errorf("Resume without a .git file: got gone %v, error %v, want it back and repaired", gone, err)
	}

	// What an earlier removal could not delete is in nobody's way.
	b.leave(filepath.Join(filepath.Dir(path), ".deleted-fix"), "rest.txt", "kept long ago\n")
	b.remove(path)
}

// TestInspectFindsNestedRepositories: beside files of ours, and in what is ignored.
func TestInspectFindsNestedRepositories(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"sub", "cache/inner"} {
		b := set(t)
		path, p := b.made("fix")
		b.leave(path, dir+"/mine.txt", "mine\n")
		b.do(filepath.Join(path, dir), "init", "--quiet")
		_, err := b.Inspect(t.Context(), path, p.Head)
		if nested, is := errors.AsType[*worktree.NestedError](err); !is || nested.Path != dir || nested.Submodule {
			t.Errorf("Inspect with a repository in %s: got error %v, want a NestedError", dir, err)
		}
	}
}

// TestRemoveRefusesLossyFilter: and one that gives back what it took is no obstacle.
func TestRemoveRefusesLossyFilter(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.leave(path, ".gitattributes", "*.nb filter=lossy\n*.txt filter=turn\n", "new.txt", "abc\n", "book.nb", "in\nOUT precious\n")
	b.do(b.repo, "config", "--global", "filter.turn.clean", "tr abc xyz")
	b.do(b.repo, "config", "--global", "filter.turn.smudge", "tr xyz abc")
	b.do(b.repo, "config", "--global", "filter.lossy.clean", "grep -v OUT")
	never := func(worktree.Kept) error { t.Error("it was told to be kept"); return nil }
	err := b.Remove(t.Context(), b.repo, path, ref, never)
	if filtered, is := errors.AsType[*worktree.FilterError](err); !is || filtered.Path != "book.nb" {
		t.Fatalf("Remove with a lossy filter: got error %v, want a FilterError of book.nb", err)
	}
	// All that is new in it is left out: for git nothing has changed.
	b.leave(path, "book.nb", "in\n")
	b.do(path, "add", "book.nb", ".gitattributes")
	b.do(path, "commit", "--quiet", "-m", "book")
	b.leave(path, "book.nb", "in\nOUT precious\n")
	if err := b.Remove(t.Context(), b.repo, path, ref, never); !errors.As(err, new(*worktree.FilterError)) {
		t.Fatalf("Remove with a committed lossy file: got error %v, want a FilterError", err)
	}
	// As long as what is kept, and git has looked at it since.
	b.leave(path, ".gitattributes", "*.nb filter=lossy\n*.txt filter=turn\n*.low filter=lower\n", "same.low", "abc\n")
	b.do(b.repo, "config", "--global", "filter.lower.clean", "tr A-Z a-z")
	b.do(path, "add", "--all")
	b.leave(path, "book.nb", "in\n")
	b.do(path, "commit", "--quiet", "--all", "-m", "lower")
	b.leave(path, "same.low", "aBc\n")
	b.do(path, "status")
	err = b.Remove(t.Context(), b.repo, path, ref, never)
	if filtered, is := errors.AsType[*worktree.FilterError](err); !is || filtered.Path != "same.low" {
		t.Fatalf("Remove with a file of the same length: got error %v, want a FilterError of same.low", err)
	}
	b.leave(path, "same.low", "abc\n", "new.txt", "cab\n")
	before := b.all(path)
	kept := b.remove(path)
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || b.all(path) != before {
		t.Errorf("Restore: got error %v and\n%s\nwant\n%s", err, b.all(path), before)
	}
}

// TestRemoveKeepsEarlierKeptCommit: a person may have thrown away what came back, and wants it after all.
func TestRemoveKeepsEarlierKeptCommit(t *testing.T) {
	t.Parallel()
	b := set(t)
	path, _ := b.made("fix")
	b.leave(path, "first.txt", "first\n")
	first := b.remove(path)
	for _, leaves := range []string{"", "second.txt"} {
		if err := b.Restore(t.Context(), b.repo, path, first); err != nil {
			t.Fatal(err)
		}
		b.do(path, "reset", "--quiet", "--hard")
		b.do(path, "clean", "--quiet", "-fd")
		if leaves != "" {
			b.leave(path, leaves, "second\n")
		}
		b.remove(path)
		if b.do(b.repo, "for-each-ref", "--contains="+first.Commit, "--format=%(refname)", "refs/deskhand") == "" {
			t.Errorf("after %q: got no ref that has the first kept commit, want one", leaves)
		}
	}
}

// TestMakeTwiceAtOnceMakesOneWorktree: the one that comes too late does not undo what the other has made.
func TestMakeTwiceAtOnceMakesOneWorktree(t *testing.T) {
	t.Parallel()
	b := set(t)
	p := b.look(b.repo)
	path := filepath.Join(p.Beside(), "fix")
	const many = 6
	made := make(chan error, many)
	for range many {
		go func() { made <- b.Make(t.Context(), p, path, "deskhand/fix") }()
	}
	fine := 0
	for range many {
		switch err := <-made; {
		case err == nil:
			fine++
		case !errors.Is(err, worktree.ErrExists) && !errors.Is(err, worktree.ErrTaken):
			t.Errorf("Make: got error %v, want ErrExists or ErrTaken", err)
		}
	}
	if fine != 1 || !strings.Contains(b.all(path), "code.go") || b.do(path, "branch", "--show-current") != "deskhand/fix" {
		t.Errorf("two calls of Make: got %d made, %s, want 1 whole worktree", fine, b.all(path))
	}
}

// partial makes a repository one that gets what is missing from elsewhere, by a program that it names; it is started by what wants the object.
func (b *bench) partial(program string, missing ...string) {
	b.t.Helper()
	for key, value := range map[string]string{
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": b.repo,
		"remote.origin.uploadpack": program,
	} {
		b.do(b.repo, "config", key, value)
	}
	for _, id := range missing {
		if err := os.Remove(filepath.Join(b.repo, ".git", "objects", id[:2], id[2:])); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestPlanRunsNoProgramOfRepository that a repository names: nobody has approved what its filters do, and its other programs.
func TestPlanRunsNoProgramOfRepository(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mine", "a=b"} {
		b := set(t)
		marker := filepath.Join(t.TempDir(), "ran")
		b.leave(b.repo, ".gitattributes", "*.go filter="+name+"\n", "code.go", "two\n") // as long as it was: git has to read it
		b.do(b.repo, "config", "filter."+name+".clean", "touch "+marker+"; cat")
		b.do(b.repo, "config", "filter."+name+".required", "true")
		n, err := b.Changed(t.Context(), b.look(b.repo))
		if err != nil || n != 2 {
			t.Errorf("Changed with the filter %s: got %d, error %v, want 2", name, n, err)
		}
		if _, err := os.Lstat(marker); err == nil {
			t.Errorf("Changed with the filter %s: got it run, want not run", name)
		}
	}

	b := set(t)
	marker := filepath.Join(t.TempDir(), "ran")
	b.partial("touch "+marker+"; git-upload-pack", b.do(b.repo, "rev-parse", "HEAD^{tree}"), b.do(b.repo, "rev-parse", "HEAD:sub"))
	p := b.look(b.repo)
	_, err := b.Changed(t.Context(), p)
	p.Prefix = "sub"
	_, other := b.Holds(t.Context(), p)
	if _, ran := os.Lstat(marker); ran == nil {
		t.Errorf("program that fetches objects: got it run, want not run; Changed failed with %v, Holds with %v", err, other)
	}
}

// TestMakeRunsOnlyPersonsPrograms: and nothing that the repository alone names.
func TestMakeRunsOnlyPersonsPrograms(t *testing.T) {
	t.Parallel()
	b := set(t)
	marker := filepath.Join(t.TempDir(), "ran")
	runs := "touch " + marker + "; cat"
	b.leave(b.repo, ".gitattributes", "*.go filter=a=b\n", "missing.txt", "missing\n")
	b.do(b.repo, "add", "--all")
	b.do(b.repo, "commit", "--quiet", "-m", "second")
	make := func(name string) error {
		t.Helper()
		_ = os.Remove(marker)
		p := b.look(b.repo)
		return b.Make(t.Context(), p, filepath.Join(p.Beside(), name), "deskhand/"+name)
	}
	ran := func() bool { _, err := os.Lstat(marker); return err == nil }

	for _, key := range []string{"filter.a=b.smudge", "filter.a=b.process", "lfs.customtransfer.x.path", "lfs.extension.x.smudge"} {
		b.do(b.repo, "config", key, runs)
		err := make("refused")
		if named, is := errors.AsType[*worktree.ProgramError](err); !is || named.Setting != key || ran() {
			t.Errorf("Make with %s: got error %v, program ran %v, want a ProgramError, not run", key, err, ran())
		}
		b.do(b.repo, "config", "--unset", key)
	}
	// What tools write into repositories, and what nothing is lost without.
	b.do(b.repo, "config", "filter.a=b.smudge", "cat")
	b.do(b.repo, "config", "filter.lfs.process", "git-lfs filter-process")
	b.do(b.repo, "config", "filter.a=b.clean", runs)
	b.do(b.repo, "config", "core.sshCommand", runs)
	b.do(b.repo, "config", "credential.helper", "!"+runs)
	if err := make("fine"); err != nil || ran() {
		t.Errorf("Make with harmless programs: got error %v, program ran %v, want none, not run", err, ran())
	}
	// The person's own.
	b.do(b.repo, "config", "--global", "filter.a=b.smudge", runs)
	b.do(b.repo, "config", "filter.a=b.smudge", runs)
	if err := make("named"); err != nil || !ran() {
		t.Errorf("Make with the person's filter: got error %v, program ran %v, want none, run", err, ran())
	}
	b.do(b.repo, "config", "--unset", "filter.a=b.smudge")
	b.do(b.repo, "config", "--global", "filter.a=b.smudge", "cat")
	// What is missing is got, but not by a program of the repository's choice.
	b.partial(runs, b.do(b.repo, "rev-parse", "HEAD:missing.txt"))
	if err := make("partial"); !errors.As(err, new(*worktree.ProgramError)) || ran() {
		t.Errorf("Make with the repository's uploadpack: got error %v, program ran %v, want a ProgramError, not run", err, ran())
	}
	b.do(b.repo, "config", "--unset", "remote.origin.uploadpack")
	b.do(b.repo, "config", "remote.origin.url", "ssh://localhost/nowhere")
	b.do(b.repo, "config", "--global", "core.sshCommand", "false")
	if err := make("partial"); err == nil || ran() {
		t.Errorf("Make with an unreachable remote: got error %v, program ran %v, want an error, not run", err, ran())
	}
	// It goes the person's own way.
	b.do(b.repo, "config", "--global", "core.sshCommand", runs)
	if err := make("partial"); err == nil || !ran() {
		t.Errorf("Make with the person's ssh command: got error %v, program ran %v, want an error, run", err, ran())
	}
}

// TestNamesThatDifferInCaseAloneAreKept: a repository that comes from a disk on which they are the same says so, and git does not see one of them then.
func TestNamesThatDifferInCaseAloneAreKept(t *testing.T) {
	t.Parallel()
	b := set(t)
	if _, err := os.Lstat(filepath.Join(b.repo, ".GIT")); err == nil {
		t.Skip("on this disk they are the same")
	}
	b.do(b.repo, "config", "core.ignorecase", "true")
	b.stays("another case", func(path string) { b.leave(path, "Code.go", "mine\n") })
	path, p := b.made("fix")
	b.leave(path, "Code.go", "mine\n", "Sub/deep.txt", "mine, too\n")
	before := b.all(path)
	s, err := b.Inspect(t.Context(), path, p.Head)
	if err != nil || len(s.Changes) != 2 {
		t.Errorf("Inspect: got %+v, error %v, want 2 changes", s, err)
	}
	kept := b.remove(path)
	if err := b.Restore(t.Context(), b.repo, path, kept); err != nil || b.all(path) != before {
		t.Errorf("Restore: got error %v and\n%s\nwant\n%s", err, b.all(path), before)
	}
}
