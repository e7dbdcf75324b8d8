package session

import (
	"context"
	"errors"
	"time"

	"deskhand/backend/entries"
	"deskhand/backend/lifecycle"
	"deskhand/backend/remote"
	"deskhand/backend/remotes"
	"deskhand/backend/transcript"
)

// remoteSessions ends the remote agents of sessions.
type remoteSessions struct{ *Client }

// A remote agent may outlive this program, or the conversation that started the agent. The row of a session names the session's remote
// agent while the agent may run; an agent that may run and that no row names is a stray of package remotes.

// leftAgent is a remote agent that no conversation reads and that may still run; session is empty for a stray.
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

// outlived lists the remote agents of sessions without a running turn. outlived must be called before the first turn starts.
func (c remoteSessions) outlived(ctx context.Context) ([]leftAgent, error) {
	return c.leftAgents(ctx, "", ` AND id NOT IN (`+entries.SessionsWithRunningTurn+`)`)
}

// endLeft ends a remote agent, and logs a failure. An agent of a removed place is only forgotten, since its runtime can no longer be asked.
func (c remoteSessions) endLeft(ctx context.Context, l leftAgent) (err error) {
	p, err := c.remotes.Get(l.place)
	if err == nil {
		err = p.Runtime().Remove(ctx, l.server)
	} else if _, removed := errors.AsType[*RefusedError](err); removed {
		err = nil
	}
	if err == nil {
		err = c.forgetProgress(l.session, l.server)
	}
	if err != nil {
		c.cfg.Logger.Warn("an agent elsewhere is left", "session", l.session, "server_id", l.server, "error", err)
	}
	return err
}

// endOutlived ends remote agents. An agent whose place cannot be reached now is tried again at the next start of the program.
func (c remoteSessions) endOutlived(list []leftAgent) {
	for _, l := range list {
		_ = c.endLeft(c.ctx, l) // endLeft has logged the error
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

// leavePlace ends the agent of a conversation whose place is removed; also an agent that is kept since the deletion of the session.
func (v *conversation) leavePlace() {
	v.release(false)
	if v.state.Base != lifecycle.Closed {
		v.do(lifecycle.Exited{Code: transcript.ProblemRestart}) // without an event, as at a restart
	}
}
