//go:build unix

package snapshot

import "syscall"

// noWait opens a named pipe without waiting for a writer, and refuses links.
const noWait = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
