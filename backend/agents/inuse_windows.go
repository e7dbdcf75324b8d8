package agents

import "os"

// inUse tells whether a process runs from dir: then Windows does not let it be renamed.
func inUse(dir string) bool {
	aside := dir + ".old"
	if err := os.Rename(dir, aside); err != nil {
		return true
	}
	return os.Rename(aside, dir) != nil
}
