package probe

import (
	"context"
	"fmt"

	"deskhand/backend/acp"
)

// Bounds of listing. Starting some agents takes seconds, so small pages are combined.
const (
	listEnough = 100 // sessions
	listPages  = 10
)

// Sessions asks an agent for its own sessions in a directory, page by page until there are enough. next is the agent's cursor for more. For
// an agent that cannot list, supported is false, which is no error.
func (p *Probe) Sessions(ctx context.Context, directory, cursor string) (list []acp.Listed, next string, supported bool, err error) {
	result, err := p.Call(ctx, "initialize", InitializeParams())
	if err != nil {
		return nil, "", false, err
	}
	can, err := acp.ParseInitialized(result)
	if err == nil && can.ProtocolVersion != 1 {
		err = fmt.Errorf("it speaks version %d of the protocol, and we 1", can.ProtocolVersion)
	}
	if err != nil {
		return nil, "", false, p.Fail("initialize", err)
	}
	for range listPages {
		if !can.List {
			return nil, "", false, nil
		}
		page, after, err := p.list(ctx, directory, cursor)
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
func (p *Probe) list(ctx context.Context, directory, cursor string) ([]acp.Listed, string, error) {
	params := map[string]any{}
	if directory != "" {
		params["cwd"] = directory
	}
	if cursor != "" {
		params["cursor"] = cursor
	}
	result, err := p.Call(ctx, "session/list", params)
	if err != nil {
		return nil, "", err
	}
	list, next, err := acp.ParseSessionList(result)
	if err != nil {
		return nil, "", p.Fail("session/list", err)
	}
	return list, next, nil
}
