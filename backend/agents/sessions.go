package agents

import (
	"context"
	"errors"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/probe"
	"deskhand/backend/proxy"
)

// listPatience is how long listing an agent's own conversations may take.
const listPatience = time.Minute

// AuthError is the error of an agent that demands a login first.
type AuthError struct{ Refused *acp.Error }

func (e *AuthError) Error() string { return "it asks to log in first: " + e.Refused.Sentence() }

// ListSessions asks an agent for its own conversations, in a separate process, so that no other conversation is touched; the process is
// gone, with everything that the process started, when ListSessions returns. next is the agent's cursor for more. For an agent that cannot
// list, supported is false, which is no error. ListSessions fails with AuthError, ErrUnknown and ErrNotInstalled.
func (c *Catalogue) ListSessions(ctx context.Context, id, directory, cursor string) (list []acp.Listed, next string, supported bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	ctx, release := c.background.Call(ctx)
	defer release()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, "", false, ctx.Err()
	}
	// Not in directory: some agents run files of the directory they start in, and nobody has approved that.
	err = c.prober.Attend(ctx, id, func(dir string) (proxy.Command, error) { return c.Command(ctx, id, dir) }, func(q *probe.Probe, _ string) error {
		list, next, supported, err = q.Sessions(ctx, directory, cursor)
		return err
	})
	if refused, ok := errors.AsType[*acp.Error](err); ok && refused.Code == acp.CodeAuthRequired {
		err = &AuthError{refused}
	}
	return list, next, supported, err
}
