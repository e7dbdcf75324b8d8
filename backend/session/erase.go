package session

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"deskhand/backend/lifecycle"
)

// eraser erases the rows of deleted sessions, in one goroutine.
type eraser struct{ *Client }

// Delete deletes a session: a running turn is cancelled, and the agent ends. Deleting a deleted session changes nothing.
func (c *Client) Delete(ctx context.Context, id string) error {
	return ofFamily(ctx, c, id, func(member string) error {
		v, err := c.any(ctx, member)
		if err == nil && member == id {
			err = v.look().Subagent.refuses(nil)
		}
		if err == nil {
			err = v.reach(ctx, func() error { v.deletion.begin(); return nil })
		}
		if errors.Is(err, ErrNotFound) && c.erasing.knows(member) {
			return nil
		}
		return err
	})
}

// Erase deletes a session for good, and returns when no row of the session is stored. An agent that offers session/delete is asked to
// forget its session.
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
		// The deletion and the erasure are two steps: the rows of the first must be stored before they are erased.
		v, err := c.any(ctx, id)
		if err == nil {
			err = v.reach(ctx, func() error { v.deletion.begin(); return nil })
		}
		if err == nil {
			err = v.reach(ctx, func() error { v.deletion.erase(); return nil })
		}
		if err != nil && !c.erasing.knows(id) {
			return err
		}
	}
}

// EraseUnused is Erase for a session that was made in advance and is not wanted. EraseUnused is refused when a person has begun something
// in the session: written or attached, queued or sent. The deletion cannot be undone, since no person asked for it.
func (c *Client) EraseUnused(ctx context.Context, id string) error {
	v, err := c.any(ctx, id)
	if err != nil {
		return err
	}
	err = v.reach(ctx, func() error {
		used, err := v.deletion.used(ctx)
		switch {
		case err != nil:
			return err
		case used:
			return &RefusedError{Code: refusedUsed}
		}
		v.deletion.begin()
		return nil
	})
	if err != nil {
		return err
	}
	return c.Erase(ctx, id)
}

// Restore undoes a deletion. The agent is not started, and the items of the queue are held.
func (c *Client) Restore(ctx context.Context, id string) (Session, error) {
	v, err := c.any(ctx, id)
	if err != nil {
		return Session{}, err
	}
	err = ofFamily(ctx, c, id, func(member string) error {
		v, err := c.any(ctx, member)
		if err == nil {
			err = v.reach(ctx, func() error { v.do(lifecycle.Undelete{}); return nil })
		}
		return err
	})
	return c.show(v.look()), err
}

const refusedUsed = "session.used" // a person has begun something in the session

// run erases waiting sessions until the client is closed. The next start of the program erases the rest.
func (c eraser) run() {
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
		err := c.erase(c.ctx, id)
		if c.ctx.Err() != nil {
			return
		}
		if err == nil {
			c.erasing.erased()
			c.maintainer.Tidy() // blobs that only this session used
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

const eraseAgain = 10 * time.Second

// erase erases the rows of a session. The session's own row goes last, so that a start finds a session that is half erased.
func (c eraser) erase(ctx context.Context, id string) error {
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { return markErased(ctx, tx, id) })
	if err != nil {
		return err
	}
	if err := c.journal.Erase(ctx, id); err != nil {
		return err
	}
	if err := c.entries.Erase(ctx, id); err != nil {
		return err
	}
	return c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		err := keepStray(ctx, tx, id)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM session WHERE id = ?`, id) // foreign keys remove the rows of all other tables
		}
		return err
	})
}

// recover handles sessions that were deleted before the program ended: sessions that are due are erased, and the others can still be
// undone.
func (c eraser) recover(ctx context.Context) error {
	type deleted struct {
		id string
		at time.Time
	}
	list, err := query(ctx, c.cfg.Store.Read(), func(s scanner) (d deleted, err error) {
		var at int64
		err = s.Scan(&d.id, &at)
		d.at = time.UnixMilli(at)
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
		if err := v.reach(ctx, func() error { v.deletion.await(); return nil }); err != nil {
			return err
		}
	}
	return nil
}
