//go:build !windows

package store

// heldOpen returns false: outside of Windows, an open file can be renamed and removed.
func heldOpen(error) bool { return false }
