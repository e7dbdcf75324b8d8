package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Abandon removes what was made of a work tree when we were killed; branch is that which was made for it, "" = none. It is false where
// somebody has put something into it since: then nothing is removed, and it is no longer one that git is making. It is looked at once more
// when it is out of the way, as at a removal.
func (l *Library) Abandon(ctx context.Context, main, path, branch string, k Kept) (gone bool, err error) {
	if !isFolder(main) {
		return false, ErrNoRepository
	}
	gone, err = l.abandon(ctx, main, path, branch, k)
	if err == nil && !gone {
		err = l.made(ctx, main, path)
	}
	return gone, err
}

// made takes the locks away of a git that was killed while it made a work tree: as long as they are there, that can be neither removed nor used.
// The index has one as long as it is not there: it is written when all is checked out.
func (l *Library) made(ctx context.Context, main, path string) error {
	list, err := l.recordsOf(ctx, main, path)
	for _, gitDir := range list {
		if !locked(gitDir, false) || locked(gitDir, true) {
			continue
		}
		if _, missing := os.Lstat(filepath.Join(gitDir, "index")); errors.Is(missing, fs.ErrNotExist) {
			_ = os.Remove(filepath.Join(gitDir, "index.lock")) // it need not be there; what cannot be removed is told by git
		}
		err = errors.Join(err, os.Remove(filepath.Join(gitDir, "locked")))
	}
	return err
}

func (l *Library) abandon(ctx context.Context, main, path, branch string, k Kept) (gone bool, err error) {
	away := aside(path)
	switch _, err := os.Lstat(path); {
	case !errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(away); err == nil {
			return false, &AsideError{Path: away}
		}
		if touched, err := l.touched(ctx, path, branch != "", k); err != nil || touched {
			return false, err
		}
		if err := os.Rename(path, away); err != nil {
			return false, fmt.Errorf("%w: %w", ErrBusy, err)
		}
	case !isFolder(away):
		if err := l.Unlocked(ctx, main, path); err != nil {
			return false, err
		}
		return true, l.unmake(ctx, main, path, branch, k.Head)
	}
	if touched, err := l.touched(ctx, away, branch != "", k); err != nil || touched {
		return false, errors.Join(err, os.Rename(away, path))
	}
	if err := doom(away, path); err != nil {
		return false, err
	}
	return true, l.unmake(ctx, main, path, branch, k.Head)
}

// touched tells whether a directory has anything of somebody's: what neither the commit nor what was kept has. Ignored files are somebody's
// too, since no agent has been there. In a new one nothing runs that the repository alone names, and where git cannot tell it is somebody's.
func (l *Library) touched(ctx context.Context, path string, made bool, k Kept) (is bool, err error) {
	at, err := l.open(ctx, path)
	if errors.Is(err, ErrMissing) {
		return !bare(path), nil
	}
	if err == nil && made {
		_, err = l.checksOut(ctx, at)
	}
	if err == nil {
		is, err = l.workedIn(ctx, at, &k)
	}
	if err == nil && !is {
		is, err = l.holds(ctx, at, k)
	}
	err = told(err)
	nobodyKnows := made && (ended(err) || errors.As(err, new(*ProgramError))) && !errors.Is(err, ErrFull)
	if nobodyKnows || errors.As(err, new(*NestedError)) {
		return true, nil
	}
	return is, err
}

// bare tells whether a directory has no more than the link by which git knows a work tree. What is no directory, or nobody may look into, is
// somebody's.
func bare(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && (len(entries) == 0 || len(entries) == 1 && entries[0].Name() == ".git" && !entries[0].IsDir())
}

// workedIn tells whether git's record of a work tree is not as it was made: somebody has locked it, is in the middle of a merge, has checked
// something out, has made commits or staged something.
func (l *Library) workedIn(ctx context.Context, at run, k *Kept) (bool, error) {
	if locked(at.gitDir, true) || unfinished(at) {
		return true, nil
	}
	p := Place{}
	switch err := l.head(ctx, at, &p); {
	case errors.Is(err, ErrNoCommit): // git has not got so far
		return false, nil
	case err != nil:
		return false, err
	case p.Head != k.Head && p.Branch == k.Branch && p.Branch != "" && k.Commit == "":
		k.Head = p.Head // it comes back with what its branch has by now
	case p.Head != k.Head:
		return true, nil
	}
	if n, _, err := l.strays(ctx, at, ""); err != nil || n > 0 {
		return n > 0, err
	}
	staged, err := l.staged(ctx, at, "")
	if err != nil || staged == "" {
		return false, err
	}
	for _, commit := range k.commits() {
		if tree, err := l.say(ctx, at, "rev-parse", commit+"^{tree}"); err != nil || tree == staged {
			return false, err
		}
	}
	return true, nil
}

// commits are all that has what a work tree was made of.
func (k Kept) commits() []string {
	if k.Commit == "" {
		return []string{k.Head}
	}
	return []string{k.Head, k.Commit, k.Commit + "^2"}
}

// holds tells whether there is a file that none of the commits has. What is missing, or is the beginning of what a commit has, is nobody's: git
// was killed in the middle of it.
func (l *Library) holds(ctx context.Context, at run, k Kept) (bool, error) {
	if closed, err := nested(ctx, at.dir); err != nil || len(closed) > 0 {
		return true, err
	}
	var own []string
	for i, commit := range k.commits() {
		names, err := l.unlike(ctx, at, commit)
		if err != nil {
			return false, err
		}
		if i == 0 {
			own = names
			continue
		}
		slices.Sort(names)
		own = slices.DeleteFunc(own, func(name string) bool { _, too := slices.BinarySearch(names, name); return !too })
	}
	for _, name := range own {
		if is, err := l.own(ctx, at, k, name); err != nil || is {
			return is, err
		}
	}
	return false, nil
}

// unlike names the files that are not as a commit has them, or that it does not have, and those that a filter sees: it may leave something out.
func (l *Library) unlike(ctx context.Context, at run, commit string) ([]string, error) {
	at, done := at.scratch("deskhand-index")
	defer done()
	if err := l.git(ctx, at, "read-tree", "--no-sparse-checkout", commit); err != nil {
		return nil, err
	}
	if err := l.filled(ctx, at); err != nil {
		return nil, err
	}
	names, err := l.records(ctx, at, "ls-files", "-z", "--modified", "--others")
	if err != nil {
		return nil, err
	}
	filtered, err := l.filtered(ctx, at)
	return append(names, filtered...), err
}

// own tells whether a file has something that it has in none of the commits.
func (l *Library) own(ctx context.Context, at run, k Kept, name string) (bool, error) {
	file := filepath.Join(at.dir, filepath.FromSlash(name))
	switch info, err := os.Lstat(file); {
	case err != nil:
		return false, nil //nolint:nilerr // it is not there
	case !info.Mode().IsRegular():
		return true, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return true, nil //nolint:nilerr // of what cannot be read nobody knows whose it is
	}
	for _, commit := range k.commits() {
		back, err := l.all(ctx, at, "cat-file", "--filters", commit+":"+name)
		if err != nil && !errors.Is(err, ErrGit) {
			return false, err
		}
		if err == nil && bytes.HasPrefix(back, text) {
			return false, nil
		}
	}
	return true, nil
}
