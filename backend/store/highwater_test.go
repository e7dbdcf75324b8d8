package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/store"
)

// filled is a directory with a database of which something is known beside it.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Sign("1.0.0"); err != nil {
		t.Fatal(err)
	}
	insert(t, db, "first")
	if _, err := db.Blobs.Put([]byte("of a message")); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func insert(t *testing.T, db *store.DB, id string) {
	t.Helper()
	err := db.WriteSync(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, 'local', ?, 0, 0, 0, 1)`, id, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesReplacedDatabase(t *testing.T) {
	t.Parallel()
	remove := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			for _, name := range names {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	older := func(t *testing.T, dir string) {
		t.Helper()
		copyFile(t, filepath.Join(dir, "deskhand.db"), filepath.Join(dir, "backup"))
		db := open(t, dir)
		insert(t, db, "second")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		copyFile(t, filepath.Join(dir, "backup"), filepath.Join(dir, "deskhand.db"))
	}
	for name, tc := range map[string]struct {
		harm func(*testing.T, string)
		kind string
	}{
		"missing":                           {remove("deskhand.db"), store.LostMissing},
		"missing, with the blobs alone":     {remove("deskhand.db", "high-water.json", "written-by"), store.LostMissing},
		"missing, with the signature alone": {remove("deskhand.db", "high-water.json", "blobs"), store.LostMissing},
		"missing, with its log alone": {func(t *testing.T, dir string) {
			t.Helper()
			remove("deskhand.db", "high-water.json", "blobs", "written-by")(t, dir)
			if err := os.WriteFile(filepath.Join(dir, "deskhand.db-wal"), []byte("a log"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, store.LostMissing},
		"empty": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Truncate(filepath.Join(dir, "deskhand.db"), 0); err != nil {
				t.Fatal(err)
			}
		}, store.LostEmpty},
		"older": {older, store.LostOlder},
		"other": {func(t *testing.T, dir string) {
			t.Helper()
			copyFile(t, filepath.Join(filled(t), "deskhand.db"), filepath.Join(dir, "deskhand.db"))
		}, store.LostOther},
		"of an old schema": {func(t *testing.T, dir string) {
			t.Helper()
			remove("deskhand.db")(t, dir)
			old, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := old.ExecContext(t.Context(), "CREATE TABLE some (x); PRAGMA user_version=1"); err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
		}, store.LostOlder},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filled(t)
			tc.harm(t, dir)
			for range 2 { // and changes nothing by it
				_, err := store.Open(t.Context(), dir)
				gone, is := errors.AsType[*store.LostError](err)
				if !is || gone.Kind != tc.kind || !strings.Contains(err.Error(), "deskhand data accept") {
					t.Fatalf("Open: got %v, want a LostError of the kind %s that names the way on", err, tc.kind)
				}
			}
			if tc.kind == store.LostMissing {
				if _, err := os.Stat(filepath.Join(dir, "deskhand.db")); err == nil {
					t.Error("a database was made in its place")
				}
			}
			if name == "of an old schema" {
				return
			}
			aside, err := store.Accept(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(aside, "blobs")); (err == nil) != (aside != "" && !strings.Contains(name, "signature") && !strings.Contains(name, "log")) {
				t.Errorf("the files of messages beside the lost database: got %v in %q, want them put aside", err, aside)
			}
			open(t, dir)
		})
	}
}

// What a kill leaves is never taken for an older database, nor is a first start that was broken off.
func TestOpenAcceptsRemainsOfKilledStart(t *testing.T) {
	t.Parallel()
	dir, killed := filled(t), t.TempDir()
	db := open(t, dir)
	insert(t, db, "second")
	for _, name := range []string{"deskhand.db", "deskhand.db-wal", "high-water.json", "written-by"} {
		copyFile(t, filepath.Join(dir, name), filepath.Join(killed, name))
	}
	again := open(t, killed)
	var n int
	if err := again.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM workspace`).Scan(&n); err != nil || n != 2 {
		t.Errorf("after a kill: got %d rows, %v; want 2", n, err)
	}
	empty := t.TempDir()
	for name, data := range map[string]string{"deskhand.db": "", "deskhand.db-journal": strings.Repeat("\x00", 512)} {
		if err := os.WriteFile(filepath.Join(empty, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, empty)
}

func TestOpenReportsDamagedDatabase(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	if err := os.WriteFile(filepath.Join(dir, "deskhand.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), dir)
	if _, is := errors.AsType[*store.DamagedError](err); !is || !strings.Contains(err.Error(), "verify --salvage") {
		t.Errorf("Open: got %v, want a DamagedError that names verify --salvage", err)
	}
}
