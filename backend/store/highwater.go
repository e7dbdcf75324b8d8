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

// highWaterFile is beside the database, and says how far that was.
const highWaterFile = "high-water.json"

// HighWater is how far a database was when that was last written beside it.
type HighWater struct {
	Database string    `json:"database"`
	Step     int64     `json:"step"`
	Sessions int       `json:"sessions"`
	At       time.Time `json:"at"`
}

// How a database is not the one that was in its directory.
const (
	LostMissing = "missing" // there is none
	LostEmpty   = "empty"   // its file has no bytes
	LostOlder   = "older"   // it lacks what was written to the disk
	LostOther   = "other"   // it is another one
)

// LostError is the error of Open for a directory whose database is not the one that was there. Nothing has been changed; Accept takes the
// directory as it is.
type LostError struct {
	Dir  string
	Kind string
	Was  HighWater // zero where nobody left word
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

// Corrupt tells that an error of the database means damage of its file: pages that are not what they were, or tables that every database of
// ours has and this one does not.
func Corrupt(err error) bool {
	if errors.Is(err, ErrNewer) {
		return false
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

// lost looks for a database that is missing or empty where there was one, before anything is made in its place: SQLite would throw away the
// log beside it.
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

// evidence tells that there was a database, where no version has said how far it was. What would undo a transaction is none: a first start that
// was killed leaves it beside a file without a byte.
func evidence(dir string) bool {
	if log, err := os.Stat(filepath.Join(dir, databaseName+logEnd)); err == nil && log.Size() > 0 {
		return true
	}
	if blobs, err := os.ReadDir(filepath.Join(dir, "blobs")); err == nil && len(blobs) > 0 {
		return true
	}
	return signature(filepath.Join(dir, byFile)) != ""
}

// highWater reads what was written beside the database. What cannot be read says nothing: it is written anew.
func highWater(dir string) (was HighWater, told bool) {
	data, err := os.ReadFile(filepath.Join(dir, highWaterFile))
	return was, err == nil && json.Unmarshal(data, &was) == nil && was.Database != ""
}

// level keeps the word beside the database.
type level struct {
	ctx context.Context //nolint:containedctx // of the last word, at the end of the database

	mu      sync.Mutex // protects the fields below
	written time.Time  // when it was written last
	dirty   bool       // something was written to the database since
}

// touch tells that something was written.
func (l *level) touch() {
	l.mu.Lock()
	l.dirty = true
	l.mu.Unlock()
}

// levelEvery is how often it is written while work goes on.
const levelEvery = time.Minute

// compareLevel is an error where the database is not as far as it was, and leaves word where there is none yet.
func (db *DB) compareLevel(ctx context.Context) error {
	dir := filepath.Dir(db.file)
	var now HighWater
	if err := db.r.QueryRowContext(ctx, `SELECT database, step FROM high_water`).Scan(&now.Database, &now.Step); err != nil {
		return fmt.Errorf("how far the database is cannot be told: %w", err)
	}
	was, told := highWater(dir)
	switch {
	case told && was.Database != now.Database:
		return &LostError{Dir: dir, Kind: LostOther, Was: was}
	case told && was.Step > now.Step:
		return &LostError{Dir: dir, Kind: LostOlder, Was: was}
	case !told: // the disk must have what a migration has just made before a file speaks of it
		_ = db.WriteSync(ctx, func(*sql.Tx) error { return nil }) // a full disk is told where something is lost by it
	}
	return nil
}

// olderLevel is compareLevel for a database of before there was the word in it: migrating it would hide that it is the older one.
func olderLevel(dir string, schema int) error {
	const since = 21
	if was, told := highWater(dir); told && schema < since {
		return &LostError{Dir: dir, Kind: LostOlder, Was: was}
	}
	return nil
}

// raise counts a step within a transaction that the disk is waited for.
func (db *DB) raise(ctx context.Context, tx *sql.Tx) (now HighWater, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE high_water SET step = step + 1 RETURNING database, step`).Scan(&now.Database, &now.Step)
	return now, err
}

// raised leaves word of a step once the disk has it, now and then.
func (db *DB) raised(ctx context.Context, now HighWater) {
	db.level.mu.Lock()
	due := time.Since(db.level.written) >= levelEvery
	db.level.dirty = true
	db.level.mu.Unlock()
	if due {
		db.leaveLevel(ctx, now)
	}
}

// leaveLevel writes the file. Where it cannot, on a full disk, the word of before stands, which asks for less.
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

// endLevel leaves word at a clean end, if anything was written since the last one.
func (db *DB) endLevel() {
	db.level.mu.Lock()
	dirty := db.level.dirty
	db.level.written = time.Time{} // it is due
	db.level.mu.Unlock()
	if dirty {
		_ = db.WriteSync(db.level.ctx, func(*sql.Tx) error { return nil }) // as leaveLevel
	}
}

// asides are what belongs to a database, and goes aside with a lost one.
func asides() []string {
	return append(Beside(), databaseName, highWaterFile, byFile, "blobs", "snapshots")
}

// Accept takes a directory as it is whose database is not the one that was there: who opens it next makes an empty one where it is missing,
// and goes on with an older one. What was beside a missing one is put aside into a directory, whose name is given. The caller has the
// directory for itself.
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
