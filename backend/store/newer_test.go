package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"deskhand/backend/store"
)

// newer makes data that a version after ours has had, and gives the versions of its schema and of ours.
func newer(t *testing.T, dir string) (db *store.DB, schema, ours int) {
	t.Helper()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Sign("99.0"); err != nil {
		t.Fatal(err)
	}
	if err := db.Read().QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&ours); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), func(tx *sql.Tx) error {
		for _, step := range []string{
			"ALTER TABLE workspace ADD COLUMN colour TEXT NOT NULL DEFAULT ''", "CREATE TABLE later (id TEXT)",
			"INSERT INTO workspace VALUES ('a', 'local', '/a', 0, 0, 0, 0, 'red')", "PRAGMA user_version=" + strconv.Itoa(ours+1),
		} {
			if _, err := tx.ExecContext(t.Context(), step); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return db, ours + 1, ours
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestNewerDatabaseIsReadOnly(t *testing.T) {
	for name, tidy := range map[string]bool{"that was closed": true, "whose program was killed": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made, schema, ours := newer(t, dir)
			files := []string{"deskhand.db", "written-by"}
			if tidy {
				if err := made.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				// What a kill leaves: all that was written last is in the journal of the database alone.
				killed := t.TempDir()
				files = append(files, "deskhand.db-wal")
				for _, file := range files {
					if err := os.WriteFile(filepath.Join(killed, file), read(t, filepath.Join(dir, file)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if err := made.Close(); err != nil {
					t.Fatal(err)
				}
				dir = killed
			}
			before := map[string][]byte{}
			for _, file := range files {
				before[file] = read(t, filepath.Join(dir, file))
			}
			db, err := store.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if n := db.Newer(); n == nil || *n != (store.Newer{Schema: schema, Known: ours, By: "99.0"}) {
				t.Errorf("Newer: got %+v, want schema %d, known %d, by 99.0", n, schema, ours)
			}
			if n := count(t, db); n != 1 {
				t.Errorf("rows of the newer database: got %d, want 1", n)
			}
			if faults, err := db.Check(t.Context()); err != nil || len(faults) > 0 {
				t.Errorf("Check: got faults %v, error %v, want none", faults, err)
			}
			for _, write := range []func(context.Context, func(*sql.Tx) error) error{db.Write, db.WriteSync} {
				if err := write(t.Context(), func(*sql.Tx) error { t.Error("it is written to"); return nil }); !errors.Is(err, store.ErrNewer) {
					t.Errorf("err = %v, want ErrNewer", err)
				}
			}
			for _, text := range []string{"DELETE FROM workspace", "PRAGMA user_version=1", "PRAGMA wal_checkpoint(TRUNCATE)"} {
				_, _ = db.Read().ExecContext(t.Context(), text) // SQLite says no to some, and to some nothing
			}
			if err := db.Sign("1.0"); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			for _, file := range files {
				if !bytes.Equal(read(t, filepath.Join(dir, file)), before[file]) {
					t.Errorf("%s: got other bytes, want it unchanged", file)
				}
			}
		})
	}
}

func TestLacksReportsMissingTables(t *testing.T) {
	db := open(t, t.TempDir())
	var colour string
	for text, lacks := range map[string]bool{"SELECT colour FROM workspace": true, "SELECT id FROM later": true, "SELEKT": false} {
		if err := db.Read().QueryRowContext(t.Context(), text).Scan(&colour); err == nil || store.Lacks(err) != lacks {
			t.Errorf("query %s: got error %v, Lacks %v, want an error, Lacks %v", text, err, store.Lacks(err), lacks)
		}
	}
}

func TestOwnDatabaseIsNotNewer(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	if err := db.Sign("1.0"); err != nil {
		t.Fatal(err)
	}
	if db.Newer() != nil {
		t.Errorf("Newer of our own data: got %+v, want nil", db.Newer())
	}
	if got := string(read(t, filepath.Join(dir, "written-by"))); got != "1.0\n" {
		t.Errorf("written-by: got %q, want 1.0", got)
	}
}
