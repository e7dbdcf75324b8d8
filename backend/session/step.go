package session

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"deskhand/backend/entries"
	"deskhand/backend/feed"
	"deskhand/backend/journal"
	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// lateness is how long the storing of an entry may lag behind its text while a message streams. The frames are in the journal before the
// text is shown, as always; but storing the whole entry at every few words would write 25 MB a second for a message of 200 kB.
const lateness = 500 * time.Millisecond

// late holds the entries of the running turn whose text is longer than the stored text, by id. The entries are immutable: growth makes a
// new Entry. Readers of stored entries replace them by these (over); after a crash the turn is folded anew from its journal (recover).
type late map[string]*transcript.Entry

// spare returns the entries that the step has to store, and the entries whose storing is deferred after the step.
func (v *conversation) spare(entries []transcript.Change) ([]transcript.Change, late) {
	was := v.late.Load()
	if v.turn != nil && !v.overdue && v.step.adds() && !slices.ContainsFunc(entries, func(c transcript.Change) bool { return !c.Grew() }) {
		now := late{}
		maps.Copy(now, *was)
		for _, c := range entries {
			now[c.Entry.ID] = c.Entry
		}
		return nil, now
	}
	for _, e := range *was {
		if !slices.ContainsFunc(entries, func(c transcript.Change) bool { return c.Entry.ID == e.ID }) {
			entries = append(entries, transcript.Change{Entry: e})
		}
	}
	return entries, nil
}

// spared records the deferred entries of a stored step, before its events are published, and starts or stops the timer.
func (v *conversation) spared(now late) {
	v.overdue = false
	v.late.Store(&now)
	switch {
	case len(now) == 0 && v.lateTimer != nil:
		v.lateTimer.Stop()
		v.lateTimer = nil
	case len(now) > 0 && v.lateTimer == nil:
		var timer *time.Timer
		timer = time.AfterFunc(lateness, func() {
			v.post(func() { v.overdue = v.lateTimer == timer }) // otherwise the timer was stopped while it fired
		})
		v.lateTimer = timer
	}
}

// adds reports whether a step only adds frames and changes the session's row. Agents report their usage between two words, so the row may
// change in a streaming message.
func (s *step) adds() bool {
	rest := *s
	rest.frames, rest.row, rest.line, rest.send = nil, nil, nil, nil
	return rest.empty() && !s.sync && !s.imported && s.deletion == nil && s.closing == nil
}

// over replaces stored entries by the deferred entries of the moment before the query, wherever the deferred text continues the stored
// text. An entry may have been stored since, and changed otherwise.
func (l late) over(stored []transcript.Entry) []transcript.Entry {
	for i := range stored {
		if e := l[stored[i].ID]; e != nil && len(e.Text) > len(stored[i].Text) && transcript.IsPrefixOf(mustJSON(&stored[i]), e) {
			stored[i] = *e
		}
	}
	return stored
}

// step holds all changes of one function that ran in a conversation. The changes are stored in one transaction, and only then published and
// sent.
type step struct {
	frames    []journal.Frame
	row       *row // nil = unchanged
	turns     map[string]*Turn
	requests  map[string]*requests.Request
	questions []feed.Event   // question events of requests, which are only published
	queue     []QueueItem    // items that were added or changed
	unqueued  []string       // ids of items that left the queue
	sync      bool           // wait until the disk has the step, as at the end of a turn
	send      [][]byte       // messages for the agent, in the form of the wire
	line      *string        // progress of a remote agent; nil = unchanged
	deletion  *time.Time     // when the session was deleted; the zero time = it was restored
	imported  bool           // the entries are an imported history of any length
	closing   *gracefulClose // the graceful close that waits for this step

	ruled *rulebook.Uses // nil = the step uses no rule

	writes []func(ctx context.Context, tx *sql.Tx) error // of the features, run in the step's transaction; run again when the transaction fails
	after  []func()                                      // of the features, run once the step is stored and published
}

func (s *step) empty() bool {
	return len(s.frames) == 0 && s.row == nil && len(s.turns) == 0 && len(s.requests) == 0 && len(s.queue) == 0 && len(s.unqueued) == 0 && s.line == nil && len(s.writes) == 0
}

// save stores the step and the entries. An imported history is stored in pieces, most of it before the step.
func (s *step) save(ctx context.Context, db *store.DB, session string, changes []transcript.Change) error {
	if s.imported {
		var err error
		if changes, err = saveAhead(ctx, db, session, changes); err != nil {
			return err
		}
	}
	if journal.HasBlobs(s.frames) {
		return db.Blobs.Keep(func() error { return s.write(ctx, db, session, changes) })
	}
	return s.write(ctx, db, session, changes)
}

// write stores the step and the entries in one transaction.
func (s *step) write(ctx context.Context, db *store.DB, session string, changes []transcript.Change) error {
	frames, err := journal.Of(db).Encode(s.frames)
	if err != nil {
		return err
	}
	write := db.Write
	if s.sync {
		write = db.WriteSync
	}
	return write(ctx, func(tx *sql.Tx) error {
		if s.row != nil {
			if err := s.row.save(ctx, tx); err != nil {
				return err
			}
		}
		if err := s.saveDeletion(ctx, tx, session); err != nil {
			return err
		}
		if err := journal.Append(ctx, tx, session, frames); err != nil {
			return err
		}
		if err := entries.Save(ctx, tx, session, changes); err != nil {
			return err
		}
		if err := errors.Join(saveTurns(ctx, tx, maps.Values(s.turns)), requests.Save(ctx, tx, maps.Values(s.requests)), saveQueue(ctx, tx, s.queue, s.unqueued),
			saveLine(ctx, tx, session, s.line)); err != nil {
			return err
		}
		return s.runWrites(ctx, tx)
	})
}

// saveDeletion stores when the session was deleted, or that it was restored.
func (s *step) saveDeletion(ctx context.Context, tx *sql.Tx, session string) error {
	if s.deletion == nil {
		return nil
	}
	at := int64(0)
	if !s.deletion.IsZero() {
		at = s.deletion.UnixMilli()
	}
	_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = ? WHERE id = ?`, at, session)
	return err
}

// saveAhead stores most of a history before the step that ends its import, and returns the entries left for that step. When the program
// ends in between, dropHalfImported removes the stored part.
func saveAhead(ctx context.Context, db *store.DB, session string, changes []transcript.Change) ([]transcript.Change, error) {
	ahead := max(0, len(changes)-1) / savedAtOnce * savedAtOnce
	return changes[ahead:], inPieces(ctx, db, changes[:ahead], func(tx *sql.Tx, part []transcript.Change) error { return entries.Save(ctx, tx, session, part) })
}

// inPieces stores rows in transactions of savedAtOnce rows.
func inPieces[T any](ctx context.Context, db *store.DB, rows []T, save func(*sql.Tx, []T) error) error {
	for part := range slices.Chunk(rows, savedAtOnce) {
		if err := db.Write(ctx, func(tx *sql.Tx) error { return save(tx, part) }); err != nil {
			return err
		}
	}
	return nil
}

// savedAtOnce is how many rows of a long history are stored in one transaction, so that other writers wait briefly.
const savedAtOnce = 500

func (s *step) runWrites(ctx context.Context, tx *sql.Tx) error {
	for _, f := range s.writes {
		if err := f(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
