// Package storetest opens databases for the tests of other packages. What opening itself does is tested in store.
package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/record"
	"deskhand/backend/store"
)

// Open opens the database in dir. A dir without one gets a copy of an empty database that the test program made at its first call, by
// store.Open: all migrations take eight times as long as the rest of opening. Copies have the same id, so a test of databases that are
// taken for each other must make its own.
func Open(tb testing.TB, dir string) *store.DB {
	tb.Helper()
	file := filepath.Join(dir, name)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		data, err := empty()
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			tb.Fatalf("storetest.Open(%s): got error %v, want a new database", dir, err)
		}
	}
	db, err := store.Open(tb.Context(), dir)
	if err != nil {
		tb.Fatalf("storetest.Open(%s): got error %v, want a database", dir, err)
	}
	return db
}

// Plan returns the steps of SQLite's plan for a query, a line each.
func Plan(tb testing.TB, db *store.DB, query string, args ...any) string {
	tb.Helper()
	steps, err := record.Query(tb.Context(), db.Read(), func(s record.Scanner) (step string, err error) {
		var id, parent, unused int
		return step, s.Scan(&id, &parent, &unused, &step)
	}, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		tb.Fatalf("the plan of %s: got error %v, want none", query, err)
	}
	return strings.Join(steps, "\n")
}

const name = "deskhand.db"

//nolint:gochecknoglobals // the database is made once in a process
var empty = sync.OnceValues(func() (data []byte, err error) {
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := store.Open(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // moves the log into the file
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, name))
})
