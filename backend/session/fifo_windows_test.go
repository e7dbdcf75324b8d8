package session_test

import (
	"os"
	"testing"
)

// fifo makes a directory, since Windows has no named pipes in directories.
func fifo(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
