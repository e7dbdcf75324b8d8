//go:build unix

package mcp_test

import (
	"errors"
	"syscall"
	"testing"
)

func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func lives(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
