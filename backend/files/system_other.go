//go:build !linux && !darwin

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// rename gives an entry the name of another spot; without replace only when the name is free, which is checked before the rename. os.Root
// renames within a single root, so rename opens the common top again; two different tops count as two file systems.
func rename(from, to spot, replace bool) error {
	if from.top != to.top {
		return syscall.EXDEV
	}
	top, err := os.OpenRoot(from.real)
	if err != nil {
		return err
	}
	defer top.Close()
	if !replace {
		if _, err := to.dir.Lstat(to.name); !errors.Is(err, fs.ErrNotExist) {
			return syscall.EEXIST
		}
	}
	return top.Rename(from.path(), to.path())
}

func (s spot) path() string { return filepath.Join(slices.Concat(s.way, []string{s.name})...) }

func exchange(spot, spot) error { return errors.ErrUnsupported }

const canSyncAll = false

func syncAll(*os.Root) error { return nil }

// Version returns a short text that changes with a file's content, fit for an ETag.
func Version(info fs.FileInfo) string {
	return fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())
}
