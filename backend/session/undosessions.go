package session

import (
	"context"

	"deskhand/backend/entries"
	"deskhand/backend/feed"
	"deskhand/backend/undo"
)

// undoSessions provides package undo with the sessions.
type undoSessions struct{ *Client }

// find returns a session that is not deleted. A session that is not loaded is read from the database, and stays unloaded.
func (c undoSessions) find(ctx context.Context, id string) (undo.Session, error) {
	c.mu.Lock()
	v := c.live[id]
	c.mu.Unlock()
	if v == nil {
		r, _, err := c.load(ctx, id, false)
		return undoSession(&r.Session), err
	}
	if v.deleted.Load() {
		return undo.Session{}, notFound(id)
	}
	s := v.look()
	return undoSession(&s), nil
}

// running returns the sessions whose turn runs.
func (c undoSessions) running() (list []undo.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.live {
		if s := v.look(); s.Turn != nil {
			list = append(list, undoSession(&s))
		}
	}
	return list
}

// publish publishes an ended turn with its changes. A loaded conversation publishes the turn between two of its steps: the step that ends the turn
// is stored before the events of the step are published, and a reader who waits for the end of a turn must have seen all entries by then.
func (c undoSessions) publish(ctx context.Context, turn string) error {
	t, err := c.ended(ctx, turn)
	if t == nil {
		return err
	}
	c.mu.Lock()
	v := c.live[t.Session]
	c.mu.Unlock()
	if v == nil {
		c.publishTurn(t)
		return nil
	}
	c.background.Start(func() {
		v.post(func() {
			now, err := c.ended(c.ctx, turn)
			if err != nil {
				c.cfg.Logger.Error("the changes of a turn cannot be read", "session", v.id, "error", err)
			}
			if now != nil {
				c.publishTurn(now)
			}
		})
	})
	return nil
}

// ended returns a turn, or nil when the turn has not ended or its session is deleted.
func (c undoSessions) ended(ctx context.Context, turn string) (*entries.Turn, error) {
	t, err := c.entries.DoneTurn(ctx, turn)
	if t == nil {
		return nil, err
	}
	var is bool
	err = c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM session WHERE id = ? AND deleted_at = 0)`, t.Session).Scan(&is)
	if err != nil || !is {
		return nil, err
	}
	return t, nil
}

func (c undoSessions) publishTurn(t *entries.Turn) {
	c.feed.Publish(feed.Event{Session: t.Session, Type: eventTurn, Data: mustJSON(t)})
}
