package session

import (
	"context"
	"fmt"
)

// Request returns one request, whether it waits or has ended.
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

// RequestsNamed returns up to 10 requests whose id begins with a text, the newest first, whether they wait or have ended: a person who
// answers too late is told who has answered.
func (c *Client) RequestsNamed(ctx context.Context, begins string) ([]Request, error) {
	const afterAll = "~" // sorts after all characters of an id
	return query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id >= ? AND id < ? ORDER BY created_at DESC, id DESC LIMIT 10`, begins, begins+afterAll)
}
