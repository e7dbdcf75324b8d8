package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

// Bounds of listing an agent's own conversations. Starting some agents takes seconds, so small pages are combined.
const (
	listPatience = time.Minute
	listEnough   = 100 // conversations
	listPages    = 10
)

// AuthError is the error of an agent that demands a login first.
type AuthError struct{ Refused *acp.Error }

func (e *AuthError) Error() string { return "it asks to log in first: " + e.Refused.Sentence() }

// ListSessions asks an agent for its own conversations, in a separate process, so that no other conversation is touched; the process is
// gone, with everything that the process started, when ListSessions returns. next is the agent's cursor for more. For an agent that cannot
// list, supported is false, which is no error. ListSessions fails with AuthError, ErrUnknown and ErrNotInstalled.
func (c *Catalogue) ListSessions(ctx context.Context, id, directory, cursor string) (list []acp.Listed, next string, supported bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)() //nolint:contextcheck // both Close and the caller end it
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, "", false, ctx.Err()
	}
	// Not in directory: some agents run files of the directory they start in, and nobody has approved that.
	err = c.prober.attend(ctx, id, func(dir string) (proxy.Command, error) { return c.Command(ctx, id, dir) }, func(q *question, _ string) error {
		list, next, supported, err = q.sessions(ctx, directory, cursor)
		return err
	})
	if refused, ok := errors.AsType[*acp.Error](err); ok && refused.Code == acp.CodeAuthRequired {
		err = &AuthError{refused}
	}
	return list, next, supported, err
}

// sessions asks for pages until there are enough conversations.
func (q *question) sessions(ctx context.Context, directory, cursor string) (list []acp.Listed, next string, supported bool, err error) {
	result, err := q.call(ctx, stepInitialize, initializeParams())
	if err != nil {
		return nil, "", false, err
	}
	can, err := acp.ParseInitialized(result)
	if err == nil && can.ProtocolVersion != 1 {
		err = fmt.Errorf("it speaks version %d of the protocol, and we 1", can.ProtocolVersion)
	}
	if err != nil {
		return nil, "", false, q.failed(stepInitialize, err)
	}
	for range listPages {
		if !can.List {
			return nil, "", false, nil
		}
		page, after, err := q.list(ctx, directory, cursor)
		if err != nil {
			return nil, "", true, err
		}
		list = append(list, page...)
		if after == cursor {
			after = "" // the same cursor again would loop for ever
		}
		if cursor = after; cursor == "" || len(list) >= listEnough {
			break
		}
	}
	return list, cursor, true, nil
}

// list returns a page of session/list, and the next cursor.
func (q *question) list(ctx context.Context, directory, cursor string) ([]acp.Listed, string, error) {
	params := map[string]any{}
	if directory != "" {
		params["cwd"] = directory
	}
	if cursor != "" {
		params["cursor"] = cursor
	}
	result, err := q.call(ctx, "session/list", params)
	if err != nil {
		return nil, "", err
	}
	list, next, err := acp.ParseSessionList(result)
	if err != nil {
		return nil, "", q.failed("session/list", err)
	}
	return list, next, nil
}
