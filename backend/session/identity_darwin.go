package session

import (
	"io/fs"
	"syscall"
)

// identity is what stays the same when a directory is moved within its file system; zeros where the system does not tell.
func identity(_ string, info fs.FileInfo) (device, inode, born int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0
	}
	return int64(st.Dev), int64(st.Ino), st.Birthtimespec.Nano() //nolint:gosec // only compared
}
