package agenttest

import "syscall"

// ownSession detaches a process from our console and process group. 0x8 is DETACHED_PROCESS.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | 0x8}
}
