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

// Restore makes a removed worktree again, as it was.
func (l *Library) Restore(ctx context.Context, main, path string, k Kept) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ErrExists
	}
	if !isFolder(main) {
		return ErrNoRepository
	}
	at := run{dir: main, outlives: true}
	if err := l.checksOut(ctx, at); err != nil {
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
		case tip != k.Head && k.Commit != "": // restoring would revert the newer commits
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

// clear prepares the path of a worktree that is restored.
func (l *Library) clear(ctx context.Context, main, path string) error {
	if err := l.Unlocked(ctx, main, path); err != nil {
		return err
	}
	if err := makeFolder(main, filepath.Dir(path)); err != nil {
		return err
	}
	// A directory deleted by hand is still in git's list.
	if err := l.git(ctx, run{dir: main, outlives: true}, "worktree", "remove", "--force", "--", path); err != nil && !ended(err) {
		return err
	}
	return mkdir(main, path)
}

// Unlocked fails when somebody has locked the worktree at path: a lock tells git that the worktree is on a disk which is not plugged in.
// A caller that stores its intention to change the worktree calls Unlocked before.
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

// making is the reason that git itself gives in the lock of a worktree that git is making.
const making = "initializing"

// apply puts the kept state into a new worktree.
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
		return nil // some files differ from the index, as in the kept state
	}
	return err
}

// Repair repairs the links between a worktree and its repository after either was moved.
func (l *Library) Repair(ctx context.Context, main, path string) error {
	return l.git(ctx, run{dir: main, outlives: true}, "worktree", "repair", "--", path)
}

// Parted reports whether the links between a worktree and its repository are broken because either was moved, and [Library.Repair] has
// not run.
func Parted(path string) bool {
	said, err := os.ReadFile(filepath.Join(path, ".git"))
	gitDir, is := strings.CutPrefix(strings.TrimRight(string(said), "\r\n"), "gitdir: ")
	if err != nil || !is {
		return false
	}
	if gitDir = filepath.FromSlash(gitDir); !filepath.IsAbs(gitDir) { // git can be configured to write a relative path
		gitDir = filepath.Join(path, gitDir)
	}
	return !recorded(gitDir, path)
}
