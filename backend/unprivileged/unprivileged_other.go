//go:build !linux

package unprivileged

import (
	"os"
	"runtime"
	"testing"
)

// Bind makes the modes of files bind the goroutine of a test, and skips the test on systems without a way to do so.
func Bind(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("the modes of files do not bind this user")
	}
}
