package proxy

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSealKeepsDescriptorsFromChildren(t *testing.T) {
	for name, seal := range map[string]func(first int){
		"by range": func(int) { Seal() },
		"each":     sealEach,
	} {
		var ends [2]int
		if err := syscall.Pipe2(ends[:], 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = syscall.Close(ends[0]), syscall.Close(ends[1]) })
		seal(min(ends[0], ends[1]))
		for _, fd := range ends {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("descriptor %d sealed by %s: got flags %d, error %v, want FD_CLOEXEC", fd, name, flags, err)
			}
		}
	}
}
