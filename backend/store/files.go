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

// WriteFile replaces a file atomically: the new content is written beside the file, synced, and renamed. A reader sees the old or the new
// content. Content and name are on the disk when WriteFile returns without an error; after an error the new content may be there.
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
	if err := syncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("syncing the directory of %s: %w", filepath.Base(name), err)
	}
	return nil
}

// NameFile gives a finished file the name name. When an entry has that name already, the error is fs.ErrExist, and the file keeps its old
// name. A link replaces nothing, even when the name is taken between a check and the link; on a disk without links, the file is renamed
// after a check.
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

// Rename is os.Rename, but on Windows Rename retries for two seconds while a program has the file or the target open: a virus scanner, or
// a reader of ours, which prevents the rename.
func Rename(from, to string) error {
	return patiently(heldOpen, func() error { return os.Rename(from, to) })
}

// patience is as long as the go command waits in the same case.
const patience = 2 * time.Second

// patiently repeats do while do fails because somebody holds the file for a short time.
func patiently(held func(error) bool, do func() error) error {
	end := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		if err := do(); err == nil || !held(err) || time.Now().After(end) {
			return err
		}
		<-time.After(pause)
	}
}

// Remove removes a file, with the patience of Rename. A missing file is no error.
func Remove(name string) error {
	if err := patiently(heldOpen, func() error { return os.Remove(name) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
