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

// Stragglers are the commands of all sessions that run on after their turn was stopped. Any goroutine may call the methods of Stragglers.
type Stragglers struct{ client *Client }

// Stragglers returns the commands that agents left running.
func (c *Client) Stragglers() *Stragglers { return &Stragglers{c} }

// List returns the entries of a session whose commands still run.
func (g *Stragglers) List(ctx context.Context, session string) (StragglerList, error) {
	list := StragglerList{Items: []transcript.Entry{}}
	v, err := g.client.conversation(ctx, session)
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

// End ends the command of a straggler entry, with all processes that it has started, and returns when the processes have ended.
// End returns nil when the command has ended before.
func (g *Stragglers) End(ctx context.Context, session, entry string) error {
	v, err := g.client.conversation(ctx, session)
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
		return g.was(ctx, session, entry)
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
func (g *Stragglers) was(ctx context.Context, session, entry string) error {
	is, err := g.client.entries.HasStraggler(ctx, session, entry)
	if err == nil && !is {
		err = notFound(entry)
	}
	return err
}
