package session_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/lifecycle"
	"deskhand/backend/search"
	"deskhand/backend/session"
)

// raise changes the data of a closed desk into data of a newer version.
func raise(t *testing.T, dir string, changes ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	var version int
	err = db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version)
	for _, change := range append(changes, "PRAGMA user_version=99") {
		_, failed := db.ExecContext(t.Context(), change)
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestNewerDataIsShownAndNotChanged(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	id := d.create().ID
	d.prompt(id, "echo the quick zeppelin")
	d.idle(id)
	d.prompt(id, "please write a note")
	d.request(id)
	if _, err := d.Send(t.Context(), id, session.Prompt{Message: "what waits", When: session.Queue}); err != nil {
		t.Fatal(err)
	}
	want := d.transcript(id)
	d.until("index", func() bool { return len(d.found("zeppelin").Items) == 2 })
	d.close()
	// A turn was running, as after a kill: a version that may write would end the turn.
	raise(t, dir, "ALTER TABLE session ADD COLUMN colour TEXT NOT NULL DEFAULT ''", "CREATE TABLE later (id TEXT)",
		"UPDATE turn SET state = 'running'", "UPDATE queue_item SET held = ''", "UPDATE session SET projection = 1")
	file := filepath.Join(dir, "deskhand.db")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	d = open(t, dir)
	refused(t, d.ReadOnly(), "storage.newer")
	list, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != id || list.Items[0].Phase != lifecycle.Closed {
		t.Errorf("List of newer data: got %+v, %v; want session %s, closed", list, err, id)
	}
	if have := d.transcript(id); len(have.Items) < len(want.Items) || textOf(have, "agent") != textOf(want, "agent") {
		t.Errorf("transcript of newer data: got %+v, want %+v", have, want)
	}
	if found, err := d.search.Find(t.Context(), search.Query{Text: "zeppelin", Limit: 10}); err != nil || len(found.Items) != 2 {
		t.Errorf("Find(zeppelin) in newer data: got %q, %v, want 2 hits", hits(found), err)
	}
	if q, err := d.Queue(t.Context(), id); err != nil || len(q) != 1 || q[0].Message != "what waits" {
		t.Errorf("Queue of newer data: got %+v, %v; want what waits", q, err)
	}
	if _, data := d.export(id, "json"); !bytes.Contains(data, []byte("zeppelin")) {
		t.Errorf("export of newer data: got %s, want zeppelin in it", data)
	}
	if _, err := d.Maintenance().Storage(t.Context()); err != nil {
		t.Error(err)
	}
	title := "another"
	for name, change := range map[string]func(context.Context) error{
		"prompt": func(ctx context.Context) error { _, err := d.Prompt(ctx, id, "x"); return err },
		"queue": func(ctx context.Context) error {
			_, err := d.Send(ctx, id, session.Prompt{Message: "x", When: session.Queue})
			return err
		},
		"change":  func(ctx context.Context) error { _, err := d.Change(ctx, id, session.Patch{Title: &title}); return err },
		"delete":  func(ctx context.Context) error { return d.Delete(ctx, id) },
		"cancel":  func(ctx context.Context) error { return d.Cancel(ctx, id) },
		"restart": func(ctx context.Context) error { return d.Restart(ctx, id) },
		"its own": func(ctx context.Context) error { _, err := d.Imports().Sessions(ctx, "mock", "", ""); return err },
		"login":   func(ctx context.Context) error { _, err := d.roster.Logins().Methods(ctx, "mock"); return err },
	} {
		t.Run(name, func(t *testing.T) { refused(t, change(t.Context()), "storage.newer") })
	}
	if n, _ := d.set.Running(); n > 0 {
		t.Errorf("%d agents run", n)
	}
	d.close()
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the database is another, %v", err)
	}
}
