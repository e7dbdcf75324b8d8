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

func (d *deletion) used(ctx context.Context) (used bool, err error) {
	if s := d.v.look(); s.Turn != nil || s.Queue > 0 || s.Draft != "" || len(s.Attachments) > 0 {
		return true, nil
	}
	err = d.v.c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM turn WHERE session = ?)`, d.v.id).Scan(&used)
	return used, err
}

func notFound(id string) error { return fmt.Errorf("session %s: %w", id, ErrNotFound) }

func (d *deletion) begin() {
	if d.v.state.Deleted {
		return
	}
	at, quiet := d.v.row.UpdatedAt, d.v.turn == nil
	d.v.do(lifecycle.Delete{})
	if quiet {
		d.v.row.UpdatedAt = at // nothing has happened in it: restored, it stands where it stood
	}
}

// deletion is what a conversation knows of its own deletion.
type deletion struct {
	v *conversation

	at    time.Time // zero while it is not deleted
	timer *time.Timer
	over  bool // nothing can bring it back
}

// events is what is shown of a step that makes or finds the session deleted, or restores it. Of a deleted one only its end is.
func (d *deletion) events(events []Event) []Event {
	d.v.deleted.Store(d.v.state.Deleted)
	switch {
	case !d.v.state.Deleted:
		return events
	case d.v.step.deletion == nil:
		return nil // it has followed its directory
	}
	events = slices.DeleteFunc(events, func(e Event) bool { return e.Type == eventSession })
	return append(events, Event{Session: d.v.id, Type: eventRemoved, Data: mustJSON(Removed{d.v.id})})
}

func (d *deletion) effect(e lifecycle.DeletionEvent) {
	switch e.(type) {
	case lifecycle.SessionDeleted:
		d.at = time.Now()
		d.await()
	case lifecycle.SessionRestored:
		d.timer.Stop()
		d.at, d.timer, d.over = time.Time{}, nil, false
		d.v.release(false)
	}
	at := d.at
	d.v.step.deletion = &at
	d.v.saveRow()
}

// await lets the time run in which a deletion can be undone. A clock that was put back makes it no longer.
func (d *deletion) await() {
	undo := d.v.c.undoTime()
	var timer *time.Timer
	timer = time.AfterFunc(min(time.Until(d.at.Add(undo)), undo), func() {
		d.v.post(func() {
			if d.timer == timer { // else it was restored in the same moment
				d.erase()
			}
		})
	})
	d.timer = timer
}

// erase hands the session over to who erases it; nothing is written about it after that.
func (d *deletion) erase() {
	if !d.v.state.Deleted {
		return // it was restored in between
	}
	d.timer.Stop()
	d.over = true
	d.v.release(!d.isHadAgain())
	d.v.c.shells.EndOf(d.v.id)
	d.v.c.retire(d.v.id)
}

// isHadAgain reports whether another session goes on with the agent's conversation of this one, or still may: it was imported since.
func (d *deletion) isHadAgain() (is bool) {
	err := d.v.c.cfg.Store.Read().QueryRowContext(d.v.c.ctx, `SELECT EXISTS (SELECT 1 FROM session
		WHERE agent = ? AND place = ? AND acp_session_id = ? AND id <> ? AND (deleted_at = 0 OR deleted_at > ?))`,
		d.v.row.Agent, d.v.row.Place, d.v.row.ACPSessionID, d.v.id, time.Now().Add(-d.v.c.undoTime()).UnixMilli()).Scan(&is)
	return is || err != nil // what an agent keeps too long is lost to nobody
}

// markErased says that a session was deleted long ago: what is half erased, or half made, is never shown or restored, and the next start
// erases what is left of it.
func markErased(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = 1 WHERE id = ?`, id)
	return err
}
