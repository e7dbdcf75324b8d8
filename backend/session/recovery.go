package session

import (
	"context"
	"errors"
	"fmt"

	"deskhand/backend/entries"
	"deskhand/backend/record"
	"deskhand/backend/requests"
	"deskhand/backend/store"
)

// recovery repairs what the last run of the program left, before the client takes calls. recovery leaves out what is damaged, where the rest can go on.
type recovery struct{ *Client }

// takeOver repairs the data that the last run of the program left behind, and returns the work to run in the background from then on.
func (c recovery) takeOver(ctx context.Context) (work []func(), err error) {
	err = errors.Join(c.without("the places", c.remotes.Load(ctx)), c.without("the worktrees", c.worktrees.Load(ctx)), c.without("the set-ups", c.cfg.Setups.Load(ctx)))
	if c.ReadOnly() != nil {
		return nil, c.openNewer(err)
	}
	snapshots, unseen := c.undo.Recover(ctx)
	if err := errors.Join(err, c.without("the turns without a last snapshot", unseen), c.recover(ctx)); err != nil {
		return nil, fmt.Errorf("recovering: %w", err)
	}
	left, err := remoteSessions(c).outlived(ctx)
	err = c.without("the agents elsewhere that are to be ended", err)
	return []func(){func() { snapshots(c.ctx) }, c.maintainer.Run, eraser(c).run, func() { remoteSessions(c).endOutlived(left) }, func() { c.worktrees.SettleAll(c.ctx) }}, err
}

// without logs that the client goes on without a part of the stored data, which is damaged, and returns every other error. Calls that need
// the part get the database's own error, which names the way on. No part that allows something is among them: without its row there is no
// place, no worktree, no open request.
func (c recovery) without(part string, err error) error {
	if !store.Corrupt(damaged(err)) {
		return err
	}
	c.cfg.Logger.Error("a part of the stored data is damaged, and is left out: see deskhand verify", "part", part, "error", err)
	return nil
}

// damaged marks the error of a record that cannot be read as one of a damaged database.
func damaged(err error) error {
	if record.Damaged(err) {
		return fmt.Errorf("%w: %w", store.ErrRecord, err)
	}
	return err
}

// recover repairs each session that the last run of the program left with a running turn, an open request, a queue that would go on, or
// running programs; then it handles deleted sessions and broken imports.
func (c recovery) recover(ctx context.Context) error {
	ids, err := c.unfinished(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := c.recoverSession(ctx, id)
		if errors.Is(err, ErrStorage) { // with a full disk the stored sessions can still be shown; the conversation keeps the step until it is stored
			c.cfg.Logger.Error("what ran when the program ended is told when the disk takes it", "session", id)
			continue
		}
		if err := c.leaveOut(id, err); err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
	}
	return errors.Join(c.without("the deleted conversations", eraser(c).recover(ctx)), c.without("the imports that broke off", c.Imports().dropHalfImported(ctx)))
}

func (c recovery) recoverSession(ctx context.Context, id string) error {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return err
	}
	return v.call(ctx, func() error { return v.recover(ctx) })
}

// leaveOut is without for what is stored of one session: from then on every call to the session is refused with the error.
func (c recovery) leaveOut(id string, err error) error {
	err = damaged(err)
	if rest := c.without("the conversation "+id, err); err == nil || rest != nil {
		return rest
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, id)
	c.unreadable[id] = err
	return nil
}

// goingOn is the condition of a session that has left programs running.
const goingOn = `CASE WHEN json_valid(facts) THEN json_extract(facts, '$.terminals') > 0 OR json_extract(facts, '$.goingOn') > 0 END`

// unfinished lists the sessions that recover repairs. Where that cannot be told of all at once, each session is asked alone.
func (c recovery) unfinished(ctx context.Context) (ids []string, err error) {
	ids, err = query(ctx, c.cfg.Store.Read(), scanText,
		`SELECT id FROM session WHERE deleted_at = 0 AND id IN (`+entries.SessionsWithRunningTurn+`
		UNION `+requests.SessionsWithWaiting+` UNION SELECT session FROM queue_item WHERE held = ''
		UNION SELECT id FROM session WHERE `+goingOn+`)`)
	if err == nil || c.without("what ran when the program ended", err) != nil {
		return ids, err
	}
	all, err := query(ctx, c.cfg.Store.Read(), scanText, `SELECT id FROM session WHERE deleted_at = 0`)
	if err != nil {
		return nil, err
	}
	ids = nil
	for _, id := range all {
		is, err := c.isUnfinished(ctx, id)
		if err := c.leaveOut(id, err); err != nil {
			return nil, err
		}
		if is {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// isUnfinished reports whether recover repairs a session.
func (c recovery) isUnfinished(ctx context.Context, id string) (bool, error) {
	own, err := query(ctx, c.cfg.Store.Read(), scanText,
		`SELECT id FROM session WHERE id = ?1 AND (EXISTS (SELECT 1 FROM queue_item WHERE session = ?1 AND held = '') OR `+goingOn+`)`, id)
	turns, failed := c.entries.RunningTurns(ctx, id)
	waiting, broken := c.requests.WaitingIn(ctx, id)
	err = errors.Join(err, failed, broken)
	return err == nil && len(own)+len(turns)+len(waiting) > 0, err
}
