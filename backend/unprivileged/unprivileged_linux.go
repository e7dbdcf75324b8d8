// Package unprivileged lets tests of what may not be read or written run as root, too: continuous integration often is.
package unprivileged

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Bind makes the modes of files count for the goroutine of a test: what root may beyond them is taken from its thread. The thread is locked
// and never unlocked, so that it ends with the goroutine. What the tested code does in goroutines of its own is not bound.
func Bind(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	runtime.LockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER
	if err := unix.Capset(&head, &data[0]); err != nil {
		t.Fatal(err)
	}
}
