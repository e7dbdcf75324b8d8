package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const databaseName = "deskhand.db"

// Beside returns the names of the files that SQLite keeps beside an open database.
func Beside() []string {
	return []string{databaseName + logEnd, databaseName + indexEnd, databaseName + rollbackEnd}
}

// Holds reports whether a directory has a database.
func Holds(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, databaseName))
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// Prove has SQLite check the whole database of a directory, such as a copy, and returns how far the database is. Prove migrates nothing.
func Prove(ctx context.Context, dir string) (HighWater, error) {
	return readLevel(ctx, dir, func(r *sql.DB) error {
		faults, err := faultsOf(ctx, r, "1")
		if err != nil || len(faults) == 0 {
			return err
		}
		return errors.New(faults[0])
	})
}

// Level returns how far the database of a directory is, and a zero HighWater for a database whose version counted no steps.
func Level(ctx context.Context, dir string) (HighWater, error) {
	return readLevel(ctx, dir, func(*sql.DB) error { return nil })
}

// readLevel opens the database of a directory for reading, and returns how far the database is unless check finds a fault.
func readLevel(ctx context.Context, dir string, check func(r *sql.DB) error) (now HighWater, err error) {
	file := filepath.Join(dir, databaseName)
	have, err := schemaOf(ctx, file)
	if err != nil {
		return now, err
	}
	steps, err := known()
	if err != nil {
		return now, err
	}
	r, err := openReader(file, have > len(steps))
	if err != nil {
		return now, err
	}
	r.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := check(r); err != nil {
		return now, fmt.Errorf("checking the database: %w", err)
	}
	if have < schemaOfLevel {
		return now, nil
	}
	return levelOf(ctx, r)
}
