//go:build !windows

package terminal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A pipe of the system's own kind stands for a terminal of macOS: a write to it waits as long as nobody reads.
func TestTypeEndsWithoutDeadlines(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	out, in := os.NewFile(uintptr(ends[0]), "out"), os.NewFile(uintptr(ends[1]), "in")
	defer out.Close()
	if err := in.SetWriteDeadline(time.Time{}); !errors.Is(err, os.ErrNoDeadline) {
		t.Fatal("it knows deadlines: ", err)
	}
	tty := &Terminal{master: in, ended: make(chan struct{}), typed: make(chan typed)}
	var writing sync.WaitGroup
	writing.Go(tty.write)
	const patient, impatient = time.Minute, 20 * time.Millisecond

	much := bytes.Repeat([]byte("x"), 1<<20)
	tty.typed <- typed{much, make(chan error, 1)} // write has taken much, and waits for a reader
	if err := tty.hand(much, impatient); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("hand without a reader: got error %v, want os.ErrDeadlineExceeded", err)
	}
	got := make([]byte, len(much))
	if _, err := io.ReadFull(out, got); err != nil || !bytes.Equal(got, much) {
		t.Errorf("data from hand: got error %v or other bytes, want all bytes", err)
	}
	if err := tty.hand([]byte("y"), patient); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(out, got[:1]); err != nil || got[0] != 'y' {
		t.Errorf("data from hand: got %q, error %v, want y", got[:1], err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := tty.Type([]byte("z")); !errors.Is(err, ErrEnded) {
		t.Errorf("Type on a closed terminal: got error %v, want ErrEnded", err)
	}
	close(tty.ended)
	writing.Wait()
	if err := tty.Type([]byte("z")); !errors.Is(err, ErrEnded) {
		t.Errorf("Type after the end: got error %v, want ErrEnded", err)
	}
}
