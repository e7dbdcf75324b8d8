package workspace

import (
	"io/fs"
	"syscall"
)

// identity returns the numbers of a directory that a move within its file system does not change; zeros where the system tells none.
func identity(_ string, info fs.FileInfo) (device, inode, born int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0
	}
	return int64(st.Dev), int64(st.Ino), st.Birthtimespec.Nano() //nolint:gosec // only compared
}
