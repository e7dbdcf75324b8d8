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
