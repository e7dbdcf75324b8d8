package mcp_test

import (
	"os"
	"syscall"
	"testing"
)

func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func lives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return p.Signal(syscall.Signal(0)) == nil
}

func fifo(*testing.T, string) {} // Windows has no FIFO
