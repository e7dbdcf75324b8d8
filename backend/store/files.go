package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", filepath.Base(name), err), remove(f.Name()))
	}
	return nil
}

// NameFile gives a finished file its name, which nothing may have yet: else the error is fs.ErrExist, and the file stays what it was called. A
// link replaces nothing, whatever comes between a look and it; where the disk knows none, the file is renamed after a second look.
func NameFile(file, name string) error {
	err := os.Link(file, name)
	if err == nil {
		return os.Remove(file)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(name); err == nil {
		return &fs.PathError{Op: "rename", Path: name, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(file, name)
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
