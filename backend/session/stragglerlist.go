package session

import (
	"context"

	"deskhand/backend/proxy"
	"deskhand/backend/transcript"
)

// StragglerList lists the commands of a session's stopped turns that still run.
type StragglerList struct {
	Items []transcript.Entry `json:"items" doc:"Entries of kind straggler, the oldest first"`
}

// Stragglers returns the entries of a session whose commands still run.
func (c *Client) Stragglers(ctx context.Context, session string) (StragglerList, error) {
	list := StragglerList{Items: []transcript.Entry{}}
	v, err := c.conversation(ctx, session)
	if err != nil {
		return list, err
	}
	err = v.call(ctx, func() error {
		for _, e := range v.fold.Running() {
			list.Items = append(list.Items, *e)
		}
		return nil
	})
	return list, err
}

// EndStraggler ends the command of a straggler entry, with all processes that it has started, and returns when the processes have ended.
// EndStraggler returns nil when the command has ended before.
func (c *Client) EndStraggler(ctx context.Context, session, entry string) error {
	v, err := c.conversation(ctx, session)
	if err != nil {
		return err
	}
	var part *proxy.Part
	var a *agentProcess
	var id string
	if err := v.call(ctx, func() error {
		e := v.fold.Straggler(entry)
		if e == nil || v.agent == nil || v.agent.stragglers[e.Straggler.ID] == nil {
			return nil
		}
		a, id = v.agent, e.Straggler.ID
		a.stragglers[id].by, part = transcript.EndedByPerson, a.stragglers[id].part
		return nil
	}); err != nil {
		return err
	}
	if part == nil {
		return c.wasStraggler(ctx, session, entry)
	}
	if err := part.End(stragglerGrace, stragglerPatience); err != nil {
		return &RefusedError{Code: "command.stuck", Params: map[string]string{"detail": err.Error()}}
	}
	return v.call(ctx, func() error {
		if v.agent == a {
			a.stragglerEnded(id)
		}
		return nil
	})
}

// wasStraggler returns nil for an entry of kind straggler, and not found for any other entry.
func (c *Client) wasStraggler(ctx context.Context, session, entry string) error {
	var is bool
	err := c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM entry WHERE session = ? AND id = ? AND `+storedKind+` = 'straggler')`, session, entry).Scan(&is)
	if err == nil && !is {
		err = notFound(entry)
	}
	return err
}
