//go:build unix

package skills

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openFlags keep the opening of a FIFO from waiting for its other end.
const openFlags = unix.O_NONBLOCK

// linkless says whether a link could not be made because the file system has none: EPERM is what Linux says then.
func linkless(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP)
}
