package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"deskhand/backend/remote"
	"deskhand/backend/remotes"
	"deskhand/backend/transcript"
)

// remoteSessions ends the agents of sessions that run elsewhere.
type remoteSessions struct{ *Client }

// An agent elsewhere may outlive this program, or the conversation that the agent was started for. The row of a session names the session's
// agent elsewhere while the agent may run; when the row no longer does, the agent is a stray of package remotes.

// forgetProgress notes that an agent elsewhere has ended, in the row of the agent's session and among the strays.
func (c *core) forgetProgress(session, server string) error {
	ctx := context.WithoutCancel(c.ctx)
	return c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE session SET line = '' WHERE id = ? AND json_extract(nullif(line, ''), '$.server') = ?`, session, server)
		if err == nil {
			err = remotes.ForgetStray(ctx, tx, server)
		}
		return err
	})
}

// keepStray makes a stray of the agent elsewhere that the session's row names, if any, before the row names another agent or is deleted.
func keepStray(ctx context.Context, tx *sql.Tx, session string) error {
	var s remotes.Stray
	err := tx.QueryRowContext(ctx, `SELECT json_extract(line, '$.server'), place FROM session WHERE id = ? AND json_extract(nullif(line, ''), '$.server') <> ''`, session).
		Scan(&s.Server, &s.Place)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return remotes.KeepStray(ctx, tx, s)
}

// lastProgress returns the progress of the newest agent elsewhere of a session, which may have outlived this program.
func (c *core) lastProgress(ctx context.Context, session string) (progress, error) {
	var text string
	var p progress
	err := c.cfg.Store.Read().QueryRowContext(ctx, `SELECT line FROM session WHERE id = ?`, session).Scan(&text)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &p)
	}
	return p, err
}

// endPredecessor ends the session's agent elsewhere of the generation before, unless that agent is the server named next: one ACP session must
// not have two agents. An agent that cannot be ended now becomes a stray, since the row is about to name the next agent.
func (c *core) endPredecessor(ctx context.Context, p *remotes.Remote, session, next string) {
	left, err := c.lastProgress(ctx, session)
	if err != nil || left.Server == "" || left.Server == next {
		return
	}
	if err := p.Runtime().Remove(ctx, left.Server); err != nil {
		err = errors.Join(err, c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { return keepStray(ctx, tx, session) }))
		c.cfg.Logger.Warn("an agent elsewhere is left", "place", p.Place().ID, "server_id", left.Server, "error", err)
		return
	}
	if err := c.forgetProgress(session, left.Server); err != nil {
		c.cfg.Logger.Warn("the end of an agent elsewhere is not noted", "session", session, "error", err)
	}
}

// leftAgent is an agent elsewhere that nobody reads and that may still run; session is empty for a stray.
type leftAgent struct{ session, place, server string }

// leftAgents lists the strays of a place and the agents of the sessions that further selects, of all places where place is empty.
func (c remoteSessions) leftAgents(ctx context.Context, place, further string) ([]leftAgent, error) {
	strays, err := c.remotes.Strays(ctx, place)
	if err != nil {
		return nil, err
	}
	list := make([]leftAgent, len(strays))
	for i, s := range strays {
		list[i] = leftAgent{"", s.Place, s.Server}
	}
	named, err := query(ctx, c.cfg.Store.Read(), func(s scanner) (l leftAgent, err error) { return l, s.Scan(&l.session, &l.place, &l.server) },
		`SELECT id, place, coalesce(json_extract(nullif(line, ''), '$.server'), '') FROM session WHERE line <> '' AND ?1 IN ('', place)`+further, place)
	return append(list, named...), err
}

// outlived lists the agents elsewhere that no turn goes on with. outlived must be called before the first turn starts.
func (c remoteSessions) outlived(ctx context.Context) ([]leftAgent, error) {
	return c.leftAgents(ctx, "", ` AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session = session.id AND state <> 'done')`)
}

// endLeft ends an agent elsewhere, and logs a failure. An agent of a removed place is only forgotten: its runtime can no longer be asked.
func (c remoteSessions) endLeft(ctx context.Context, l leftAgent) (err error) {
	if p, unknown := c.remotes.Get(l.place); unknown == nil {
		err = p.Runtime().Remove(ctx, l.server)
	}
	if err == nil {
		err = c.forgetProgress(l.session, l.server)
	}
	if err != nil {
		c.cfg.Logger.Warn("an agent elsewhere is left", "session", l.session, "server_id", l.server, "error", err)
	}
	return err
}

// endOutlived ends agents elsewhere. An agent of a place that cannot be reached now is tried again at the next start.
func (c remoteSessions) endOutlived(list []leftAgent) {
	for _, l := range list {
		_ = c.endLeft(c.ctx, l) // which has logged the error
	}
}

// remoteEndLimit is how long the removal of a place waits for the ends of the place's agents.
const remoteEndLimit = 8 * time.Second

// usesOf counts the sessions at a place that are not archived.
func usesOf(ctx context.Context, q remotes.Querier, place string) (used int, err error) {
	err = q.QueryRowContext(ctx, `SELECT count(*) FROM session WHERE place = ? AND archived_at = 0 AND deleted_at = 0`, place).Scan(&used)
	return used, err
}

// endAgentsAt ends every agent of a session at a place, and returns how many agents may not have ended.
func (c remoteSessions) endAgentsAt(ctx context.Context, place string) (unended int, err error) {
	limited, cancel := context.WithTimeout(ctx, remoteEndLimit)
	defer cancel()
	ends, err := c.detachAt(ctx, place)
	if err != nil {
		return 0, err
	}
	for _, end := range ends {
		select {
		case <-end:
		case <-limited.Done():
		}
	}
	list, err := c.leftAgents(ctx, place, "")
	for i, l := range list {
		if err := c.endLeft(limited, l); err != nil {
			unended++
			if !errors.Is(err, remote.ErrProblem) {
				return unended + len(list) - i - 1, nil // the runtime cannot be reached for the other agents either
			}
		}
	}
	return unended, err
}

// detachAt detaches the conversations at a place from their agents. Each channel is closed when an agent's process has ended.
func (c remoteSessions) detachAt(ctx context.Context, place string) (ends []<-chan struct{}, err error) {
	c.mu.Lock()
	var list []*conversation
	for _, v := range c.live {
		if v.look().Place == place {
			list = append(list, v)
		}
	}
	c.mu.Unlock()
	for _, v := range list {
		err := v.reach(ctx, func() error {
			v.leavePlace()
			if v.gone != nil {
				ends = append(ends, v.gone)
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return ends, nil
}

// leavePlace ends the agent of a conversation whose place is removed; an agent that is kept since the deletion of the session too.
func (v *conversation) leavePlace() {
	v.release(false)
	if v.state.base != Closed {
		v.do(doExited{transcript.ProblemRestart}) // without an event, as at a restart
	}
}
