//go:build unix

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlocking keeps an open from waiting for the other end of a pipe.
const nonBlocking = syscall.O_NONBLOCK

func systemKind(error) (text string, kind error) { return "", nil }

// keepOwner gives a file the owner and the group of another file, and returns the mode that the file may have then. Only root can give
// files away, and only members can give files to a group: when the group cannot be kept, the group gets the rights of everybody else.
func keepOwner(f *os.File, like fs.FileInfo) fs.FileMode {
	mode := like.Mode().Perm()
	old, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return mode
	}
	uid, gid := owner(f)
	if uid == old.Uid && gid == old.Gid {
		return mode
	}
	if f.Chown(int(old.Uid), int(old.Gid)) != nil {
		_ = f.Chown(-1, int(old.Gid))
	}
	if _, gid = owner(f); gid != old.Gid {
		mode = mode&^0o070 | mode&0o007<<3
	}
	return mode
}

// identity returns a text that is the same for two names of a file and differs for two files.
func identity(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%x-%x", s.Dev, s.Ino)
}

// owner returns the user and the group that a file belongs to.
func owner(f *os.File) (uid, gid uint32) {
	info, err := f.Stat()
	if err != nil {
		return math.MaxUint32, math.MaxUint32 // no user and no group
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return math.MaxUint32, math.MaxUint32
	}
	return s.Uid, s.Gid
}

// syncDir writes the names of a directory through to the disk. A file system that does not support that is no error.
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

// removable reports an error unless names can be put in a directory and taken from the directory.
func removable(dir *os.Root) error { return access(dir, ".", unix.W_OK|unix.X_OK) }

// writable reports an error unless a file may be written to.
func writable(dir *os.Root, name string, _ fs.FileInfo) error { return access(dir, name, unix.W_OK) }

func access(dir *os.Root, name string, mode uint32) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Faccessat(int(f.Fd()), name, mode, unix.AT_EACCESS)
}
