package files

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	noReplace = unix.RENAME_EXCL
	swap      = unix.RENAME_SWAP
)

func renameat(from int, name string, to int, newName string, how uint32) error {
	return unix.RenameatxNp(from, name, to, newName, how)
}

func changedAt(s *syscall.Stat_t) int64 { return s.Ctimespec.Nano() }

const canSyncAll = false

func syncAll(*os.Root) error { return nil }
