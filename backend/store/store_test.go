package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/store"
)

func open(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func addWorkspace(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO workspace VALUES (?, 'local', ?, 0, 0, 0, 0)", id, "/"+id)
	return err
}

func count(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	if err := db.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM workspace").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWriteIsAllOrNothing(t *testing.T) {
	db := open(t, t.TempDir())
	boom := errors.New("boom")
	err := db.Write(t.Context(), func(tx *sql.Tx) error {
		if err := addWorkspace(t.Context(), tx, "a"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) || count(t, db) != 0 {
		t.Fatalf("err %v, %d rows; want boom and none", err, count(t, db))
	}
	for i, write := range []func(context.Context, func(*sql.Tx) error) error{db.Write, db.WriteSync} {
		if err := write(t.Context(), func(tx *sql.Tx) error { return addWorkspace(t.Context(), tx, string(rune('a'+i))) }); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, db); n != 2 {
		t.Fatalf("%d rows, want 2", n)
	}
	var level int
	if err := db.Write(t.Context(), func(tx *sql.Tx) error {
		return tx.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level)
	}); err != nil || level != 1 {
		t.Fatalf("synchronous is %d (%v) after WriteSync, want 1 (NORMAL)", level, err)
	}
}

func TestReadersCannotWrite(t *testing.T) {
	db := open(t, t.TempDir())
	if _, err := db.Read().ExecContext(t.Context(), "DELETE FROM workspace"); err == nil {
		t.Fatal("a write through Read succeeded")
	}
}

func TestReopenKeepsDataInAnyDirectoryName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "100% my data? #1 ü")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), func(tx *sql.Tx) error { return addWorkspace(t.Context(), tx, "a") }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, open(t, dir)); n != 1 {
		t.Fatalf("%d rows after reopening, want 1", n)
	}
	info, err := os.Stat(filepath.Join(dir, "deskhand.db"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v (%v), want 0600", info.Mode(), err)
	}
}

func TestNewerDatabaseIsRefusedUntouched(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "PRAGMA user_version=999")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), dir); !errors.Is(err, store.ErrNewer) {
		t.Fatalf("err = %v, want ErrNewer", err)
	}
}

func TestBlobs(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir).Blobs
	sha, err := b.Put([]byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.Put([]byte("hello")); err != nil || again != sha {
		t.Fatalf("second Put: %s %v", again, err)
	}
	if data, err := b.Get(sha); err != nil || string(data) != "hello" {
		t.Fatalf("Get = %q, %v", data, err)
	}
	file := filepath.Join(dir, "blobs", sha[:2], sha)
	if err := os.WriteFile(file, []byte("hellO"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(sha); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("a damaged blob was read: %v", err)
	}
	for _, bad := range []string{"", "zz", "../../etc/passwd", sha[:10]} {
		if _, err := b.Get(bad); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Get(%q) = %v, want not exist", bad, err)
		}
	}
}

func TestWriteFileLeavesNoRemains(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two"} {
		if err := store.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.WriteFile(filepath.Join(dir, "missing", "f"), nil, 0o600); err == nil {
		t.Fatal("writing into a missing directory succeeded")
	}
	// A directory in the way makes the rename fail after the temporary file was made.
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(filepath.Join(dir, "d"), nil, 0o600); err == nil {
		t.Fatal("replacing a directory succeeded")
	}
	files, _ := os.ReadDir(dir)
	if data, _ := os.ReadFile(name); string(data) != "two" || len(files) != 2 {
		t.Fatalf("%q, %v", data, files)
	}
}

// A data directory of the first schema keeps what it has, and gets what is new.
func TestAnOlderDatabaseIsBroughtUp(t *testing.T) {
	dir := t.TempDir()
	first, err := os.ReadFile(filepath.Join("migrations", "001_spine.sql"))
	if err != nil {
		t.Fatal(err)
	}
	old, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(first), "PRAGMA user_version=1",
		`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w', 'local', '/w', 0, 0, 0, 1)`,
	} {
		if _, err := old.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and is as it should be at the next start
		db, err := store.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		var path string
		var approvals int
		if err := db.Read().QueryRowContext(t.Context(), `SELECT path, (SELECT count(*) FROM trust) FROM workspace`).Scan(&path, &approvals); err != nil || path != "/w" || approvals != 0 {
			t.Errorf("%q %d %v", path, approvals, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
