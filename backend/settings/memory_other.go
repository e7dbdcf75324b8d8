//go:build !linux && !darwin

package settings

// machineMemory returns 0: the size is unknown.
func machineMemory() int64 { return 0 }
