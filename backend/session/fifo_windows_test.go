package session_test

import (
	"os"
	"testing"
)

// fifo makes a directory: there are no pipes among files here.
func fifo(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
