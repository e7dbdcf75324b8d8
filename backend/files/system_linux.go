package files

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	noReplace = unix.RENAME_NOREPLACE
	swap      = unix.RENAME_EXCHANGE
)

func renameat(from int, name string, to int, newName string, how uint) error {
	return unix.Renameat2(from, name, to, newName, how)
}

func changedAt(s *syscall.Stat_t) int64 { return s.Ctim.Nano() }

const canSyncAll = true

func syncAll(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
