//go:build !linux

package proxy

// Measures says whether the system tells the use of processes.
const Measures = false

// measure measures nothing, because this package knows no way to do so on this system.
func measure([]*family, bool) (Member, [][]Member, error) { return justUs(), nil, nil }

func measureOne(pid int, _ bool) (Member, error) { return Member{PID: pid}, nil }
