package proxy

import "time"

// ProcessID identifies a process for ever, while a process number alone is used again.
type ProcessID struct {
	PID   int
	Start uint64 // in the system's own unit
}

// Relative is an agent's process, or one of its descendants.
type Relative struct {
	ProcessID
	Parent    int // process number of its parent
	Session   int // number of its session, see setsid(2)
	StartedAt time.Time
	Args      []string // as the process was started, or renamed itself; nil where the system does not tell
}

// Kin is the processes of an instance at one moment.
type Kin struct {
	Head Relative   // the agent itself
	All  []Relative // includes the agent; in no order
}
