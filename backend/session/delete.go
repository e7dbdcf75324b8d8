package session

import (
	"context"
	"database/sql"
	"errors"
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

// Delete deletes a session: a turn that runs is cancelled, and its agent ends. Deleting it again changes nothing.
func (c *Client) Delete(ctx context.Context, id string) error {
	v, err := c.any(ctx, id)
	if err == nil {
		err = v.reach(ctx, func() error { v.delete(); return nil })
	}
	if errors.Is(err, ErrNotFound) && c.erasing.knows(id) {
		return nil
	}
	return err
}

// Erase deletes a session for good, and returns when nothing of it is stored any more. An agent that offers to forget it is told so.
func (c *Client) Erase(ctx context.Context, id string) error {
	if err := c.Delete(ctx, id); err != nil {
		return err
	}
	for {
		if done := c.erasing.done(id); done != nil {
			select {
			case <-done:
				return nil
			case <-c.ctx.Done():
				return ErrClosed
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		// In a step of its own: what the deletion itself writes must be written before it is erased.
		v, err := c.any(ctx, id)
		if err == nil {
			err = v.reach(ctx, func() error { v.delete(); return nil })
		}
		if err == nil {
			err = v.reach(ctx, func() error { v.erase(); return nil })
		}
		if err != nil && !c.erasing.knows(id) {
			return err
		}
	}
}

const refusedUsed = "session.used" // a person has done something in it

// EraseUnused is Erase for a session that was made for somebody who wants it no more, unless anybody has begun something in it: written
// or attached, queued or sent. Then it is refused. Nobody could have undone that deletion, for nobody has asked for it.
func (c *Client) EraseUnused(ctx context.Context, id string) error {
	v, err := c.any(ctx, id)
	if err != nil {
		return err
	}
	err = v.reach(ctx, func() error {
		used, err := v.used(ctx)
		switch {
		case err != nil:
			return err
		case used:
			return &RefusedError{Code: refusedUsed}
		}
		v.delete()
		return nil
	})
	if err != nil {
		return err
	}
	return c.Erase(ctx, id)
}

func (v *conversation) used(ctx context.Context) (used bool, err error) {
	if s := v.look(); s.Turn != nil || s.Queue > 0 || s.Draft != "" || len(s.Attachments) > 0 {
		return true, nil
	}
	err = v.c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM turn WHERE session = ?)`, v.id).Scan(&used)
	return used, err
}

// Restore takes a deletion back. The agent does not start by it; what waited in the queue is held.
func (c *Client) Restore(ctx context.Context, id string) (Session, error) {
	v, err := c.any(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if err := v.reach(ctx, func() error { v.do(doUndelete{}); return nil }); err != nil {
		return Session{}, err
	}
	return c.show(row{Session: v.look()}), nil
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
	v.c.mu.Lock()
	defer v.c.mu.Unlock()
	v.c.erasing.add(v.id)
	delete(v.c.live, v.id)
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

// eraseAll erases what waits to be, until the client is closed. What is left then, the next start erases.
func (c *Client) eraseAll() {
	for {
		id := c.erasing.first()
		if id == "" {
			select {
			case <-c.erasing.more:
				continue
			case <-c.ctx.Done():
				return
			}
		}
		err := c.eraseRows(c.ctx, id)
		if c.ctx.Err() != nil {
			return
		}
		if err == nil {
			c.erasing.erased()
			c.maintainer.Tidy() // blobs that only this session had
			continue
		}
		c.cfg.Logger.Error("a deleted session cannot be erased", "session", id, "error", err)
		select {
		case <-time.After(eraseAgain):
		case <-c.ctx.Done():
			return
		}
	}
}

const (
	eraseAgain   = 10 * time.Second
	eraseEntries = 50 // at a time: they are longer than frames
)

// markErased says that a session was deleted long ago: what is half erased, or half made, is never shown or restored, and the next start
// erases what is left of it.
func markErased(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = 1 WHERE id = ?`, id)
	return err
}

// eraseRows erases what is stored of a session. Its own row goes last: as long as it is there, a start finds what is left.
func (c *Client) eraseRows(ctx context.Context, id string) error {
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { return markErased(ctx, tx, id) })
	if err != nil {
		return err
	}
	if err := c.journal.Erase(ctx, id); err != nil {
		return err
	}
	for more := true; more; {
		err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { // and of the index, by a trigger
			result, err := tx.ExecContext(ctx, `DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE session = ?1 LIMIT ?2)`, id, eraseEntries)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			more = n > 0
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		err := keepStray(ctx, tx, id)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM session WHERE id = ?`, id) // and of every table, by its foreign key
		}
		return err
	})
}

// recoverDeleted takes up what was deleted before the program ended: what is due is erased, the rest can still be undone.
func (c *Client) recoverDeleted(ctx context.Context) error {
	type deleted struct {
		id string
		at time.Time
	}
	list, err := query(ctx, c.cfg.Store.Read(), func(s scanner) (d deleted, err error) {
		var at int64
		err = s.Scan(&d.id, &at)
		d.at = fromMillis(at).Time
		return d, err
	}, `SELECT id, deleted_at FROM session WHERE deleted_at <> 0`)
	if err != nil {
		return err
	}
	for _, d := range list {
		if time.Since(d.at) >= c.undoTime() {
			c.erasing.add(d.id)
			continue
		}
		r, last, err := c.load(ctx, d.id, true)
		if err != nil {
			return err
		}
		r.deletedAt = d.at
		v, err := c.enliven(r, last)
		if err != nil {
			return err
		}
		if err := v.reach(ctx, func() error { v.awaitErasure(); return nil }); err != nil {
			return err
		}
	}
	return nil
}
