//go:build !windows

package mcp

// sameVariable tells whether two names mean one variable.
func sameVariable(a, b string) bool { return a == b }
