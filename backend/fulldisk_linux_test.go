package backend_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"deskhand/backend"
	"deskhand/backend/datadir"
	"deskhand/backend/store"
)

// smallDisk is a file system of its own, of the given size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("only the administrator can make a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "data")
}

// TestStartOnAFullDisk: after a crash on a disk without a free byte, a start shows the data.
func TestStartOnAFullDisk(t *testing.T) {
	before, dir := t.TempDir(), smallDisk(t, "16m")
	places, err := datadir.Find(before)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := backend.Open(t.Context(), backend.Config{Places: places, Version: "1.2.3", Kind: "server", Self: self})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), before)
	if err == nil {
		err = db.Write(t.Context(), func(tx *sql.Tx) error {
			for _, text := range []string{
				`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', '/nowhere', 0, 0, 0, 0)`,
				`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version, generation, facts, exit,
					created_at, updated_at, archived_at) VALUES ('s', 'local', 'w', '/nowhere', 'mock', 'what there is', '', '[]', 0, 0, '', '', 1, 1, '{"offers":null}', '', 0, 0, 0)`,
				`INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at) VALUES ('t', 's', 1, 'running', '', '', '', 0, 0)`,
			} {
				if _, err := tx.ExecContext(context.Background(), text); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(before, "*")) // in the state that a crash leaves
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "run"), 0o700)
	}
	for _, file := range files {
		if data, unread := os.ReadFile(file); unread == nil { // else the entry is a directory
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o600))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	full := fillDisk(t, dir)
	opened(t, dir, func(c *backend.Config) { c.Logger = slog.New(slog.DiscardHandler) })
	there, err := datadir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := there.Owner()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "owner.json")); err == nil {
		t.Fatal("there was room for who has the directory")
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", owner.Socket)
	if err != nil {
		t.Fatal("who has no room to say that it is there is not found: ", err)
	}
	_ = conn.Close()
	db, err = store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	state := func() (state string) {
		if err := db.Read().QueryRowContext(t.Context(), `SELECT state || ' ' || stop_reason FROM turn`).Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if is := state(); is != "running " {
		t.Fatalf("%q: the disk was not full", is)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); state() != "done interrupted"; {
		if time.Now().After(deadline) {
			t.Fatalf("%q: with room for it, it is not written", state())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// fillDisk fills the disk, until the returned file is removed.
func fillDisk(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filling"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return f.Name()
}
