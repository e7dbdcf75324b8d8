package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"deskhand/backend/remotes"
)

// forgetProgress records that a remote agent has ended, in the row of the agent's session and among the strays.
func (c *core) forgetProgress(session, server string) error {
	ctx := c.lasting()
	return c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE session SET line = '' WHERE id = ? AND json_extract(nullif(line, ''), '$.server') = ?`, session, server)
		if err == nil {
			err = remotes.ForgetStray(ctx, tx, server)
		}
		return err
	})
}

// keepStray makes a stray of the remote agent that the session's row names, if any, before the row names another agent or is deleted.
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

// lastProgress returns the progress of the newest remote agent of a session, which may have outlived the last run of the program.
func (c *core) lastProgress(ctx context.Context, session string) (progress, error) {
	var text string
	var p progress
	err := c.cfg.Store.Read().QueryRowContext(ctx, `SELECT line FROM session WHERE id = ?`, session).Scan(&text)
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &p)
	}
	return p, err
}

// endPredecessor ends the remote agent of the session's generation before, unless that agent is the server named next: one ACP session must
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

// progress is the state of a remote agent in the row of its session, written in the transaction of the frames that it counts.
type progress struct {
	Server string `json:"server"`
	Seq    uint64 `json:"seq"`  // number of the agent's last message that is in the journal
	Sent   int    `json:"sent"` // how many messages of this generation have arrived at the agent
}
