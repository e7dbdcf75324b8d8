package agents

import (
	"bytes"
	"os"
	"path/filepath"

	"deskhand/backend/environ"
)

// inUse reports whether an agent from dir runs, or a process that the agent started. Only processes of the same user can be examined.
func inUse(dir string) bool {
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return true
	}
	mark := []byte("\x00" + environ.AgentHome + "=" + dir + "\x00")
	for _, file := range processes {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(append([]byte{0}, env...), mark) {
			return true
		}
	}
	return false
}
