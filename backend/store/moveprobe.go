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
	"runtime"
)

// UnfitError says why the disk of a directory is unfit for the data.
type UnfitError struct{ Why string }

func (e *UnfitError) Error() string { return e.Why }

// Fit tries, in an empty directory, whether the disk has the features that the data needs: a file that only the user may read, a link, a
// program that can be started, and a database whose readers and writer see each other. A network disk may pass all of this and still lose
// concurrent writes, so network disks are refused by their kind where it can be recognised.
func Fit(ctx context.Context, dir string) (err error) {
	if why := kindOfDisk(dir); why != "" {
		return &UnfitError{why}
	}
	probe, err := os.MkdirTemp(dir, unfinished+"probe-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(probe)) }()
	if runtime.GOOS != "windows" { // Windows takes the permissions from the directory
		if err := fitRights(probe); err != nil {
			return err
		}
	}
	return fitDatabase(ctx, filepath.Join(probe, databaseName))
}

func fitRights(probe string) error {
	secret := filepath.Join(probe, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		return err
	}
	for _, mode := range []fs.FileMode{0o600, 0o700} {
		if err := os.Chmod(secret, mode); err != nil {
			return &UnfitError{"it keeps no rights of files: " + err.Error()}
		}
		if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != mode {
			return &UnfitError{"it keeps no rights of files, so that others could read the data"}
		}
	}
	if err := os.Symlink("secret", filepath.Join(probe, "link")); err != nil {
		return &UnfitError{"it has no symbolic links, which installed agents need"}
	}
	return nil
}

func fitDatabase(ctx context.Context, file string) (err error) {
	w, err := sql.Open("sqlite", dsn(file, url.Values{}))
	if err != nil {
		return err
	}
	w.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, w.Close()) }()
	var mode string
	if err := w.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		return &UnfitError{fmt.Sprintf("SQLite cannot keep its journal there (%s, %v)", mode, err)}
	}
	if _, err := w.ExecContext(ctx, "CREATE TABLE t (n); INSERT INTO t VALUES (1)"); err != nil {
		return &UnfitError{"SQLite cannot write there: " + err.Error()}
	}
	r, err := openReader(file, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var n int
	if err := r.QueryRowContext(ctx, "SELECT n FROM t").Scan(&n); err != nil {
		return &UnfitError{"two programs cannot use a database there: " + err.Error()}
	}
	return nil
}
