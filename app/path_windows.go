package app

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// unseen starts a command-line program without a console of its own, which would flash. The attribute has no effect on a program with a
// window.
func unseen() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
}
