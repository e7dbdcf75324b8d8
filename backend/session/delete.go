package session

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Deleting a session takes it out of everything that is shown at once: for everybody but Restore it is not there. It is kept for a
// moment, so that the deletion can be undone; then what is stored of it is erased, in small pieces, since conversations wait for the
// same database. Neither the end of the program nor a crash changes that: who is started next erases what is due, and waits for the rest.

// undoTime is how long a deletion can be undone. The window offers it for five seconds from when it has our answer, and what a person
// presses in the last of them has to get here by a slow line too.
const undoTime = 15 * time.Second

const eventRemoved = "session.removed"

// Removed is the data of an event that tells that a session is there no more. An upsert of it brings it back.
type Removed struct {
	ID string `json:"id"`
}

func (v *conversation) used(ctx context.Context) (used bool, err error) {
	if s := v.look(); s.Turn != nil || s.Queue > 0 || s.Draft != "" || len(s.Attachments) > 0 {
		return true, nil
	}
	err = v.c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM turn WHERE session = ?)`, v.id).Scan(&used)
	return used, err
}

func notFound(id string) error { return fmt.Errorf("session %s: %w", id, ErrNotFound) }

func (v *conversation) delete() {
	if v.state.deleted {
		return
	}
	at, quiet := v.row.UpdatedAt, v.turn == nil
	v.do(doDelete{})
	if quiet {
		v.row.UpdatedAt = at // nothing has happened in it: restored, it stands where it stood
	}
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

// deletion is what a conversation knows of its own deletion.
type deletion struct {
	at    time.Time // zero while it is not deleted
	timer *time.Timer
	over  bool // nothing can bring it back
}

// withDeletion is what is shown of a step that makes or finds the session deleted, or restores it. Of a deleted one only its end is.
func (v *conversation) withDeletion(events []Event) []Event {
	v.deleted.Store(v.state.deleted)
	switch {
	case !v.state.deleted:
		return events
	case v.step.deletion == nil:
		return nil // it has followed its directory
	}
	events = slices.DeleteFunc(events, func(e Event) bool { return e.Type == eventSession })
	return append(events, Event{Session: v.id, Type: eventRemoved, Data: mustJSON(Removed{v.id})})
}

func (v *conversation) deletionEffect(e deletionEvent) {
	switch e.(type) {
	case sessionDeleted:
		v.deletion.at = time.Now()
		v.awaitErasure()
	case sessionRestored:
		v.deletion.timer.Stop()
		v.deletion = deletion{}
		v.release(false)
	}
	at := v.deletion.at
	v.step.deletion = &at
	v.saveRow()
}

// awaitErasure lets the time run in which a deletion can be undone. A clock that was put back makes it no longer.
func (v *conversation) awaitErasure() {
	undo := v.c.undoTime()
	var timer *time.Timer
	timer = time.AfterFunc(min(time.Until(v.deletion.at.Add(undo)), undo), func() {
		v.post(func() {
			if v.deletion.timer == timer { // else it was restored in the same moment
				v.erase()
			}
		})
	})
	v.deletion.timer = timer
}

// erase hands the session over to who erases it; nothing is written about it after that.
func (v *conversation) erase() {
	if !v.state.deleted {
		return // it was restored in between
	}
	v.deletion.timer.Stop()
	v.deletion.over = true
	v.release(!v.isHadAgain())
	v.c.shells.EndOf(v.id)
	v.c.retire(v.id)
}

// isHadAgain reports whether another session goes on with the agent's conversation of this one, or still may: it was imported since.
func (v *conversation) isHadAgain() (is bool) {
	err := v.c.cfg.Store.Read().QueryRowContext(v.c.ctx, `SELECT EXISTS (SELECT 1 FROM session
		WHERE agent = ? AND place = ? AND acp_session_id = ? AND id <> ? AND (deleted_at = 0 OR deleted_at > ?))`,
		v.row.Agent, v.row.Place, v.row.ACPSessionID, v.id, time.Now().Add(-v.c.undoTime()).UnixMilli()).Scan(&is)
	return is || err != nil // what an agent keeps too long is lost to nobody
}

// erasing is the sessions that are erased, or were in this run of the program: they are not made live again.
type erasing struct {
	more chan struct{} // of one: a token when something waits

	mu      sync.Mutex               // protects what is below
	known   map[string]chan struct{} // closed when it is erased
	waiting []string
}

func newErasing() *erasing {
	return &erasing{known: map[string]chan struct{}{}, more: make(chan struct{}, 1)}
}

func (e *erasing) add(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[id] = make(chan struct{})
	e.waiting = append(e.waiting, id)
	select {
	case e.more <- struct{}{}:
	default:
	}
}

func (e *erasing) knows(id string) bool { return e.done(id) != nil }

// done is closed when the session is erased; nil while nobody has said that it is to be.
func (e *erasing) done(id string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[id]
}

// first is the session to be erased next, "" when there is none.
func (e *erasing) first() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return ""
	}
	return e.waiting[0]
}

func (e *erasing) erased() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.known[e.waiting[0]])
	e.waiting = e.waiting[1:]
}

// markErased says that a session was deleted long ago: what is half erased, or half made, is never shown or restored, and the next start
// erases what is left of it.
func markErased(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = 1 WHERE id = ?`, id)
	return err
}
