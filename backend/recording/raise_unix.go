//go:build unix

package recording

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// raise ends the process by a signal that ends Go programs like other programs. For other signals raise returns an exit code.
func raise(name string) int {
	n := unix.SignalNum(name)
	if slices.Contains([]syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGKILL}, n) {
		signal.Reset(n)
		if unix.Kill(os.Getpid(), n) == nil {
			<-time.After(time.Second) // the signal is on its way
		}
	}
	return 128 + int(n)
}
