package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// aside returns the path of a worktree that is being removed, and doomed the path of such a worktree once all its content is kept.
// Renaming the one directory to the other is a step that no crash can cut in two.
func aside(path string) string {
	return filepath.Join(filepath.Dir(path), ".removed-"+filepath.Base(path))
}

func doomed(path string) string {
	return filepath.Join(filepath.Dir(path), ".deleted-"+filepath.Base(path))
}

// Remove keeps all uncommitted changes on a ref, and removes the worktree. Remove calls kept between the two, and removes nothing when
// kept fails. Ignored files are deleted. A failure before the end leaves the worktree in its place.
func (l *Library) Remove(ctx context.Context, main, path, ref string, kept func(Kept) error) error {
	at, err := l.open(ctx, path)
	if err == nil {
		err = l.free(ctx, at)
	}
	if err != nil {
		return err
	}
	k, err := l.keep(ctx, at, ref)
	if err == nil {
		k.Strays, err = l.gather(ctx, at, ref, k.Branch)
	}
	if err != nil {
		return told(err)
	}
	if err := kept(k); err != nil {
		return err
	}
	if err := os.Rename(path, aside(path)); err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	at.dir = aside(path)
	now, err := l.tree(ctx, at)
	if err != nil || now != k.tree { // somebody changed a file meanwhile
		if err == nil {
			err = ErrBusy
		}
		return errors.Join(told(err), os.Rename(at.dir, path))
	}
	return l.finish(ctx, main, path)
}

// finish ends the removal of a worktree that is renamed and kept. finish may be repeated. The removal is over when git has forgotten the
// worktree: a directory that cannot be deleted then gets a name of its own, which a [LeftError] reports. Under its old name, the
// directory would stop the next removal, and would look like a removal that was cut off.
func (l *Library) finish(ctx context.Context, main, path string) error {
	ctx = context.WithoutCancel(ctx)
	if err := doom(aside(path), path); err != nil {
		return err
	}
	return l.end(ctx, main, path, "--force")
}

// doom renames a directory that is kept, or holds no work, to its doomed path.
func doom(from, path string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := discard(path); err != nil {
		return err
	}
	return os.Rename(from, doomed(path))
}

// end makes git forget a worktree, and deletes the doomed directory.
func (l *Library) end(ctx context.Context, main, path string, force ...string) error {
	if err := l.forget(ctx, main, path, force...); err != nil {
		return err
	}
	rests, err := discard(path)
	_ = os.Remove(filepath.Dir(path)) // succeeds only when the folder is empty
	if err == nil && rests != nil {
		return rests
	}
	return err
}

// discard deletes the doomed directory, or renames a directory that cannot be deleted so that it is in nobody's way.
func discard(path string) (rests *LeftError, err error) {
	reason := removeAll(doomed(path))
	if reason == nil {
		return nil, nil //nolint:nilnil // nothing is left
	}
	const most = 1000
	for n := range most {
		name := filepath.Join(filepath.Dir(path), ".left-"+filepath.Base(path))
		if n > 0 {
			name += "-" + strconv.Itoa(n+1)
		}
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		err := os.Rename(doomed(path), name)
		return &LeftError{Path: name, Err: reason}, err
	}
	return nil, reason
}

// forget makes git forget a worktree whose directory has been renamed. When a program has made the path again meanwhile, git sees a
// broken worktree and refuses; then forget deletes git's record itself. An intact worktree at the path is another worktree, which owns
// the record. Two --force arguments are for a worktree that git was making, as in git's own command.
func (l *Library) forget(ctx context.Context, main, path string, force ...string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		err := l.git(ctx, run{dir: main}, slices.Concat([]string{"worktree", "remove"}, force, []string{"--", path})...)
		if err == nil || failedWith(err, "is not a working tree") {
			return nil
		}
		if !failedWith(err, "validation failed") {
			return err
		}
	}
	if _, err := l.open(ctx, path); !errors.Is(err, ErrMissing) {
		return err
	}
	list, err := l.recordsOf(ctx, main, path)
	for _, gitDir := range list {
		if locked(gitDir, len(force) > 1) {
			err = errors.Join(err, ErrLocked)
			continue
		}
		err = errors.Join(err, os.RemoveAll(gitDir))
		_ = os.Remove(filepath.Dir(gitDir)) // succeeds only when the folder is empty, as in git
	}
	return err
}

// Resume continues a removal that was cut off; k is the state that was kept. gone is false when the worktree is in its place. A renamed
// directory is removed only when its content equals the kept state: the removal may have been cut off before its check, or a program may
// have written since.
func (l *Library) Resume(ctx context.Context, main, path string, k Kept) (gone bool, err error) {
	away := aside(path)
	_, err = os.Lstat(path)
	there := err == nil
	_, err = os.Lstat(away)
	switch {
	case err == nil && there:
		return false, &AsideError{Path: away}
	case err != nil && there:
		return l.overtaken(ctx, main, path, k)
	case err != nil:
		return true, l.finish(ctx, main, path)
	}
	at, err := l.open(ctx, away)
	if errors.Is(err, ErrMissing) { // nobody can tell whether all of it is kept, so it stays
		err := os.Rename(away, path)
		if err == nil && l.Repair(ctx, main, path) != nil {
			l.cfg.Logger.Warn("what a removal has left is no worktree any more, and is back", "path", path)
		}
		return false, err
	}
	if err != nil {
		return false, errors.Join(&AsideError{Path: away}, err)
	}
	want := k.Commit
	if want == "" {
		want = k.Head
	}
	known := ""
	if want != "" {
		if known, err = l.say(ctx, at, "rev-parse", "--verify", "--quiet", want+"^{tree}"); err != nil && !ended(err) {
			return false, err
		}
	}
	now, err := l.tree(ctx, at)
	if err != nil {
		return false, err
	}
	if now != known {
		return false, os.Rename(away, path)
	}
	return true, l.finish(ctx, main, path)
}

// overtaken continues a removal whose directory is doomed already, although a program has made a new directory at its path.
func (l *Library) overtaken(ctx context.Context, main, path string, k Kept) (gone bool, err error) {
	if _, err := os.Lstat(doomed(path)); err != nil || k.Head == "" {
		return false, nil //nolint:nilerr // the removal has not come that far
	}
	switch _, err := l.open(ctx, path); {
	case err == nil:
		return false, nil
	case !errors.Is(err, ErrMissing):
		return false, err
	}
	return true, l.finish(ctx, main, path)
}
