package snapshot

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// localDisk tells which disk a directory is on, and whether it is one that only this computer writes to, and whose clock is this computer's.
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

// deviceOf is the disk that a file is on.
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

// changedAt is when a file, or who may use it, or a name of it, was changed last. Nobody but the system sets it.
func changedAt(info os.FileInfo) (at time.Time, device uint64, known bool) {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return time.Time{}, 0, false
	}
	return time.Unix(stat.Ctim.Unix()), stat.Dev, true
}

// several tells of a file that has more than one name.
func several(info os.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && stat.Nlink > 1
}
