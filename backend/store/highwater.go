package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// highWaterFile is the file beside the database that says how far the database was.
const highWaterFile = "high-water.json"

// HighWater says how far a database was when the file beside the database was last written.
type HighWater struct {
	Database string    `json:"database"`
	Step     int64     `json:"step"`
	Sessions int       `json:"sessions"`
	At       time.Time `json:"at"`
}

// The ways in which a database is not the database that was in its directory.
const (
	LostMissing = "missing" // there is no database
	LostEmpty   = "empty"   // its file has no bytes
	LostOlder   = "older"   // the database lacks steps that were on the disk
	LostOther   = "other"   // the file is another database
)

// LostError is the error of Open for a directory whose database is not the database that was there. Nothing has been changed; Accept
// takes the directory as it is.
type LostError struct {
	Dir  string
	Kind string
	Was  HighWater // zero when no file beside the database says how far it was
}

func (e *LostError) Error() string {
	text := map[string]string{
		LostMissing: "the database in %s is missing, and what lies beside it shows that there was one",
		LostEmpty:   "the database in %s is empty (0 bytes), and what lies beside it shows that it was not",
		LostOlder:   "the database in %s is older than the one that was there",
		LostOther:   "the database in %s is not the one that was there",
	}[e.Kind]
	text = fmt.Sprintf(text, e.Dir)
	if !e.Was.At.IsZero() {
		text += fmt.Sprintf(": on %s it had %d conversations", e.Was.At.Local().Format("2 January 2006 15:04"), e.Was.Sessions)
	}
	text += ". Nothing was changed.\nPut the right deskhand.db back, from a backup for example, and start again; or `deskhand data accept` "
	if e.Kind == LostMissing || e.Kind == LostEmpty {
		return text + "begins with an empty database, and puts aside what was beside the lost one.\n" +
			"`deskhand verify --salvage NEWDIR` reads what a log beside it may still have"
	}
	return text + "goes on with the one that is there; files of messages that it does not know are removed then"
}

// DamagedError is the error of Open for a database that SQLite cannot read.
type DamagedError struct {
	Dir string
	Err error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the database in %s is damaged: %s.\nNothing was deleted. `deskhand verify --salvage NEWDIR` reads all that can be read into a new directory", e.Dir, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// ErrRecord is the error for a record of the database that is not what was stored.
var ErrRecord = errors.New("a record is damaged")

// Corrupt reports whether an error of the database means that its file is damaged: pages or records have changed, or a table is missing that
// every database of Deskhand has.
func Corrupt(err error) bool {
	if errors.Is(err, ErrNewer) {
		return false
	}
	if errors.Is(err, ErrRecord) {
		return true
	}
	failure, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	return failure.Code() == sqlite3.SQLITE_IOERR_SHORT_READ || Lacks(err)
}

// lost returns an error for a database that is missing or empty although there was a database. lost must run before the file is created,
// because SQLite would then throw away the log beside it.
func lost(dir string) error {
	kind := LostEmpty
	info, err := os.Stat(filepath.Join(dir, databaseName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = LostMissing
	case err != nil:
		return fmt.Errorf("opening the database: %w", err)
	case info.Size() > 0:
		return nil
	}
	was, told := highWater(dir)
	if !told && !evidence(dir) {
		return nil
	}
	return &LostError{Dir: dir, Kind: kind, Was: was}
}

// evidence reports whether there was a database in dir although no version has noted how far it was. A rollback journal is no evidence: a
// first start that was killed leaves a journal beside an empty file.
func evidence(dir string) bool {
	if log, err := os.Stat(filepath.Join(dir, databaseName+logEnd)); err == nil && log.Size() > 0 {
		return true
	}
	if blobs, err := os.ReadDir(filepath.Join(dir, "blobs")); err == nil && len(blobs) > 0 {
		return true
	}
	return signature(filepath.Join(dir, byFile)) != ""
}

// highWater reads the file beside the database. told is false for an unreadable file, which the next write replaces.
func highWater(dir string) (was HighWater, told bool) {
	data, err := os.ReadFile(filepath.Join(dir, highWaterFile))
	return was, err == nil && json.Unmarshal(data, &was) == nil && was.Database != ""
}

// level is the state of the file beside the database.
type level struct {
	ctx context.Context //nolint:containedctx // for the last write, when the database is closed

	mu      sync.Mutex // protects the fields below
	written time.Time  // when the file was last written
	dirty   bool       // the database was written since
}

// touch notes that the database was written.
func (l *level) touch() {
	l.mu.Lock()
	l.dirty = true
	l.mu.Unlock()
}

// levelEvery is how often the file is written while the database is in use.
const levelEvery = time.Minute

// compareLevel returns an error unless the database is at least as far as the file beside it says, and writes the file when there is none
// yet.
func (db *DB) compareLevel(ctx context.Context) error {
	now, err := levelOf(ctx, db.r)
	if err != nil {
		return err
	}
	dir := filepath.Dir(db.file)
	was, told := highWater(dir)
	switch {
	case !told: // the disk must have the migrations before a file depends on them
		_ = db.WriteSync(ctx, func(*sql.Tx) error { return nil }) // a full disk is reported where data would be lost
	case was.Database != now.Database:
		return &LostError{Dir: dir, Kind: LostOther, Was: was}
	case was.Step > now.Step:
		return &LostError{Dir: dir, Kind: LostOlder, Was: was}
	}
	return nil
}

// levelOf returns how far an open database is.
func levelOf(ctx context.Context, r *sql.DB) (now HighWater, err error) {
	if err := r.QueryRowContext(ctx, `SELECT database, step FROM high_water`).Scan(&now.Database, &now.Step); err != nil {
		return now, fmt.Errorf("how far the database is cannot be told: %w", err)
	}
	return now, nil
}

// schemaOfLevel is the first schema whose database counts its steps.
const schemaOfLevel = 21

// olderLevel compares as compareLevel does, for a database whose schema has no step yet: a migration would hide that the database is
// older than its directory.
func olderLevel(dir string, schema int) error {
	if was, told := highWater(dir); told && schema < schemaOfLevel {
		return &LostError{Dir: dir, Kind: LostOlder, Was: was}
	}
	return nil
}

// raise counts a step within a transaction that is synced to the disk.
func (db *DB) raise(ctx context.Context, tx *sql.Tx) (now HighWater, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE high_water SET step = step + 1 RETURNING database, step`).Scan(&now.Database, &now.Step)
	return now, err
}

// raised writes the file beside the database for a step that is on the disk, when levelEvery has passed since the last write.
func (db *DB) raised(ctx context.Context, now HighWater) {
	db.level.mu.Lock()
	due := time.Since(db.level.written) >= levelEvery
	db.level.dirty = true
	db.level.mu.Unlock()
	if due {
		db.leaveLevel(ctx, now)
	}
}

// leaveLevel writes the file beside the database. When the write fails, as on a full disk, the old file stays, which demands less.
func (db *DB) leaveLevel(ctx context.Context, now HighWater) {
	ctx = context.WithoutCancel(ctx)
	if db.r.QueryRowContext(ctx, `SELECT count(*) FROM session WHERE deleted_at = 0`).Scan(&now.Sessions) != nil {
		return
	}
	now.At = time.Now()
	data, err := json.Marshal(now)
	if err != nil || WriteFile(filepath.Join(filepath.Dir(db.file), highWaterFile), append(data, '\n'), 0o600) != nil {
		return
	}
	db.level.mu.Lock()
	db.level.written, db.level.dirty = now.At, false
	db.level.mu.Unlock()
}

// endLevel writes the file when the database is closed, if the database was written since the last time.
func (db *DB) endLevel() {
	db.level.mu.Lock()
	dirty := db.level.dirty
	db.level.written = time.Time{} // makes the write due
	db.level.mu.Unlock()
	if dirty {
		_ = db.WriteSync(db.level.ctx, func(*sql.Tx) error { return nil }) // the error is ignored as in leaveLevel
	}
}

// asides returns the names of the files that belong to a database, and that Accept puts aside with a lost database.
func asides() []string {
	return append(Beside(), databaseName, highWaterFile, byFile, "blobs", "snapshots")
}

// Accept accepts a directory whose database is not the database that was there: the next Open makes an empty database when the database
// is missing, and goes on with an older database. The files beside a missing database are moved into a new directory, whose name Accept
// returns. The caller must hold the directory's lock.
func Accept(dir string) (aside string, err error) {
	gone := lost(dir)
	if gone == nil {
		return "", Remove(filepath.Join(dir, highWaterFile))
	}
	if _, is := errors.AsType[*LostError](gone); !is {
		return "", gone
	}
	aside, err = os.MkdirTemp(dir, "lost-"+time.Now().Format("2006-01-02")+"-")
	if err != nil {
		return "", err
	}
	for _, name := range asides() {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(aside, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, err
		}
	}
	return aside, syncDir(dir)
}
