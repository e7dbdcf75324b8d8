package agents

import (
	"bytes"

	"golang.org/x/sys/unix"

	"deskhand/backend/environ"
)

// inUse reports whether an agent from dir runs, or a process that the agent started. Only processes of the same user can be examined.
func inUse(dir string) bool {
	processes, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return true
	}
	mark := []byte("\x00" + environ.AgentHome + "=" + dir + "\x00")
	for n := range processes {
		started, err := unix.SysctlRaw("kern.procargs2", int(processes[n].Proc.P_pid)) // arguments and environment
		if err == nil && bytes.Contains(started, mark) {
			return true
		}
	}
	return false
}
