package agents

import "golang.org/x/sys/windows"

// inUse reports whether an agent from dir runs, or a process that the agent started: their starter holds dir open (proxy.Command.Keeps) and
// forbids others to delete dir. A rename would show the same, but a directory that cannot be renamed back is lost.
func inUse(dir string) bool {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return true
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, windows.DELETE, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return true
	}
	return windows.CloseHandle(h) != nil
}
