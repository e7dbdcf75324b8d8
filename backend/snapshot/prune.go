package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deskhand/backend/store"
)

// spared is the age below which Prune keeps an unnamed tree, since the caller of Take may not have stored the tree's name yet. A lock between
// Take and that moment would make every snapshot wait for every prune.
const spared = time.Hour

// Prune drops all trees except keep and the trees taken recently, and frees their disk space. Freeing space is slow and blocks nobody: Prune
// stops when another call wants the store, and the next Prune continues.
func (s *Store) Prune(ctx context.Context, keep map[string]bool) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := os.Stat(filepath.Join(s.path, "HEAD")); err != nil {
		return nil // the store never held anything
	}
	left, err := s.drop(keep)
	if err != nil {
		return err
	}
	if left == 0 {
		return s.forget()
	}
	if _, err := os.Stat(s.unpruned()); err != nil {
		return nil // no space to free
	}
	return s.collect(ctx)
}

// unpruned is a marker file, present while dropped trees still occupy disk space.
func (s *Store) unpruned() string { return filepath.Join(s.path, "unpruned") }

// drop removes the refs of trees, and returns the number of trees left.
func (s *Store) drop(keep map[string]bool) (left int, err error) {
	entries, err := os.ReadDir(filepath.Join(s.path, "refs", "trees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	now := time.Now()
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, err
		}
		if age := now.Sub(info.ModTime()); keep[e.Name()] || age < spared && age > -spared {
			left++
			continue
		}
		if err := store.WriteFile(s.unpruned(), nil, 0o600); err != nil {
			return 0, err
		}
		if err := errors.Join(os.Remove(s.ref(e.Name())), removeIfThere(s.modesFile(e.Name()))); err != nil {
			return 0, err
		}
		s.last = Tree{}
	}
	return left, nil
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// collect makes git delete the objects that no tree names.
func (s *Store) collect(ctx context.Context) error {
	newest, err := s.dropIndexes()
	if err != nil {
		return err
	}
	if err := s.dropUnfinished(); err != nil {
		return err
	}
	idle, over := s.yielding(ctx)
	defer over()
	err = s.git(idle, run{index: newest}, "gc", "--quiet", "--force", "--prune=now") // force: no other git runs here, whatever lock a killed git has left
	if idle.Err() != nil && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(s.unpruned())
}

// dropUnfinished removes the temporary files of an interrupted gc.
func (s *Store) dropUnfinished() error {
	entries, err := os.ReadDir(filepath.Join(s.path, "objects", "pack"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if unfinished(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(s.path, "objects", "pack", e.Name())))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// unfinished reports whether a file is a temporary file of git's.
func unfinished(name string) bool {
	return strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")
}

// dropIndexes removes all indexes but the newest, since git keeps the objects of a single index.
func (s *Store) dropIndexes() (newest string, err error) {
	names, err := filepath.Glob(filepath.Join(s.path, "index-*"))
	if err != nil {
		return "", err
	}
	found := map[string]time.Time{}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			found[name] = info.ModTime()
			if newest == "" || info.ModTime().After(found[newest]) {
				newest = name
			}
		}
	}
	for name := range found {
		if name != newest {
			if err := os.Remove(name); err != nil {
				return "", err
			}
		}
	}
	return newest, nil
}
