package snapshot

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// localDisk returns the device of a directory. local is true when only this computer writes to the device, by its own clock.
func localDisk(dir string) (device uint64, local bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	switch uint32(fs.Type) { //nolint:gosec // the numbers have 32 bits
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		0x2fc12fc1, 0xca451a4e: // ZFS, bcachefs
		return deviceOf(dir)
	}
	return 0, false
}

// deviceOf is the device of a file.
func deviceOf(name string) (device uint64, known bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, false
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return 0, false
	}
	return stat.Dev, true
}

// changedAt is the time of the last change of a file's content, permissions or names. Only the system sets this time.
func changedAt(info os.FileInfo) (at time.Time, device uint64, known bool) {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return time.Time{}, 0, false
	}
	return time.Unix(stat.Ctim.Unix()), stat.Dev, true
}

// several reports whether a file has more than one name.
func several(info os.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && stat.Nlink > 1
}
