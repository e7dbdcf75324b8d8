package session

import (
	"context"
	"fmt"
)

// Request gives one request, whether it waits or not.
func (c *Client) Request(ctx context.Context, id string) (Request, error) {
	found, err := query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id = ?`, id)
	if err != nil {
		return Request{}, err
	}
	if len(found) == 0 {
		return Request{}, fmt.Errorf("request %s: %w", id, ErrNotFound)
	}
	return found[0], nil
}

// RequestsNamed gives the requests whose id begins so, the newest first, whether they wait or not: a person who answers one may have been late,
// and is to hear who was first. It gives 10 at most.
func (c *Client) RequestsNamed(ctx context.Context, begins string) ([]Request, error) {
	const afterAll = "~" // of the characters of an id
	return query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id >= ? AND id < ? ORDER BY created_at DESC, id DESC LIMIT 10`, begins, begins+afterAll)
}
