package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// unfinished begins the names of files that are being written.
const unfinished = ".new-"

// WriteFile replaces a file atomically: written beside it, synced, renamed. A reader sees the old content or the new one.
func WriteFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), unfinished+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", filepath.Base(name), err), Remove(f.Name()))
	}
	return nil
}

// NameFile gives a finished file its name, which nothing may have yet: else the error is fs.ErrExist, and the file stays what it was called. A
// link replaces nothing, whatever comes between a look and it; where the disk knows none, the file is renamed after a second look.
func NameFile(file, name string) error {
	err := os.Link(file, name)
	if err == nil {
		return Remove(file)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(name); err == nil {
		return &fs.PathError{Op: "rename", Path: name, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return Rename(file, name)
}

// Rename is os.Rename. On Windows it waits for two seconds while somebody has the file open, or the one in whose place it goes: a scanner, or a
// reader of ours, who keeps it from being renamed there.
func Rename(from, to string) error {
	return patiently(heldOpen, func() error { return os.Rename(from, to) })
}

// patience is how long the go command waits as well.
const patience = 2 * time.Second

// patiently does it again while it fails for somebody who will be gone soon.
func patiently(held func(error) bool, do func() error) error {
	end := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		if err := do(); err == nil || !held(err) || time.Now().After(end) {
			return err
		}
		<-time.After(pause)
	}
}

// Remove removes a file if it is there, with Rename's patience.
func Remove(name string) error {
	if err := patiently(heldOpen, func() error { return os.Remove(name) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
