//go:build unix

package config

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openFlags keep the opening of a FIFO from waiting for its other end.
const openFlags = unix.O_NONBLOCK

// lockFile takes the lock of a file, and returns false when somebody else has the lock.
func lockFile(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

func unlockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
