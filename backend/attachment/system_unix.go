//go:build unix

package attachment

import "syscall"

// nonBlocking keeps an open from waiting for the other end of a pipe, and a terminal from becoming ours.
const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
