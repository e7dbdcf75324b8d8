//go:build linux || darwin

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// rename gives an entry the name of another spot; without replace only when the name is free.
func rename(from, to spot, replace bool) error {
	return between(from, to, func(a, b int) error {
		if replace {
			return unix.Renameat(a, from.name, b, to.name)
		}
		err := renameat(a, from.name, b, to.name, noReplace)
		if !isAny(err, unix.EINVAL, unix.ENOSYS, unix.ENOTSUP) {
			return err
		}
		if _, there := to.dir.Lstat(to.name); !errors.Is(there, fs.ErrNotExist) { // some file systems lack the exclusive rename
			return unix.EEXIST
		}
		return unix.Renameat(a, from.name, b, to.name)
	})
}

// exchange swaps two entries atomically.
func exchange(a, b spot) error {
	return between(a, b, func(x, y int) error { return renameat(x, a.name, y, b.name, swap) })
}

// Version returns a short text that changes with a file's content, fit for an ETag. The modification time alone would not do, because the
// writer of a file can set it.
func Version(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%x-%x-%x-%x", s.Dev, s.Ino, s.Size, changedAt(s))
	}
	return fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())
}
