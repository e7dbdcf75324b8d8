//go:build !windows

package app

import "syscall"

func unseen() *syscall.SysProcAttr { return nil }
