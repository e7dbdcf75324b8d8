//go:build !linux && !darwin

package session

// machineMemory is unknown.
func machineMemory() int64 { return 0 }
