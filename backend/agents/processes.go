package agents

import "path/filepath"

// The purposes of this package's processes, as shown in the list of all processes.
const (
	ForTest    = "test"    // an agent that is probed or tested
	ForInstall = "install" // npm and uv, and the new version that is verified
	ForLogin   = "login"   // a way to sign in
	ForShell   = "shell"   // the person's login shell, read for its environment
)

// show lists the login shell while the shell runs. The shell is not in the catalogue's process set: a process that detaches from the shell
// belongs to the person.
func (c *Catalogue) show(file string, pid int) (hide func()) {
	if c.processes == nil {
		return func() {}
	}
	return c.processes.Show(ForShell, filepath.Base(file), pid)
}
