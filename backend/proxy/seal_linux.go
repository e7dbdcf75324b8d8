package proxy

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Seal keeps every descriptor that this process has now from the programs that it starts. Go's own are sealed from the beginning;
// those of libraries in C, and of Go code that makes them by hand, need not be, and an agent that holds one keeps open what we
// have closed. Descriptors that are meant for a child are given to it as copies, which this does not concern.
func Seal() {
	const first = 3
	if unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil { // Linux before 5.11
		sealEach(first)
	}
}

func sealEach(first int) {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc there is no list; most are sealed anyway
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}
