package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// ErrNewer means that a later version of the program made the data. Such data can be read as far as the tables are the same, and is never
// written.
var ErrNewer = errors.New("the data was written by a newer version of Deskhand")

// Newer describes the version that made the data.
type Newer struct {
	Schema int    // of the database
	Known  int    // the newest schema of this program
	By     string // the version of the program, "" when unknown
}

// Newer returns a value when the data is open for reading alone, and nil otherwise.
func (db *DB) Newer() *Newer { return db.newer }

// Lacks reports whether a query failed because a table or a column is missing, as in the data of a newer version.
func Lacks(err error) bool {
	failure, ok := errors.AsType[*sqlite.Error](err)
	return ok && strings.Contains(failure.Error(), "no such ")
}

// byFile names the newest version of the program that has used the data.
const byFile = "written-by"

// Sign records for older versions which version uses the data now. version is a single line.
func (db *DB) Sign(version string) error {
	name := filepath.Join(filepath.Dir(db.file), byFile)
	if db.newer != nil || version == "" || signature(name) == version {
		return nil
	}
	return WriteFile(name, []byte(version+"\n"), 0o600)
}

func signature(name string) string {
	data, err := os.ReadFile(name)
	const longest = 100
	if err != nil || len(data) > longest {
		return "" // no version is that long
	}
	return strings.TrimSpace(string(data))
}

// schemaOf reads the version of the schema without changing the database, except that an interrupted transaction is rolled back first.
// The write-ahead log of a newer version's database stays in its file.
func schemaOf(ctx context.Context, file string) (version int, err error) {
	if err := rollBack(ctx, file); err != nil {
		return 0, err
	}
	r, err := openReader(file, true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("reading the schema version: %w", err)
	}
	return version, nil
}

// rollBack undoes the transaction of a program that was killed before the database had its write-ahead log: during the first start, or
// while SQLite changed the kind of the journal. Nobody can read the database before that, and a reader alone cannot roll back. Whichever
// version wrote the database, the undone changes were never committed.
func rollBack(ctx context.Context, file string) (err error) {
	if info, err := os.Stat(file + rollbackEnd); err != nil || info.Size() == 0 {
		return nil // no journal, or SQLite will report the error
	}
	db, err := sql.Open("sqlite", fileURL(file, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)"}}))
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return fmt.Errorf("rolling back what a killed program has left of a transaction: %w", err)
	}
	return nil
}

// The endings of the files that SQLite keeps beside a database: the log of committed changes, its index in shared memory, and the
// rollback journal of a database without a log.
const (
	logEnd      = "-wal"
	indexEnd    = "-shm"
	rollbackEnd = "-journal"
)

// openNewer opens the database of a newer version for reading.
func openNewer(dir, file string, newer Newer) (*DB, error) {
	r, err := openReader(file, true)
	if err != nil {
		return nil, err
	}
	r.SetMaxOpenConns(readers)
	newer.By = signature(filepath.Join(dir, byFile))
	p := newPacker()
	return &DB{Blobs: newBlobs(filepath.Join(dir, "blobs"), p), r: r, packer: p, file: file, newer: &newer}, nil
}

// openReader opens a database for reading. Without only, SQLite may move the log into the database.
func openReader(file string, only bool) (*sql.DB, error) {
	address := dsn(file, url.Values{"_pragma": {"query_only(1)"}})
	if only {
		address = fileURL(file, url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(5000)"}})
	}
	r, err := sql.Open("sqlite", address)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	return r, nil
}

func known() (files []string, err error) { return fs.Glob(migrations, "migrations/*.sql") }
