package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestChangesWaitForReader: a file is replaced and removed although somebody reads it at that moment. It was never run on Windows yet.
func TestChangesWaitForReader(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.json")
	for _, change := range []func() error{
		func() error { return WriteFile(name, []byte("new"), 0o600) },
		func() error { return Remove(name) },
	} {
		if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		closed := time.AfterFunc(200*time.Millisecond, func() { _ = f.Close() })
		if err := change(); err != nil || closed.Stop() {
			t.Errorf("change of a file that is read: got error %v, want none after the reader", err)
		}
	}
}
