//go:build !linux

package store

// Unfit knows no kinds of disks on this system.
func Unfit(string) string { return "" }
