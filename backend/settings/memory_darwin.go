package settings

import "golang.org/x/sys/unix"

// machineMemory returns the size of the machine's memory in bytes; 0 = the system does not tell.
func machineMemory() int64 {
	size, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(size) //nolint:gosec // no machine has 8 EiB
}
