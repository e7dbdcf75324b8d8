package agents

import "path/filepath"

// What the processes of this package are started for, in the list of all that run.
const (
	ForTest    = "test"    // an agent that is asked something, or tried
	ForInstall = "install" // npm and the like, and the new version that is tried
	ForLogin   = "login"   // a way to sign in
	ForShell   = "shell"   // the person's login shell, which is asked for its environment
)

// show lists the login shell while it runs. It is not among our own processes: what it makes independent of itself is the person's.
func (c *Catalogue) show(file string, pid int) (hide func()) {
	if c.processes == nil {
		return func() {}
	}
	return c.processes.Show(ForShell, filepath.Base(file), pid)
}
