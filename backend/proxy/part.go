package proxy

import "time"

// ProcessID names one process for ever: a number alone is used again.
type ProcessID struct {
	PID   int
	Start uint64 // in the system's own unit
}

// Relative is an agent's process, or one that descends from it.
type Relative struct {
	ProcessID
	Parent    int // the number of its parent
	Session   int // the number of its session, as setsid(2) makes one
	StartedAt time.Time
	Args      []string // as the process was started, or as it calls itself; nil where the system does not tell
}

// Kin is the processes of one instance at one moment.
type Kin struct {
	Head Relative   // the agent itself
	All  []Relative // the agent among them, in no order
}
