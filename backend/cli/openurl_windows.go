package cli

import "syscall"

// apart starts a process without our console. The process stays in the agent's job object, and so does a browser that was not running yet,
// since the opener starts the browser itself. For that reason agents.browser gives Windows agents no BROWSER.
func apart() *syscall.SysProcAttr {
	const detached = 0x8 // DETACHED_PROCESS
	return &syscall.SysProcAttr{CreationFlags: detached, HideWindow: true}
}
