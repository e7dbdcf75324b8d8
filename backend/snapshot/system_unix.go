//go:build unix

package snapshot

import "syscall"

// noWait opens a pipe that nobody writes to without waiting for who does, and nothing through a link.
const noWait = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
