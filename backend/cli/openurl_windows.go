package cli

import "syscall"

// apart is a process without our console. It stays in the agent's job object, and so does a browser that was not running yet: what opens a page
// starts it itself. Agents are not given us as their browser here (agents.browser).
func apart() *syscall.SysProcAttr {
	const detached = 0x8 // DETACHED_PROCESS
	return &syscall.SysProcAttr{CreationFlags: detached, HideWindow: true}
}
