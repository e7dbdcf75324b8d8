package session

import (
	"context"

	"deskhand/backend/journal"
)

// Frames calls each for every frame of a session's journal, in order.
func (c *Client) Frames(ctx context.Context, id string, each func(dir string, data []byte)) error {
	return c.journal.Each(ctx, id, func(f journal.Frame) { each(string(f.Dir), f.Data) })
}

// WhatIsThere calls each for every frame of a session's journal that can be read.
func (c *Client) WhatIsThere(ctx context.Context, id string, each func(data []byte)) (lost, err error) {
	return c.journal.Readable(ctx, id, func(f journal.Frame) { each(f.Data) })
}
