package session

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"deskhand/backend/lifecycle"
)

// Deleting a session takes it out of everything that is shown at once: for everybody but Restore it is not there. It is kept for a
// moment, so that the deletion can be undone; then what is stored of it is erased, in small pieces, since conversations wait for the
// same database. Neither the end of the program nor a crash changes that: who is started next erases what is due, and waits for the rest.

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
	if v.state.Deleted {
		return
	}
	at, quiet := v.row.UpdatedAt, v.turn == nil
	v.do(lifecycle.Delete{})
	if quiet {
		v.row.UpdatedAt = at // nothing has happened in it: restored, it stands where it stood
	}
}

// deletion is what a conversation knows of its own deletion.
type deletion struct {
	at    time.Time // zero while it is not deleted
	timer *time.Timer
	over  bool // nothing can bring it back
}

// withDeletion is what is shown of a step that makes or finds the session deleted, or restores it. Of a deleted one only its end is.
func (v *conversation) withDeletion(events []Event) []Event {
	v.deleted.Store(v.state.Deleted)
	switch {
	case !v.state.Deleted:
		return events
	case v.step.deletion == nil:
		return nil // it has followed its directory
	}
	events = slices.DeleteFunc(events, func(e Event) bool { return e.Type == eventSession })
	return append(events, Event{Session: v.id, Type: eventRemoved, Data: mustJSON(Removed{v.id})})
}

func (v *conversation) deletionEffect(e lifecycle.DeletionEvent) {
	switch e.(type) {
	case lifecycle.SessionDeleted:
		v.deletion.at = time.Now()
		v.awaitErasure()
	case lifecycle.SessionRestored:
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
	if !v.state.Deleted {
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

// markErased says that a session was deleted long ago: what is half erased, or half made, is never shown or restored, and the next start
// erases what is left of it.
func markErased(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = 1 WHERE id = ?`, id)
	return err
}
