//go:build !windows

package cli

import "syscall"

// apart starts a process in a session of its own.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
