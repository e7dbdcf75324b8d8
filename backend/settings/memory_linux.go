package settings

import "golang.org/x/sys/unix"

// machineMemory returns the size of the machine's memory in bytes; 0 = the system does not tell.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:gosec,unconvert // no machine has 8 EiB; Totalram is 32 bits wide on some
}
