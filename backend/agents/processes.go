package agents

// The purposes of this package's processes, as shown in the list of all processes.
const (
	ForTest    = "test"    // an agent that is probed or tested
	ForInstall = "install" // npm and uv, and the new version that is verified
	ForLogin   = "login"   // a way to sign in
	ForShell   = "shell"   // the person's login shell, read for its environment
)
