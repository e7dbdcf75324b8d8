//go:build !windows

package cli

import "syscall"

// apart is a process in a session of its own.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
