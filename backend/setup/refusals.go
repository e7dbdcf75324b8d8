package setup

// The codes of refusals about set-ups.
const (
	refusedNone       = "setup.none"        // the session works in no worktree
	refusedNothing    = "setup.nothing"     // no project says how to make the worktree ready
	refusedBroken     = "setup.broken"      // params detail
	refusedUnapproved = "setup.unapproved"  // params name
	refusedRunning    = "setup.running"     // it runs already
	refusedTesting    = "setup.testing"     // its tests run already
	refusedNotRunning = "setup.not_running" // there is nothing to stop
	refusedPorts      = "setup.ports"       // params from, to
	refusedCommand    = "setup.command"     // the project has no such command; params name
)
