package backend

import (
	"deskhand/backend/datadir"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// Records of what runs; package session tells what they hold.
type (
	// ProcessList is the agents that run, and what they take of the machine.
	ProcessList = session.ProcessList
	// AgentProcesses is one of them, with all that it has started.
	AgentProcesses = session.AgentProcesses
	// StragglerList is the commands of stopped turns that still run.
	StragglerList = session.StragglerList
	// Leftover is a process that a run which died has left.
	Leftover = proxy.Member
)

// Leftovers are the processes that a Deskhand which died has left; the next start ends them. It is for who knows that none runs.
func Leftovers(places datadir.Paths) ([]Leftover, error) { return proxy.Leftovers(places.Ledger()) }
