package store

import (
	"context"
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

// Prove has SQLite check the whole database of a directory that nobody has open, and returns how far the database is. The error is a
// [DamagedError] for a damaged database, such as one that was copied in part, and a [LostError] for a database that is not as far as the
// file beside it says. Prove migrates nothing.
func Prove(ctx context.Context, dir string) (now HighWater, err error) {
	now, err = levelIn(ctx, dir, true)
	if err != nil {
		if Corrupt(err) {
			err = &DamagedError{Dir: dir, Err: err}
		}
		return now, err
	}
	return now, behind(dir, now)
}

// Level returns how far the database of a directory is, and a zero HighWater for a database whose version counted no steps.
func Level(ctx context.Context, dir string) (HighWater, error) { return levelIn(ctx, dir, false) }

func levelIn(ctx context.Context, dir string, check bool) (now HighWater, err error) {
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
	if check {
		var said string
		if err := r.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
			return now, fmt.Errorf("checking the database: %w", err)
		}
		if said != "ok" {
			return now, &DamagedError{Dir: dir, Err: errors.New(said)}
		}
	}
	if have < schemaOfLevel {
		return now, nil
	}
	if err := r.QueryRowContext(ctx, `SELECT database, step FROM high_water`).Scan(&now.Database, &now.Step); err != nil && !Lacks(err) {
		return now, fmt.Errorf("how far the database is cannot be told: %w", err)
	}
	return now, nil
}
