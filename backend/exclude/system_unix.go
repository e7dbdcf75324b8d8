//go:build unix

package exclude

import "golang.org/x/sys/unix"

// noWait keeps the opening of a FIFO from waiting for its other end.
const noWait = unix.O_NONBLOCK
