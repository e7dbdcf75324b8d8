package backend

import (
	"deskhand/backend/datadir"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// Records of processes; packages processes and session document them.
type (
	// ProcessList is the running agents with their resource use.
	ProcessList = processes.ProcessList
	// AgentProcesses is an agent with its child processes.
	AgentProcesses = processes.AgentProcesses
	// StragglerList is the running commands of stopped turns.
	StragglerList = session.StragglerList
	// Leftover is a process that a crashed Deskhand has left.
	Leftover = proxy.Member
)

// Leftovers are the processes that a crashed Deskhand has left, and that the next start ends. Only a caller that knows that no Deskhand runs
// may call Leftovers.
func Leftovers(places datadir.Paths) ([]Leftover, error) { return proxy.Leftovers(places.Ledger()) }
