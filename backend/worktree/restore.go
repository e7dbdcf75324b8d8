package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Restore makes a removed work tree again, as it was.
func (l *Library) Restore(ctx context.Context, main, path string, k Kept) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ErrExists
	}
	if !isFolder(main) {
		return ErrNoRepository
	}
	at := run{dir: main, outlives: true}
	if _, err := l.checksOut(ctx, at); err != nil {
		return err
	}
	if k.Commit != "" {
		if err := l.git(ctx, at, "cat-file", "-e", k.Commit+"^{commit}"); err != nil {
			return err
		}
	}
	args := []string{"worktree", "add", "--quiet", "--detach", "--", path, k.Head}
	made := ""
	if k.Branch != "" {
		tip, err := l.say(ctx, at, "rev-parse", "--verify", "--quiet", "refs/heads/"+k.Branch)
		switch {
		case ended(err):
			made = k.Branch
			args = []string{"worktree", "add", "--quiet", "--no-track", "-b", k.Branch, "--", path, k.Head}
		case err != nil:
			return err
		case tip != k.Head && k.Commit != "": // what was kept would take the new commits back
			return ErrMoved
		default:
			args = []string{"worktree", "add", "--quiet", "--", path, k.Branch}
		}
	}
	if err := l.clear(ctx, main, path); err != nil {
		return err
	}
	err := l.git(ctx, at, args...)
	if err == nil {
		err = l.apply(ctx, path, k)
	}
	if err != nil {
		return errors.Join(told(err), l.undo(ctx, main, path, made, k.Head))
	}
	return nil
}

// clear makes the way free for a work tree that comes back.
func (l *Library) clear(ctx context.Context, main, path string) error {
	if err := l.Unlocked(ctx, main, path); err != nil {
		return err
	}
	if err := makeFolder(main, filepath.Dir(path)); err != nil {
		return err
	}
	// Who removed the directory by hand has left it in git's list.
	if err := l.git(ctx, run{dir: main, outlives: true}, "worktree", "remove", "--force", "--", path); err != nil && !ended(err) {
		return err
	}
	return mkdir(main, path)
}

// Unlocked refuses a path whose work tree somebody has locked: that is how git is told that it lies on a disk which is not plugged in. It is
// for who would write down what is going to become of it, before that.
func (l *Library) Unlocked(ctx context.Context, main, path string) error {
	if !isFolder(main) {
		return ErrNoRepository
	}
	list, err := l.recordsOf(ctx, main, path)
	if slices.ContainsFunc(list, func(gitDir string) bool { return locked(gitDir, true) }) {
		return ErrLocked
	}
	return err
}

// making is what git itself says in the lock of a work tree that it is making.
const making = "initializing"

// apply puts what was kept into a work tree that has just been made.
func (l *Library) apply(ctx context.Context, path string, k Kept) error {
	if k.Commit == "" {
		return nil
	}
	at, err := l.open(ctx, path)
	if err != nil {
		return err
	}
	at.outlives = true
	if err := l.git(ctx, at, "read-tree", "-m", "-u", "HEAD", k.Commit); err != nil {
		return err
	}
	if err := l.git(ctx, at, "read-tree", k.Commit+"^2"); err != nil {
		return err
	}
	err = l.git(ctx, at, "update-index", "-q", "--refresh")
	if ended(err) {
		return nil // some files are not as the index has them: that is what was kept
	}
	return err
}

// Repair has the two halves of a work tree find each other again, when one of them was moved.
func (l *Library) Repair(ctx context.Context, main, path string) error {
	return l.git(ctx, run{dir: main, outlives: true}, "worktree", "repair", "--", path)
}

// Parted tells whether there is a work tree whose two halves do not find each other: one was moved, and [Library.Repair] has not come to it.
func Parted(path string) bool {
	said, err := os.ReadFile(filepath.Join(path, ".git"))
	gitDir, is := strings.CutPrefix(strings.TrimRight(string(said), "\r\n"), "gitdir: ")
	if err != nil || !is {
		return false
	}
	if gitDir = filepath.FromSlash(gitDir); !filepath.IsAbs(gitDir) { // git can be told to write it so
		gitDir = filepath.Join(path, gitDir)
	}
	return !recorded(gitDir, path)
}
