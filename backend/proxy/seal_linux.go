package proxy

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Seal keeps every present descriptor of this process from the programs that it starts. Go's own descriptors are sealed from the
// beginning; those of C libraries, and of Go code that makes descriptors by hand, may not be, and an agent that holds a descriptor keeps
// open a file that Deskhand has closed. Descriptors meant for a child are passed on as copies, which Seal does not affect.
func Seal() {
	const first = 3
	if unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil { // Linux before 5.11
		sealEach(first)
	}
}

func sealEach(first int) {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc there is no list; most descriptors are sealed anyway
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}
