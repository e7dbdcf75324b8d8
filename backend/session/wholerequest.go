package session

import (
	"context"

	"deskhand/backend/inspect"
	"deskhand/backend/journal"
	"deskhand/backend/requests"
)

// WholeRequest returns a permission with the whole of its tool call, of any length. pending are frames that are not stored yet.
func (c *core) WholeRequest(ctx context.Context, r requests.Request, pending ...journal.Frame) (requests.Request, error) {
	if !r.Clipped || r.Tool == nil {
		return r, nil
	}
	tool, err := inspect.WholeCall(ctx, c.journal, callOf(&r), pending)
	if err != nil {
		return r, err
	}
	r.Tool, r.Clipped = &tool, false
	return r, nil
}

// callOf returns the tool call of a permission; the request has a Tool.
func callOf(r *requests.Request) inspect.Call {
	return inspect.Call{Session: r.Session, Told: r.Told, Frame: r.Frame, Clipped: r.Clipped, Tool: *r.Tool}
}
