package session

import (
	"context"

	"deskhand/backend/undo"
)

func (c *Client) openUndo() *undo.Library {
	return undo.New(undo.Deps{
		Store: c.cfg.Store, Logger: c.cfg.Logger, Snapshots: c.cfg.Snapshots, Host: c.hosts.At, Writable: c.writable,
		Enabled: func() bool { return c.cfg.Settings.Get().Snapshots }, Publish: c.publishTurn, Running: c.withTurns, Find: c.findForUndo,
		HoldPrompt: c.cfg.HoldPrompt, LastLook: c.cfg.LastLook,
	})
}

// Undo returns the changes of the turns, which can be shown and taken back.
func (c *Client) Undo() *undo.Library { return c.undo }

// undoSession returns the part of a session that its changes depend on.
func undoSession(s *Session) undo.Session {
	u := undo.Session{ID: s.ID, Place: s.Place, Workspace: s.Workspace.ID, Cwd: s.Cwd, Directories: s.Directories}
	if s.Turn != nil {
		u.Turn = s.Turn.ID
	}
	return u
}

// findForUndo finds a session that is not deleted. A session that is not loaded is read from the database, and stays unloaded.
func (c *Client) findForUndo(ctx context.Context, id string) (undo.Session, error) {
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

// withTurns returns the sessions whose turn runs.
func (c *Client) withTurns() (list []undo.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.live {
		if s := v.look(); s.Turn != nil {
			list = append(list, undoSession(&s))
		}
	}
	return list
}

// publishTurn publishes a turn that is over, with its changes.
func (c *Client) publishTurn(ctx context.Context, turn string) error {
	turns, err := query(ctx, c.cfg.Store.Read(), scanTurn, `SELECT `+turnColumns+` FROM turn WHERE id = ? AND state = 'done'
		AND session IN (SELECT id FROM session WHERE deleted_at = 0)`, turn)
	for _, t := range turns {
		c.feed.publish(Event{Session: t.Session, Type: eventTurn, Data: mustJSON(t)})
	}
	return err
}

// letPromptGo sends the prompt of a turn, as soon as the snapshot before the turn allows.
func (v *conversation) letPromptGo(turn string) {
	if h := v.snapshots.Hold(undoSession(&v.row.Session)); h != nil {
		v.holdPrompt(turn, h)
		return
	}
	v.sendPrompt(turn)
}

// holdPrompt sends the prompt of a turn when h allows. The prompt counts as being composed until then: a cancel is not told to the agent.
func (v *conversation) holdPrompt(turn string, h *undo.Hold) {
	a := v.agent
	ctx, cancel := context.WithCancel(a.ctx)
	now := &composing{cancel}
	v.composing = now
	a.work.Go(func() {
		defer cancel()
		if !h.Wait(ctx) {
			return
		}
		a.post(func() {
			if v.composing != now {
				return // the turn was stopped meanwhile
			}
			v.composing = nil
			if !h.Released() {
				v.holdPrompt(turn, h)
				return
			}
			v.sendPrompt(turn)
		})
	})
}
