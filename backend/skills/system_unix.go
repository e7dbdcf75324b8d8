//go:build unix

package skills

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openFlags keep the opening of a FIFO from waiting for the other end.
const openFlags = unix.O_NONBLOCK

// linkless reports whether the file system has no links: Linux reports that as EPERM.
func linkless(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP)
}
