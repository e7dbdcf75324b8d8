package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"deskhand/backend/store"
)

// Use makes every later start use the data of another directory, such as a copy. The present directory stays unchanged, apart from a note that
// names the other directory.
//
// Use changes nothing and returns an error while a program uses one of the directories, and for a directory whose data is not whole. Unless
// anyway is true, Use also refuses a copy of the present data that is older than the present data, or lacks files of the present directory.
func (p *Paths) Use(ctx context.Context, dir string, anyway bool) (err error) {
	if p.pointer == "" {
		return errors.New("--data-dir says where the data is: give it the other directory")
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if !store.Holds(dir) {
		return fmt.Errorf("%s holds no data of Deskhand: there is no deskhand.db", dir)
	}
	m, _, err := markOf(dir)
	if err != nil {
		return err
	}
	if why := store.Unfit(dir); why != "" {
		return fmt.Errorf("the disk of %s will not do: %s", dir, why)
	}
	there := store.Holds(p.Data) && p.Data != dir
	both := []string{dir}
	if there {
		both = append(both, p.Data)
	}
	for _, d := range both {
		lock, held := Acquire(d)
		if held != nil {
			return held
		}
		defer func() { err = errors.Join(err, lock.Release()) }()
	}
	now, err := store.Prove(ctx, dir)
	if err != nil {
		return fmt.Errorf("%s is not a whole copy: %w", dir, err)
	}
	if there && !anyway {
		if err := p.compare(ctx, dir, now); err != nil {
			return err
		}
	}
	next := pointer{Directory: dir, ID: m.ID, Previous: p.at.Previous}
	if p.Data != dir {
		next.Previous = &previous{Directory: p.Data, MovedAt: time.Now()}
	}
	return p.point(next)
}

// compare returns an error when dir is a copy of the present data that is older or lacks files. now is how far the database in dir is.
func (p *Paths) compare(ctx context.Context, dir string, now store.HighWater) error {
	present, err := store.Level(ctx, p.Data)
	if err != nil || now.Database == "" || present.Database != now.Database {
		return ctx.Err() // other data, or the present data is what a person goes away from
	}
	if now.Step < present.Step {
		return fmt.Errorf("%s is older than the data in %s, which has changed since: copy it again while Deskhand does not run.\n`deskhand data use --anyway %s` goes on with the older data",
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
		return fmt.Errorf("%s is not a whole copy: it lacks %d files of %s or has only a part of them, such as %s. Copy it again while Deskhand does not run.\n`deskhand data use --anyway %s` goes on without them",
			dir, len(lacking), p.Data, lacking[0], quoted(dir))
	}
	return nil
}

// ofPlace returns the names in a data directory that belong to a process or a place, and that a copy need not have.
func ofPlace() []string {
	return append(store.Beside(), lockName, ownerName, runName, ledgerName, intentName, markName, noteName)
}

// lackingFiles returns the files below from that to lacks, or has with another size. Links are not followed.
func lackingFiles(ctx context.Context, from, to string) (names []string, err error) {
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(ctx.Err(), err); err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if slices.Contains(ofPlace(), rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
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
