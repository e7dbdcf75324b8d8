//go:build !linux

package proxy

// Measures says whether the system tells what processes take.
const Measures = false

// measure measures nothing: there is no way here but one that this package does not know yet.
func measure([]*family, bool) (Member, [][]Member, error) { return justUs(), nil, nil }

func measureOne(pid int, _ bool) (Member, error) { return Member{PID: pid}, nil }
