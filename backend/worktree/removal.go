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

// aside is where a work tree is on its way out, and doomed where it is when all of it is known to be kept. That both are names of directories
// makes the step between them one that a crash cannot cut in two.
func aside(path string) string {
	return filepath.Join(filepath.Dir(path), ".removed-"+filepath.Base(path))
}

func doomed(path string) string {
	return filepath.Join(filepath.Dir(path), ".deleted-"+filepath.Base(path))
}

// Remove keeps what is in no commit on a ref, and removes the work tree. kept is told between the two: what it does not take is not removed.
// Ignored files go. What fails before the end leaves the work tree where it is.
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
	if err != nil || now != k.tree { // somebody was at work in it
		if err == nil {
			err = ErrBusy
		}
		return errors.Join(told(err), os.Rename(at.dir, path))
	}
	return l.finish(ctx, main, path)
}

// finish is the end of a removal of what is out of the way and known to be kept, as often as it takes. It is over when git has forgotten the
// work tree: what cannot be deleted then gets a name of its own, and is told by a [LeftError]. Under the name that it had, the next removal
// would stumble over it, and nobody could tell it from a removal that was cut off.
func (l *Library) finish(ctx context.Context, main, path string) error {
	ctx = context.WithoutCancel(ctx)
	if err := doom(aside(path), path); err != nil {
		return err
	}
	return l.end(ctx, main, path, "--force")
}

// doom has what is known to be kept, or to be nobody's, on its way out.
func doom(from, path string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := discard(path); err != nil {
		return err
	}
	return os.Rename(from, doomed(path))
}

// end has git forget a work tree, and deletes what is doomed of it.
func (l *Library) end(ctx context.Context, main, path string, force ...string) error {
	if err := l.forget(ctx, main, path, force...); err != nil {
		return err
	}
	rests, err := discard(path)
	_ = os.Remove(filepath.Dir(path)) // when it is empty
	if err == nil && rests != nil {
		return rests
	}
	return err
}

// discard deletes what is known to be kept, or puts what cannot be deleted where it is in nobody's way.
func discard(path string) (rests *LeftError, err error) {
	reason := removeAll(doomed(path))
	if reason == nil {
		return nil, nil //nolint:nilnil // nothing rests
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

// forget has git forget a work tree whose directory is out of the way. A program may have made its path again meanwhile, in which git sees
// a broken work tree and refuses; then its record goes without git. A work tree there is another one's, with the record. Force that is given
// twice is for one that git was making, as it is for git.
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
		_ = os.Remove(filepath.Dir(gitDir)) // as git does, when it is empty
	}
	return err
}

// Resume goes on with a removal that was cut off; k is what was kept. It is false where the work tree is as it was. What is out of the way goes
// only when it has nothing beyond what was kept: it was cut off before somebody looked, or a program has written on.
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
	if errors.Is(err, ErrMissing) { // nobody can tell what of it is kept: it is a person's
		err := os.Rename(away, path)
		if err == nil && l.Repair(ctx, main, path) != nil {
			l.cfg.Logger.Warn("what a removal has left is no work tree any more, and is back", "path", path)
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

// overtaken goes on with a removal whose directory is doomed already, though a program has made something new at its path.
func (l *Library) overtaken(ctx context.Context, main, path string, k Kept) (gone bool, err error) {
	if _, err := os.Lstat(doomed(path)); err != nil || k.Head == "" {
		return false, nil //nolint:nilerr // it has not got so far
	}
	switch _, err := l.open(ctx, path); {
	case err == nil:
		return false, nil
	case !errors.Is(err, ErrMissing):
		return false, err
	}
	return true, l.finish(ctx, main, path)
}
