package agents

import "golang.org/x/sys/windows"

// inUse tells whether an agent from dir runs, or what it started: then it is held open (proxy.Command.Keeps) by whoever has started that, and
// does not let others delete it. Renaming it would tell as well, but one that cannot be given its name again is lost.
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
