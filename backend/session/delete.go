package session

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
)

// Deleting a session removes the session at once from everything that is shown: every call except Restore returns ErrNotFound. The session
// is kept for a moment, so that the deletion can be undone; then its stored rows are erased, in small pieces, since conversations wait for
// the same database. The next start of the program erases sessions that are due, and waits for the rest.

const eventRemoved = "session.removed"

// Removed is the data of the event that a session was deleted. An upsert of the session restores it.
type Removed struct {
	ID string `json:"id"`
}

// used reports whether a person has begun something in the session: a draft, a file, a queued prompt or a turn. Any goroutine may call
// used.
func (d *deletion) used(ctx context.Context) (used bool, err error) {
	if s := d.v.look(); s.Turn != nil || s.Queue > 0 || s.Draft != "" || len(s.Attachments) > 0 {
		return true, nil
	}
	return d.v.c.entries.HasTurn(ctx, d.v.id)
}

func notFound(id string) error { return fmt.Errorf("session %s: %w", id, ErrNotFound) }

func (d *deletion) begin() {
	if d.v.state.Deleted {
		return
	}
	at, quiet := d.v.row.UpdatedAt, d.v.turn == nil
	d.v.do(lifecycle.Delete{})
	if quiet {
		d.v.row.UpdatedAt = at // nothing has happened in the session, so that a restored session keeps its place in the list
	}
}

// deletion is the state of a session's deletion.
type deletion struct {
	v *conversation

	at    time.Time // zero while it is not deleted
	timer *time.Timer
	over  bool // the deletion can no longer be undone
}

// events returns the events to publish for a step. The step that deletes the session publishes Removed in place of the session; later steps
// of a deleted session publish nothing; the step that restores it publishes all.
func (d *deletion) events(events []feed.Event) []feed.Event {
	d.v.deleted.Store(d.v.state.Deleted)
	switch {
	case !d.v.state.Deleted:
		return events
	case d.v.step.deletion == nil:
		return nil // the session has moved with its directory
	}
	events = slices.DeleteFunc(events, func(e feed.Event) bool { return e.Type == eventSession })
	return append(events, feed.Event{Session: d.v.id, Type: eventRemoved, Data: mustJSON(Removed{d.v.id})})
}

// effect records that the session was deleted or restored.
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

// await starts the timer after which the deletion can no longer be undone. A clock that was set back does not lengthen the wait.
func (d *deletion) await() {
	undo := d.v.c.undoTime()
	var timer *time.Timer
	timer = time.AfterFunc(min(time.Until(d.at.Add(undo)), undo), func() {
		d.v.post(func() {
			if d.timer == timer { // otherwise the session was restored while the timer fired
				d.erase()
			}
		})
	})
	d.timer = timer
}

// erase hands the session to the eraser. The conversation writes nothing after that.
func (d *deletion) erase() {
	if !d.v.state.Deleted {
		return // the session was restored meanwhile
	}
	d.timer.Stop()
	d.over = true
	d.v.release(!d.isHadAgain())
	d.v.c.shells.EndOf(d.v.id)
	d.v.c.retire(d.v.id)
}

// isHadAgain reports whether another session has the same ACP session, since that conversation of the agent was imported again. Sessions
// whose deletion can be undone count.
func (d *deletion) isHadAgain() (is bool) {
	err := d.v.c.cfg.Store.Read().QueryRowContext(d.v.c.ctx, `SELECT EXISTS (SELECT 1 FROM session
		WHERE agent = ? AND place = ? AND acp_session_id = ? AND id <> ? AND (deleted_at = 0 OR deleted_at > ?))`,
		d.v.row.Agent, d.v.row.Place, d.v.row.ACPSessionID, d.v.id, time.Now().Add(-d.v.c.undoTime()).UnixMilli()).Scan(&is)
	return is || err != nil // on an error the agent keeps its session, which loses nothing
}

// markErased marks a session as deleted long ago, so that a session that is half erased or half made is never shown or restored, and the
// next start erases the rest.
func markErased(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = 1 WHERE id = ?`, id)
	return err
}
