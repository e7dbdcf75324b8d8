//go:build unix

package agenttest

import "syscall"

// ownSession detaches a process from our session and process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
