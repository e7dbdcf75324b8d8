package app

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// unseen starts a program of the command line without a console of its own, which would flash. To one with a window it is nothing.
func unseen() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
}
