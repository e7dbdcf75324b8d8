// Package store hides SQLite and the file system from the packages above: a database with its migrations, a blob store by hash, and files
// that are either old or new, never half.
//
// A single connection writes, a few read (WAL). Write loses nothing on kill -9; WriteSync also survives loss of power.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

//go:embed migrations/*.sql
var migrations embed.FS

// DB is an open data directory. For the data of a newer version w is nil: every write fails with ErrNewer.
type DB struct {
	Blobs  *Blobs
	w, r   *sql.DB
	packer *packer
	file   string
	newer  *Newer
	level  level
}

const readers = 4

// Open opens or creates the database in dir, which must exist, and migrates the database to the newest schema, a transaction a step. A
// database of a newer version is opened for reading alone, see Newer. The error is a [LostError] when the database is not the database
// that was in dir, and a [DamagedError] when SQLite cannot read the database.
func Open(ctx context.Context, dir string) (*DB, error) {
	if err := lost(dir); err != nil {
		return nil, err
	}
	db, err := open(ctx, dir)
	if err != nil && Corrupt(err) {
		return nil, &DamagedError{Dir: dir, Err: err}
	}
	return db, err
}

func open(ctx context.Context, dir string) (*DB, error) {
	file := filepath.Join(dir, "deskhand.db")
	// Created here with its mode, so that others can never read the data, not even for a moment.
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	steps, err := known()
	if err != nil {
		return nil, err
	}
	have, err := schemaOf(ctx, file)
	if err != nil {
		return nil, err
	}
	if have > len(steps) {
		return openNewer(dir, file, Newer{Schema: have, Known: len(steps)})
	}
	if err := olderLevel(dir, have); err != nil {
		return nil, err
	}
	w, err := sql.Open("sqlite", dsn(file, url.Values{"_txlock": {"immediate"}}))
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	w.SetMaxOpenConns(1)
	if err := migrate(ctx, w, have, steps); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	r, err := openReader(file, false)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	r.SetMaxOpenConns(readers)
	p := newPacker()
	db := &DB{Blobs: newBlobs(filepath.Join(dir, "blobs"), p), w: w, r: r, packer: p, file: file, level: level{ctx: context.WithoutCancel(ctx)}}
	if err := db.compareLevel(ctx); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	return db, nil
}

// dsn returns the address of a database that may be written. On macOS, fsync leaves the order of writes to the drive: if the log is
// restarted before its pages are on the disk, a loss of power breaks the database. checkpoint_fullfsync prevents that, and does nothing
// elsewhere.
func dsn(file string, q url.Values) string {
	for _, p := range []string{"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(NORMAL)", "checkpoint_fullfsync(1)"} {
		q.Add("_pragma", p)
	}
	return fileURL(file, q)
}

func fileURL(file string, q url.Values) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath() + "?" + q.Encode()
}

// Close closes the database. The last connection moves the log into the database.
func (db *DB) Close() error {
	db.endLevel()
	err := db.r.Close()
	if db.w != nil {
		err = errors.Join(err, db.w.Close())
	}
	return err
}

// Read returns the pool for queries. Writing through the pool fails.
func (db *DB) Read() *sql.DB { return db.r }

// Write runs f in a transaction. The changes are visible to every reader, and safe from kill -9, once Write returns nil.
func (db *DB) Write(ctx context.Context, f func(*sql.Tx) error) error {
	if db.w == nil {
		return ErrNewer
	}
	err := write(ctx, db.w, f)
	if err == nil {
		db.level.touch()
	}
	return err
}

// WriteSync is Write, but also waits until the changes are on the disk.
func (db *DB) WriteSync(ctx context.Context, f func(*sql.Tx) error) error {
	if db.w == nil {
		return ErrNewer
	}
	conn, err := db.w.Conn(ctx)
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA synchronous=FULL; PRAGMA fullfsync=1"); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	var now HighWater
	err = write(ctx, conn, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		var err error
		now, err = db.raise(ctx, tx)
		return err
	})
	if err != nil {
		return errors.Join(err, relax(ctx, conn))
	}
	_ = relax(ctx, conn) // at worst the connection stays slow: after an error, the caller would store the changes again
	db.raised(ctx, now)
	return nil
}

// relax resets the pragmas of WriteSync, of which fullfsync matters on macOS. relax does not end with ctx: the connection is shared, and
// must not stay slow because a caller went away.
func relax(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous=NORMAL; PRAGMA fullfsync=0")
	return err
}

type beginner interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}

func write(ctx context.Context, db beginner, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// migrate applies the embedded NNN_name.sql files above PRAGMA user_version, which is have, in order.
func migrate(ctx context.Context, db *sql.DB, have int, files []string) error {
	for i, name := range files[have:] {
		number, _, _ := strings.Cut(filepath.Base(name), "_")
		if n, err := strconv.Atoi(number); err != nil || n != have+i+1 {
			return fmt.Errorf("migration %s is out of order", name)
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		err = write(ctx, db, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, string(text)); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "PRAGMA user_version="+strconv.Itoa(have+i+1))
			return err
		})
		if err != nil {
			return fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return nil
}

// Size returns how many bytes of the disk the database takes.
func (db *DB) Size() (total int64, err error) {
	for _, end := range []string{"", "-wal"} {
		info, err := os.Stat(db.file + end)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("the size of the database: %w", err)
		}
		if err == nil {
			total += info.Size()
		}
	}
	return total, nil
}

// Compact returns the unused space of the database to the disk. Writers wait for Compact, readers do not. Compact needs the space of the
// database once more while running, and an interrupted Compact has changed nothing.
//
// numbers is a query whose single text stays the same as long as the rows keep their row numbers: SQLite promises to keep the numbers
// only for tables with a numbered key. Compact reports whether the text has changed.
func (db *DB) Compact(ctx context.Context, numbers string) (renumbered bool, err error) {
	if db.w == nil {
		return false, ErrNewer
	}
	conn, err := db.w.Conn(ctx) // the only connection that writes, so nobody writes meanwhile
	if err != nil {
		return false, fmt.Errorf("compacting: %w", err)
	}
	defer conn.Close()
	var before, after string
	if err := conn.QueryRowContext(ctx, numbers).Scan(&before); err != nil {
		return false, fmt.Errorf("compacting: %w", err)
	}
	if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
		return false, fmt.Errorf("compacting: %w", err)
	}
	// The VACUUM is done: the rest must not be cancelled.
	ctx = context.WithoutCancel(ctx)
	if err := conn.QueryRowContext(ctx, numbers).Scan(&after); err != nil {
		return true, fmt.Errorf("compacting: %w", err)
	}
	var busy, log, moved int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved) // readers may hold the log, which then shrinks later
	if err != nil {
		err = fmt.Errorf("compacting: %w", err)
	}
	return before != after, err
}

// Check has SQLite check the whole database, and returns the faults. Check uses a connection of its own: a connection that has read the
// full-text index before, and sees the index changed, would report damage.
func (db *DB) Check(ctx context.Context) (faults []string, err error) {
	r, err := openReader(db.file, db.newer != nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return faultsOf(ctx, r, "20")
}

// faultsOf has SQLite check a whole database, and returns at most that many faults.
func faultsOf(ctx context.Context, r *sql.DB, most string) (faults []string, err error) {
	rows, err := r.QueryContext(ctx, "PRAGMA integrity_check("+most+")")
	if err != nil {
		return nil, fmt.Errorf("checking the database: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var fault string
		if err := rows.Scan(&fault); err != nil {
			return nil, fmt.Errorf("checking the database: %w", err)
		}
		if fault != "ok" {
			faults = append(faults, fault)
		}
	}
	return faults, rows.Err()
}
