//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlocking keeps an open from waiting for the other end of a pipe.
const nonBlocking = syscall.O_NONBLOCK

func systemKind(error) (text string, kind error) { return "", nil }

// keepOwner gives a file the owner of another one. Only root can give files away, so that it may fail.
func keepOwner(f *os.File, like fs.FileInfo) {
	mine, err := f.Stat()
	if err != nil {
		return
	}
	a, ok := mine.Sys().(*syscall.Stat_t)
	b, same := like.Sys().(*syscall.Stat_t)
	if ok && same && (a.Uid != b.Uid || a.Gid != b.Gid) {
		_ = f.Chown(int(b.Uid), int(b.Gid))
	}
}

// syncDir brings the names of a directory to the disk. Some file systems cannot, and say so.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	err = f.Sync()
	if isAny(err, syscall.EINVAL, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EBADF) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// removable asks whether names can be put in a directory and taken from it.
func removable(dir *os.Root) error { return access(dir, ".", unix.W_OK|unix.X_OK) }

// writable asks whether a file may be written to.
func writable(dir *os.Root, name string, _ fs.FileInfo) error { return access(dir, name, unix.W_OK) }

func access(dir *os.Root, name string, mode uint32) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Faccessat(int(f.Fd()), name, mode, unix.AT_EACCESS)
}
