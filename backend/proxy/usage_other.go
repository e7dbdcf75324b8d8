//go:build !linux

package proxy

// measure measures nothing: there is no way here but one that this package does not know yet.
func measure([]*family, bool) (Member, [][]Member, error) { return justUs(), nil, nil }
