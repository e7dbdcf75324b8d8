//go:build unix

package session

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/transcript"
)

// A start finds the frames of a broken import by the notes alone, without reading the agent's messages, which may be a very long history.
func TestOpenReadsOnlyNotesOfImport(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	story := newStoryteller(t, 1)
	story.start()
	story.frame(journal.In, "a word before the history")
	story.note(transcript.Note{Note: transcript.NoteImporting})
	story.frame(journal.In, strings.Repeat("a very long word ", 16<<10))
	s.put("s", story.frames)
	s.exec(`UPDATE session SET origin = '{"kind":"import"}'`)
	want := s.told("s")
	blob := s.blobFile()
	if err := errors.Join(os.Remove(blob), syscall.Mkfifo(blob, 0o600)); err != nil {
		t.Fatal(err)
	}
	opened, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-opened:
				return
			case <-time.After(time.Millisecond):
			}
			if w, err := os.OpenFile(blob, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // fails unless the blob is being read
				t.Error("it was read", w.Close())
			}
		}
	}()
	s.open()
	close(opened)
	<-looked
	if now := s.told("s"); now != want {
		t.Errorf("%s\nbefore %s", now, want)
	}
}
