package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"deskhand/backend/store"
	"deskhand/backend/unprivileged"
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

// A folder has no second name on any disk, as a file has none on some.
func TestNameFileReplacesNothing(t *testing.T) {
	t.Parallel()
	for what, put := range map[string]func(name string) error{
		"a file":   func(name string) error { return os.WriteFile(name, []byte("new"), 0o600) },
		"a folder": func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		dir := t.TempDir()
		from, name, taken := filepath.Join(dir, "from"), filepath.Join(dir, "name"), filepath.Join(dir, "taken")
		if err := errors.Join(put(from), put(taken)); err != nil {
			t.Fatal(err)
		}
		if err := store.NameFile(from, taken); !errors.Is(err, fs.ErrExist) {
			t.Errorf("NameFile over another file, %s: got error %v, want fs.ErrExist", what, err)
		}
		if err := store.NameFile(from, name); err != nil {
			t.Errorf("NameFile, %s: got error %v, want none", what, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 2 || left[0].Name() != "name" || left[1].Name() != "taken" {
			t.Errorf("files after NameFile, %s: got %v, error %v, want name and taken", what, left, err)
		}
		if err := store.NameFile(name, filepath.Join(dir, "none", "name")); err == nil {
			t.Errorf("NameFile into a missing directory, %s: got no error, want one", what)
		}
	}
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
	for _, tc := range []struct {
		name  string
		write func(context.Context, func(*sql.Tx) error) error
		want  map[string]int
	}{
		{"WriteSync", db.WriteSync, map[string]int{"synchronous": 2, "fullfsync": 1, "checkpoint_fullfsync": 1}},
		{"Write after it", db.Write, map[string]int{"synchronous": 1, "fullfsync": 0, "checkpoint_fullfsync": 1}},
	} {
		for pragma, want := range tc.want {
			var got int
			if err := tc.write(t.Context(), func(tx *sql.Tx) error {
				return tx.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got)
			}); err != nil || got != want {
				t.Errorf("%s: %s is %d (%v), want %d", tc.name, pragma, got, err, want)
			}
		}
	}
	var full int
	if err := db.Read().QueryRowContext(t.Context(), "PRAGMA checkpoint_fullfsync").Scan(&full); err != nil || full != 1 {
		t.Errorf("checkpoint_fullfsync of a reader, whose end may be a checkpoint, too: got %d, error %v, want 1", full, err)
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

func TestBlobsStoreBytesOnce(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir).Blobs
	sha, err := b.Put([]byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.Put([]byte("hello")); err != nil || again != sha {
		t.Fatalf("second Put: got %s, error %v, want %s", again, err, sha)
	}
	if data, err := b.Get(sha); err != nil || string(data) != "hello" {
		t.Fatalf("Get: got %q, error %v, want hello", data, err)
	}
	file := filepath.Join(dir, "blobs", sha[:2], sha+".zst")
	short, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, harm := range map[string][]byte{"cut off": short[:len(short)-3], "empty": nil, "something else": []byte("hello")} {
		if err := os.WriteFile(file, harm, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(sha); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v, want damaged", what, err)
		}
		if _, err := b.Put([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if data, err := b.Get(sha); err != nil || string(data) != "hello" {
			t.Errorf("Get after a second Put of a blob that was %s: got %q, error %v, want hello", what, data, err)
		}
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
		t.Fatalf("replaced file: got %q among %v, want two among 2 files", data, files)
	}
}

// A directory that may be written but not read cannot be synced, and WriteFile must say so.
func TestWriteFileSyncsDirectory(t *testing.T) {
	unprivileged.Bind(t)
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if err := store.WriteFile(filepath.Join(dir, "f"), nil, 0o600); !errors.Is(err, os.ErrPermission) {
		t.Errorf("WriteFile into a directory that cannot be synced: got error %v, want %v", err, os.ErrPermission)
	}
}

// A data directory of the first schema keeps what it has, and gets what is new.
func TestOpenMigratesOlderDatabase(t *testing.T) {
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
			t.Errorf("migrated database: got path %q, %d approvals, error %v, want /w, 0", path, approvals, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What the journal of an older database holds stays as it is, and what is new fits in.
func TestMigratedJournalTakesCompressedFrames(t *testing.T) {
	dir := t.TempDir()
	old, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"001_spine.sql", "002_trust.sql", "003_search.sql", "004_queue.sql"} {
		text, err := os.ReadFile(filepath.Join("migrations", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := old.ExecContext(t.Context(), string(text)+fmt.Sprintf("; PRAGMA user_version=%d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	const frame = `INSERT INTO frame (session, n, generation, at, dir, encoding, payload) VALUES ('s', ?, 1, 1, 'in', ?, ?)`
	for _, text := range []string{
		`INSERT INTO workspace VALUES ('w', 'local', '/w', 0, 0, 0, 1)`,
		`INSERT INTO session VALUES ('s', 'local', 'w', '/w', 'mock', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 1, 1, 0)`,
	} {
		if _, err := old.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := old.ExecContext(t.Context(), frame, 1, "raw", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	db := open(t, dir)
	put := func(n int, encoding string) error {
		return db.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), frame, n, encoding, []byte("x"))
			return err
		})
	}
	if err := errors.Join(put(2, "zstd"), put(3, "blob")); err != nil {
		t.Fatal(err)
	}
	if put(4, "other") == nil {
		t.Error("any encoding is taken")
	}
	var sound, kept string
	var version int
	if err := errors.Join(
		db.Read().QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&sound),
		db.Read().QueryRowContext(t.Context(), `SELECT CAST(payload AS TEXT) FROM frame WHERE n = 1`).Scan(&kept),
		db.Read().QueryRowContext(t.Context(), `SELECT projection FROM session`).Scan(&version),
	); err != nil || sound != "ok" || kept != "{}" || version != 1 {
		t.Errorf("migrated journal: got integrity %q, frame %q, projection %d, error %v, want ok, {}, 1", sound, kept, version, err)
	}
}

// What older versions wrote is read, and is not written a second time.
func TestBlobsReadFilesOfOlderVersions(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir).Blobs
	sum := sha256.Sum256([]byte("plain"))
	sha := hex.EncodeToString(sum[:])
	file := filepath.Join(dir, "blobs", sha[:2], sha)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("plain"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if data, err := b.Get(sha); err != nil || string(data) != "plain" {
		t.Fatalf("Get of an older blob: got %q, error %v, want plain", data, err)
	}
	if again, err := b.Put([]byte("plain")); err != nil || again != sha {
		t.Fatalf("Put of an older blob: got %s, error %v, want %s", again, err, sha)
	}
	if files, _ := os.ReadDir(filepath.Dir(file)); len(files) != 1 {
		t.Errorf("files of the blob: got %v, want one", files)
	}
}

func TestSweepRemovesUnusedBlobs(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir).Blobs
	var names []string
	for i := range 5 {
		sha, err := b.Put(bytes.Repeat([]byte{byte(i)}, 100))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, sha)
	}
	remains := filepath.Join(dir, "blobs", names[0][:2], ".new-123")
	foreign := filepath.Join(dir, "blobs", names[0][:2], "README")
	if err := errors.Join(os.WriteFile(remains, nil, 0o600), os.WriteFile(foreign, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	used := func(sha string) (bool, error) { return sha == names[0] || sha == names[1], nil }
	if n, err := b.Sweep(t.Context(), used); err != nil || n != 4 {
		t.Fatalf("Sweep: got %d removed, error %v, want 4", n, err)
	}
	for i, sha := range names {
		if _, err := b.Get(sha); (err == nil) != (i < 2) {
			t.Errorf("Get of blob %d after Sweep: got error %v, want only blobs 0 and 1 kept", i, err)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("foreign file after Sweep: got error %v, want it kept", err)
	}
	boom := errors.New("boom")
	if _, err := b.Sweep(t.Context(), func(string) (bool, error) { return false, boom }); !errors.Is(err, boom) {
		t.Errorf("Sweep whose query fails: got error %v, want %v", err, boom)
	}
}

// A blob that is put just now, and whose name is about to be written down, is not swept.
func TestSweepWaitsForKeep(t *testing.T) {
	b := open(t, t.TempDir()).Blobs
	put, looked := make(chan struct{}), make(chan struct{})
	var named atomic.Bool
	done := make(chan error)
	go func() {
		done <- b.Keep(func() error {
			_, err := b.Put([]byte("new"))
			close(put)
			<-looked
			named.Store(true)
			return err
		})
	}()
	<-put
	once := sync.OnceFunc(func() { close(looked) })
	n, err := b.Sweep(t.Context(), func(string) (bool, error) {
		now := named.Load()
		once()
		return now, nil
	})
	if err := errors.Join(err, <-done); err != nil || n != 0 {
		t.Errorf("Sweep during a Keep: got %d removed, error %v, want 0", n, err)
	}
}

// What was said before there was more to be found of it is indexed anew.
func TestMigrationIndexesOldEntriesAnew(t *testing.T) {
	dir := t.TempDir()
	old, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("migrations", "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	const before = 15
	for _, name := range files[:before] {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := old.ExecContext(t.Context(), string(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		fmt.Sprintf("PRAGMA user_version=%d", before),
		`INSERT INTO workspace VALUES ('w', 'local', '/w', 0, 0, 0, 1)`,
		`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
			generation, facts, exit, created_at, updated_at, archived_at) VALUES ('s', 'local', 'w', '/w', 'mock', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 1, 1, 0)`,
		`INSERT INTO entry (id, session, seq, data) VALUES ('indexed', 's', 1, '{}'), ('waits', 's', 2, '{}')`,
		`DELETE FROM unsearched WHERE entry = 1`,
	} {
		if _, err := old.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	var waiting int
	if err := open(t, dir).Read().QueryRowContext(t.Context(), `SELECT count(*) FROM unsearched`).Scan(&waiting); err != nil || waiting != 2 {
		t.Errorf("entries to be indexed anew: got %d, error %v, want 2", waiting, err)
	}
}

// A program that is killed during the very first start leaves a transaction that has to be rolled back, which who may only read cannot.
func TestOpenRollsBackKilledFirstStart(t *testing.T) {
	t.Parallel()
	made, dir := t.TempDir(), t.TempDir()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(made, "deskhand.db")+"?_pragma=cache_size(1)&_pragma=journal_mode(DELETE)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	first, err := os.ReadFile(filepath.Join("migrations", "001_spine.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(first), "PRAGMA user_version=1", "BEGIN IMMEDIATE", "CREATE TABLE half (x)", "PRAGMA user_version=2",
		"INSERT INTO half WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 200) SELECT randomblob(4000) FROM n",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"deskhand.db", "deskhand.db-journal"} { // as a kill leaves them
		data, err := os.ReadFile(filepath.Join(made, name))
		if err != nil || len(data) == 0 {
			t.Fatalf("%s: got %d bytes, %v; want those of an open transaction", name, len(data), err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened := open(t, dir)
	var half, sessions int
	if err := opened.Read().QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM sqlite_schema WHERE name = 'half'), (SELECT count(*) FROM session)`).Scan(&half, &sessions); err != nil || half != 0 {
		t.Errorf("after the rollback: got %d tables of the broken-off transaction, %v; want none", half, err)
	}
}
