//go:build unix

package attachment

import "syscall"

// nonBlocking keeps open from waiting for the other end of a pipe, and keeps a terminal from becoming our controlling terminal.
const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
