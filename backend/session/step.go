package session

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/rulebook"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// lateness is how long a message that streams may be longer than it is stored. Its frames are in the journal before it is shown, as always;
// the entry, which is made of them, was written whole with every few words, of a message of 200 kB 25 MB a second.
const lateness = 500 * time.Millisecond

// late are the entries of the running turn whose text is longer than it is stored, by their ids. None of them changes any more: what
// grows on is another. Who reads stored entries puts them in (over); after a crash the turn is folded anew from its journal (recover).
type late map[string]*transcript.Entry

// spare gives what a step has to store of the entries that it changed, and what is late after it.
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

// spared is told what is late once the step is written, before anybody hears of it.
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
			v.post(func() { v.overdue = v.lateTimer == timer }) // else it was stopped too late
		})
		v.lateTimer = timer
	}
}

// adds tells that a step does nothing but go on with what its frames say, and with the session's record: agents tell of what they use between
// two words.
func (s *step) adds() bool {
	rest := *s
	rest.frames, rest.row, rest.line, rest.send = nil, nil, nil, nil
	return rest.empty() && !s.sync && !s.imported && s.deletion == nil && s.closing == nil
}

// over puts what was late when the entries were asked for in the place of what was stored, where that is less: it may have been stored since,
// and changed otherwise.
func (l late) over(stored []transcript.Entry) []transcript.Entry {
	for i := range stored {
		if e := l[stored[i].ID]; e != nil && len(e.Text) > len(stored[i].Text) && transcript.IsPrefixOf(mustJSON(&stored[i]), e) {
			stored[i] = *e
		}
	}
	return stored
}

// step is everything that one step of a conversation changes. It is written in one transaction, and only then shown and sent.
type step struct {
	frames    []journal.Frame
	row       *row // nil = unchanged
	turns     map[string]*Turn
	requests  map[string]*Request
	questions []Event        // of these, as questions; only told
	queue     []QueueItem    // added or changed
	unqueued  []string       // the ids of those that are gone
	sync      bool           // a turn ended: wait for the disk
	send      [][]byte       // for the agent, as it goes on the wire
	line      *string        // how far an agent elsewhere is; nil = unchanged
	deletion  *time.Time     // when the session was deleted; zero = it was restored
	imported  bool           // the entries are a history, of any length
	closing   *gracefulClose // of an agent that hears what is written

	ruled *rulebook.Uses // nil = the step uses no rule

	writes []func(ctx context.Context, tx *sql.Tx) error // of the features, in the step's transaction; run again when it fails
	after  []func()                                      // of the features, once the step is written and shown
}

func (s *step) empty() bool {
	return len(s.frames) == 0 && s.row == nil && len(s.turns) == 0 && len(s.requests) == 0 && len(s.queue) == 0 && len(s.unqueued) == 0 && s.line == nil && len(s.writes) == 0
}

func (s *step) save(ctx context.Context, db *store.DB, session string, entries []transcript.Change) error {
	if s.imported {
		var err error
		if entries, err = saveAhead(ctx, db, session, entries); err != nil {
			return err
		}
	}
	if journal.HasBlobs(s.frames) {
		return db.Blobs.Keep(func() error { return s.write(ctx, db, session, entries) })
	}
	return s.write(ctx, db, session, entries)
}

func (s *step) write(ctx context.Context, db *store.DB, session string, entries []transcript.Change) error {
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
		if err := saveEntries(ctx, tx, session, entries); err != nil {
			return err
		}
		if err := errors.Join(saveTurns(ctx, tx, maps.Values(s.turns)), saveRequests(ctx, tx, maps.Values(s.requests)), saveQueue(ctx, tx, s.queue, s.unqueued),
			saveLine(ctx, tx, session, s.line)); err != nil {
			return err
		}
		return s.runWrites(ctx, tx)
	})
}

// saveDeletion writes down when the session was deleted, or that it is no longer.
func (s *step) saveDeletion(ctx context.Context, tx *sql.Tx, session string) error {
	if s.deletion == nil {
		return nil
	}
	at := int64(0)
	if !s.deletion.IsZero() {
		at = millis(*s.deletion)
	}
	_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = ? WHERE id = ?`, at, session)
	return err
}

// saveAhead stores most of a history before the step that ends its import, and gives what is left for that step. Should the program end
// in between, dropHalfImported takes it away again.
func saveAhead(ctx context.Context, db *store.DB, session string, entries []transcript.Change) ([]transcript.Change, error) {
	ahead := max(0, len(entries)-1) / savedAtOnce * savedAtOnce
	return entries[ahead:], inPieces(ctx, db, entries[:ahead], func(tx *sql.Tx, part []transcript.Change) error { return saveEntries(ctx, tx, session, part) })
}

// inPieces stores rows in transactions of savedAtOnce.
func inPieces[T any](ctx context.Context, db *store.DB, rows []T, save func(*sql.Tx, []T) error) error {
	for part := range slices.Chunk(rows, savedAtOnce) {
		if err := db.Write(ctx, func(tx *sql.Tx) error { return save(tx, part) }); err != nil {
			return err
		}
	}
	return nil
}

// savedAtOnce is how many rows of a long history are stored in one transaction: others want to write as well.
const savedAtOnce = 500

func (s *step) runWrites(ctx context.Context, tx *sql.Tx) error {
	for _, f := range s.writes {
		if err := f(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
