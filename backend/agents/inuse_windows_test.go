package agents

import (
	"os"
	"testing"
)

// TestVersionInUseIsRecognized: a directory is in use while a process holds the directory open. The test has never run on Windows yet.
func TestVersionInUseIsRecognized(t *testing.T) {
	dir := t.TempDir()
	if inUse(dir) {
		t.Error("nobody uses it")
	}
	f, err := os.Open(dir) // as proxy does
	if err != nil {
		t.Fatal(err)
	}
	if !inUse(dir) {
		t.Error("it is held")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if inUse(dir) {
		t.Error("nobody uses it any more")
	}
}
