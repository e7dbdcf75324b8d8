package session_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"deskhand/backend/feed"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// A directory on a network disk that does not answer holds up only its own files: not the list of sessions, not the end or the deletion of
// its sessions, not the end of the program, and not the next start.
func TestDiskThatDoesNotAnswerHoldsUpNothing(t *testing.T) {
	t.Parallel()
	dir, later := t.TempDir(), t.TempDir()
	far := filepath.Join(t.TempDir(), "far")
	if err := os.Mkdir(far, 0o700); err != nil {
		t.Fatal(err)
	}
	var hangs atomic.Pointer[chan struct{}]
	cfg := session.Config{Gone: func(path string) bool {
		if until := hangs.Load(); until != nil && strings.HasPrefix(path, far) {
			<-*until
		}
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	}}
	d := openAs(t, dir, proxy.Config{}, cfg)
	near := d.create()
	createFar := func() session.Session {
		t.Helper()
		s, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: far})
		if err != nil {
			t.Fatal(err)
		}
		d.ready(s.ID)
		return s
	}
	working, idle := createFar(), createFar()
	d.prompt(working.ID, "permission")
	d.request(working.ID)

	until := make(chan struct{})
	hangs.Store(&until) // each call below would wait for the disk, which does not answer
	page, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || len(page.Items) != 3 || page.Items[0].Workspace.Missing {
		t.Errorf("List without the disk: got %+v, %v; want 3 sessions, none told as missing", page, err)
	}
	if list, err := d.Workspaces().List(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("Workspaces without the disk: got %+v, %v; want 2", list, err)
	}
	d.prompt(near.ID, "echo near")
	d.idle(near.ID)
	d.delete(idle.ID)
	if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // the directory as after a crash
		t.Fatal(err)
	}

	// Once the disk answers, the session shows what was found.
	if err := os.Remove(far); err != nil {
		t.Fatal(err)
	}
	seq := d.Feed().Gen()
	close(until)
	d.until("the word that the directory is gone", func() bool {
		batch, err := d.Feed().After(t.Context(), feed.Query{Gen: seq, Session: working.ID, Types: []string{"session.upsert"}})
		return err == nil && len(batch.Events) > 0 && strings.Contains(string(batch.Events[len(batch.Events)-1].Data), `"missing":true`)
	})

	again := make(chan struct{})
	hangs.Store(&again)
	d.close()
	d = openAs(t, later, proxy.Config{}, cfg)
	wantStop(t, d.transcript(working.ID), "interrupted")
	d.close()
	close(again)
}
