package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAReaderIsWaitedFor: a file is replaced and removed although somebody reads it at that moment. It was never run on Windows yet.
func TestAReaderIsWaitedFor(t *testing.T) {
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
			t.Errorf("while it is read: %v", err)
		}
	}
}
