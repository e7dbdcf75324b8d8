// Package search finds what was said in every conversation. It owns the query language and the full-text index of all entries, with the
// tables words and unsearched.
//
// The database itself marks each entry that is stored or changed as unsearched, in the transaction that stores the entry, so no entry is
// forgotten. Whoever stores entries calls [Index.Wake]; the goroutine of [Index.Start] then indexes the marked entries, about a second
// later, and [Index.Close] waits for that goroutine. Until then a search misses the entry, and says how many entries it may have missed.
package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// Deps are the surroundings of an Index.
type Deps struct {
	Store     *store.DB
	Logger    *slog.Logger
	AgentName func(id string) string // names the agent of a hit
}

// Index is the full-text index of a database.
type Index struct {
	deps  Deps
	woken chan struct{} // entries may wait for the index
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// New returns the index of a database. Entries are indexed between Start and Close; every other method may be called at any time.
func New(deps Deps) *Index {
	return &Index{deps: deps, woken: make(chan struct{}, 1), stop: func() {}}
}

// The indexer waits a moment, since a message that streams changes many times, and takes few entries at a time, since conversations wait
// for the database meanwhile.
const (
	indexAfter = time.Second
	indexBatch = 100
	indexBytes = 256 << 10
)

// Start begins to index, until Close. Data that a newer version has written is left as it is.
func (x *Index) Start(ctx context.Context) {
	if x.deps.Store.Newer() != nil {
		return
	}
	ctx, x.stop = context.WithCancel(context.WithoutCancel(ctx))
	x.wg.Go(func() { x.run(ctx) })
}

// Close ends the indexing, and waits for its end. Entries that are left wait in the database for the next Start.
func (x *Index) Close() {
	x.stop()
	x.wg.Wait()
}

// Wake tells the index that entries were stored. Wake does not block.
func (x *Index) Wake() {
	select {
	case x.woken <- struct{}{}:
	default:
	}
}

func (x *Index) run(ctx context.Context) {
	for {
		more, err := x.indexSome(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			x.deps.Logger.Error("entries cannot be made searchable", "error", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-x.woken:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(indexAfter):
		case <-ctx.Done():
			return
		}
	}
}

// indexSome indexes a batch of entries, and reports whether there may be more. Entries are read in the transaction that indexes them, because
// an entry may change at any time.
func (x *Index) indexSome(ctx context.Context) (more bool, err error) {
	var waiting bool
	err = x.deps.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM unsearched)`).Scan(&waiting)
	if err != nil || !waiting {
		return false, err
	}
	err = x.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		list, err := unsearched(ctx, tx)
		if err != nil {
			return err
		}
		more = len(list) > 0
		for _, e := range list {
			if err := e.index(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	return more && err == nil, err
}

type unsearchedEntry struct {
	rowid int64
	data  sql.NullString // not valid when the entry is gone
}

// unsearched returns a batch of the entries that wait for the index, the newest first.
func unsearched(ctx context.Context, tx *sql.Tx) (list []unsearchedEntry, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT u.entry, e.data FROM unsearched u LEFT JOIN entry e ON e.rowid = u.entry ORDER BY u.entry DESC LIMIT ?`, indexBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; size < indexBytes && rows.Next(); {
		var e unsearchedEntry
		if err := rows.Scan(&e.rowid, &e.data); err != nil {
			return nil, err
		}
		size += len(e.data.String)
		list = append(list, e)
	}
	return list, rows.Err()
}

func (e unsearchedEntry) index(ctx context.Context, tx *sql.Tx) error {
	_, removed := tx.ExecContext(ctx, `DELETE FROM words WHERE rowid = ?`, e.rowid)
	_, done := tx.ExecContext(ctx, `DELETE FROM unsearched WHERE entry = ?`, e.rowid)
	if err := errors.Join(removed, done); err != nil {
		return err
	}
	var entry transcript.Entry
	if e.data.Valid {
		_ = json.Unmarshal([]byte(e.data.String), &entry) // a damaged entry has no words, and must not keep all others out of the index
	}
	text := indexed(entry.SearchText())
	if text == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO words (rowid, text) VALUES (?, ?)`, e.rowid, text)
	return err
}
