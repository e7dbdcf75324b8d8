//go:build unix

package attachments

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/attachment"
	"deskhand/backend/testkit"
)

// TestContentOfFIFO: a file that becomes a FIFO in the moment in which the file is opened holds nobody up.
func TestContentOfFIFO(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notes.txt")
	ignore := filepath.Join(dir, ".gitignore")
	c := New(Deps{})
	plain, fifo := filepath.Join(dir, "plain"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
			}
			for _, name := range []string{path, ignore} {
				for _, what := range []string{plain, fifo} {
					_ = os.Link(what, name+".new")
					_ = os.Rename(name+".new", name)
				}
			}
		}
	}()
	defer func() { close(over); <-ended }()
	looked := make(chan struct{}, 1)
	go func() {
		for began := time.Now(); time.Since(began) < time.Second; {
			if r, err := c.open(attachment.File{Filename: "notes.txt", Path: path}); err == nil {
				_ = r.Close()
			}
			readIgnore(ignore, "")
		}
		looked <- struct{}{}
	}()
	select {
	case <-looked:
	case <-time.After(testkit.Limit):
		if f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = f.Close() // lets it go
		}
		t.Fatal("an open waits for somebody to write")
	}
}
