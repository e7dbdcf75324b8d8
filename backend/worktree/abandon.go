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

// Abandon removes the remains of a worktree that was being made when the program was killed. branch is the branch made for the worktree,
// or "". gone is false when somebody has put a file into the worktree since: then nothing is removed, and git's lock of an unfinished
// worktree is taken away. The directory is checked once more after it has been renamed, as in Remove.
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

// made removes the locks that a killed git has left on a worktree that git was making, because a locked worktree can neither be removed
// nor used. The index is locked as long as it is missing: git writes the index when all files are checked out.
func (l *Library) made(ctx context.Context, main, path string) error {
	list, err := l.recordsOf(ctx, main, path)
	for _, gitDir := range list {
		if !locked(gitDir, false) || locked(gitDir, true) {
			continue
		}
		if _, missing := os.Lstat(filepath.Join(gitDir, "index")); errors.Is(missing, fs.ErrNotExist) {
			_ = os.Remove(filepath.Join(gitDir, "index.lock")) // the lock may be missing; git reports a lock that cannot be removed
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

// touched reports whether a directory has a person's work: content that is neither in the commit nor in the kept commit. Ignored files
// count, since no agent has been there. In a new worktree no program runs that only the repository names, and where git cannot tell, the
// answer is true.
func (l *Library) touched(ctx context.Context, path string, made bool, k Kept) (is bool, err error) {
	at, err := l.open(ctx, path)
	if errors.Is(err, ErrMissing) {
		return !bare(path), nil
	}
	if err == nil && made {
		err = l.checksOut(ctx, at)
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

// bare reports whether a directory has no more than the .git file of a worktree. A file, or a directory that nobody may read, is not
// bare.
func bare(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && (len(entries) == 0 || len(entries) == 1 && entries[0].Name() == ".git" && !entries[0].IsDir())
}

// workedIn reports whether git's record of a worktree has changed since the worktree was made: somebody has locked the worktree, is in
// the middle of a merge, has checked a branch out, has made commits, or has staged files.
func (l *Library) workedIn(ctx context.Context, at run, k *Kept) (bool, error) {
	if locked(at.gitDir, true) || unfinished(at) {
		return true, nil
	}
	p := Place{}
	switch err := l.head(ctx, at, &p); {
	case errors.Is(err, ErrNoCommit): // git was killed before
		return false, nil
	case err != nil:
		return false, err
	case p.Head != k.Head && p.Branch == k.Branch && p.Branch != "" && k.Commit == "":
		k.Head = p.Head // the worktree was restored with the newer commits of its branch
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

// commits returns all commits that have the content of the worktree.
func (k Kept) commits() []string {
	if k.Commit == "" {
		return []string{k.Head}
	}
	return []string{k.Head, k.Commit, k.Commit + "^2"}
}

// holds reports whether a file has content that none of the commits has. A missing file, and a file that is the beginning of a committed
// file, do not count: git was killed while writing the file.
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

// unlike returns the names of the files that a commit does not have, or has with other content, and of the files that a filter changes,
// because a filter may leave content out.
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

// own reports whether a file has content that the file has in none of the commits.
func (l *Library) own(ctx context.Context, at run, k Kept, name string) (bool, error) {
	file := filepath.Join(at.dir, filepath.FromSlash(name))
	switch info, err := os.Lstat(file); {
	case err != nil:
		return false, nil //nolint:nilerr // the file is missing
	case !info.Mode().IsRegular():
		return true, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return true, nil //nolint:nilerr // nobody knows whose an unreadable file is
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
