//go:build !windows

package mcp

// sameVariable reports whether two names mean one variable.
func sameVariable(a, b string) bool { return a == b }
