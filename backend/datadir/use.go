package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/store"
)

// Use makes every later start use the data of another directory, such as a copy. The present directory stays unchanged, apart from a note that
// names the other directory.
//
// Use changes nothing and returns an error while a program uses one of the directories, and for a directory whose data is not whole. Unless
// anyway is true, Use also refuses a disk that cannot keep what Deskhand promises, and a copy of the present data that has fewer changes than the
// present data or lacks files of the present directory.
func (p *Paths) Use(ctx context.Context, dir string, anyway bool) (err error) {
	dir, err = p.other(dir)
	if err != nil {
		return err
	}
	if why := store.Unfit(dir); why != "" && !anyway {
		return fmt.Errorf("the disk of %s will not do: %s.\n`deskhand data use --anyway %s` uses it anyway", dir, why, quoted(dir))
	}
	release, err := p.lockBoth(dir, anyway)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	now, err := store.Prove(ctx, dir)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s is not a whole copy: %w. Copy it again while Deskhand does not run", dir, err)
	case p.Data != dir && store.Holds(p.Data) && !anyway:
		if err := p.compare(ctx, dir, now); err != nil {
			return err
		}
	}
	next := pointer{Directory: dir, Previous: p.at.Previous}
	if p.Data != dir {
		next.Previous = &previous{Directory: p.Data, MovedAt: time.Now()}
	}
	return p.point(next)
}

// other returns the absolute path of a directory that has data of Deskhand and is not within the present directory.
func (p *Paths) other(dir string) (string, error) {
	if p.pointer == "" {
		return "", errors.New("--data-dir says where the data is: give it the other directory")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if !store.Holds(dir) {
		return "", fmt.Errorf("%s holds no data of Deskhand: there is no deskhand.db", dir)
	}
	if there, err := os.Stat(dir); err == nil {
		if present, err := os.Stat(p.Data); err == nil && os.SameFile(there, present) {
			dir = p.Data // by another name
		}
	}
	if strings.HasPrefix(dir, p.Data+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is within %s, which has the data now: copy it to a directory beside that", dir, p.Data)
	}
	return dir, checkWhole(dir)
}

// lockBoth locks the present directory and another directory, and returns a function that unlocks both. With anyway, a present directory that
// cannot be locked, such as one on a broken disk, stays unlocked.
func (p *Paths) lockBoth(dir string, anyway bool) (release func() error, err error) {
	lock, err := Acquire(dir)
	if err != nil || p.Data == dir || !store.Holds(p.Data) {
		return func() error { return lock.Release() }, err
	}
	present, err := Acquire(p.Data)
	if err == nil {
		return func() error { return errors.Join(present.Release(), lock.Release()) }, nil
	}
	if _, held := errors.AsType[*HeldError](err); held || !anyway {
		return nil, errors.Join(err, lock.Release())
	}
	return lock.Release, nil
}

// compare returns an error when dir is a copy of the present data that has fewer changes or lacks files. now is how far the database in dir is.
func (p *Paths) compare(ctx context.Context, dir string, now store.HighWater) error {
	present, err := store.Level(ctx, p.Data)
	if err != nil || now.Database == "" || present.Database != now.Database {
		return ctx.Err() // other data, or the present data is what a person goes away from
	}
	if now.Step < present.Step {
		return fmt.Errorf("%s has fewer changes than %s: it is an older copy, or both were worked with. Copy it again while Deskhand does not run.\n`deskhand data use --anyway %s` goes on with it",
			dir, p.Data, quoted(dir))
	}
	if now.Step > present.Step { // the copy was worked with
		return nil
	}
	lacking, err := lackingFiles(ctx, p.Data, dir)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		return fmt.Errorf("%s is not a whole copy: files of %s are missing or cut there (%d), such as %s. Copy it again while Deskhand does not run.\n`deskhand data use --anyway %s` goes on without them",
			dir, p.Data, len(lacking), lacking[0], quoted(dir))
	}
	return nil
}

// uncopied returns the names in a data directory that a copy need not have: they belong to a process, or to the directory itself.
func uncopied() []string {
	return append(store.Beside(), lockName, ownerName, runName, ledgerName, markName, noteName)
}

// lackingFiles returns the files below from that to lacks, or has with another size. Links are not followed.
func lackingFiles(ctx context.Context, from, to string) (names []string, err error) {
	if from, err = filepath.EvalSymlinks(from); err != nil { // WalkDir follows no link, also not a link to the data directory
		return nil, err
	}
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(ctx.Err(), err); err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case slices.Contains(uncopied(), rel) && d.IsDir():
			return fs.SkipDir
		case slices.Contains(uncopied(), rel) || !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if copied, err := os.Stat(filepath.Join(to, rel)); err != nil || copied.Size() != info.Size() {
			names = append(names, rel)
		}
		return nil
	})
	return names, err
}
