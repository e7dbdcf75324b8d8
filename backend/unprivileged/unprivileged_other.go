//go:build !linux

package unprivileged

import (
	"os"
	"runtime"
	"testing"
)

// Bind makes the modes of files count for the goroutine of a test; where that cannot be had, the test is skipped.
func Bind(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("the modes of files do not bind this user")
	}
}
