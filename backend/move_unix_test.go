//go:build unix

package backend_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/adrg/xdg"
	"golang.org/x/sys/unix"

	"deskhand/backend"
)

// TestPointerThatIsWrittenWithAnErrorCounts: a pointer whose write took effect but returned an error names the copy, which is used and not
// removed.
func TestPointerThatIsWrittenWithAnErrorCounts(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is forbidden to root")
	}
	_, to := usual(t), elsewhere(t)
	config := filepath.Join(xdg.ConfigHome, "deskhand")
	h := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now == "whole" { // the directory can be written, but not opened for a sync
				if err := os.Chmod(config, 0o300); err != nil {
					t.Error(err)
				}
			}
		}
	})
	t.Cleanup(func() { _ = os.Chmod(config, 0o700) }) // lets the test remove the directory
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	if m := settled(t, h); m.State != "done" {
		t.Errorf(`settled: got m %+v, want State "done"`, m)
	}
	if place := h.ShowMove(); place.Directory != to || place.Old == nil {
		t.Errorf("ShowMove: got place %+v, want place.Directory %v and place.Old not nil", place, to)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	whole(t, to)
}

// TestSlowDiskHoldsUpNobodyElse: a disk that does not answer delays no call that only reads the state or counts the turns.
func TestSlowDiskHoldsUpNobodyElse(t *testing.T) {
	data, _ := moved(t)
	h := hosted(t, nil)
	file := filepath.Join(data, "deskhand.db")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.DeleteOld(t.Context()) }()
	disk, err := os.OpenFile(file, os.O_WRONLY, 0) // returns when the file is read
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		h.ShowMove()
		h.Running()
		close(asked)
	}()
	const far = 20 * time.Second
	select {
	case <-asked:
	case <-time.After(far):
		t.Error("it waits for the disk")
	}
	if err := disk.Close(); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, <-ended, "move.old_used")
}
