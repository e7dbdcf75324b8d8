package session_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// A directory on a disk of the network that does not answer holds up what is in it, and nothing else: not the list, not the end of what goes on
// there or its deletion, not the end of the program, and not the next start.
func TestADiskThatDoesNotAnswer(t *testing.T) {
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
	soon := func(what string, do func()) {
		t.Helper()
		begun := time.Now()
		do()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s took %v", what, took)
		}
	}
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
	hangs.Store(&until)
	soon("the list", func() {
		page, err := d.List(t.Context(), false, "", 10)
		if err != nil || len(page.Items) != 3 || page.Items[0].Workspace.Missing {
			t.Errorf("%+v, %v", page, err)
		}
	})
	soon("the directories", func() {
		if list, err := d.Workspaces(t.Context()); err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
	})
	soon("a turn elsewhere", func() { d.prompt(near.ID, "echo near"); d.idle(near.ID) })
	soon("the deletion", func() { d.delete(idle.ID) })
	if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // as a crash would leave it
		t.Fatal(err)
	}

	// Once it answers it is told what was found.
	if err := os.Remove(far); err != nil {
		t.Fatal(err)
	}
	seq := d.Feed().Gen()
	close(until)
	d.until("the word that the directory is gone", func() bool {
		batch, err := d.Feed().After(t.Context(), session.Query{Gen: seq, Session: working.ID, Types: []string{"session.upsert"}})
		return err == nil && len(batch.Events) > 0 && strings.Contains(string(batch.Events[len(batch.Events)-1].Data), `"missing":true`)
	})

	again := make(chan struct{})
	hangs.Store(&again)
	soon("the end", d.close)
	soon("the next start", func() { d = openAs(t, later, proxy.Config{}, cfg) })
	if turn := lastTurn(d.transcript(working.ID)); turn.StopReason != "interrupted" {
		t.Errorf("%+v", turn)
	}
	soon("its end", d.close)
	close(again)
}
