package cli

import "syscall"

// apart is a process without our console. It stays in the agent's job object; Windows has its browsers started by the desktop.
func apart() *syscall.SysProcAttr {
	const detached = 0x8 // DETACHED_PROCESS
	return &syscall.SysProcAttr{CreationFlags: detached, HideWindow: true}
}
