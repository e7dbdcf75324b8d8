//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// specialFiles makes a pipe, and devices when the system lets us; the first is the pipe.
func specialFiles(t *testing.T, dir string) []string {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	found := []string{"pipe"}
	if os.Getuid() == 0 {
		if err := syscall.Mknod(filepath.Join(dir, "zero"), syscall.S_IFCHR|0o666, 1<<8|5); err == nil {
			found = append(found, "zero")
		}
	}
	return found
}

func sameDevice(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y syscall.Stat_t
	if err := syscall.Stat(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Stat(b, &y); err != nil {
		t.Fatal(err)
	}
	return x.Dev == y.Dev
}
