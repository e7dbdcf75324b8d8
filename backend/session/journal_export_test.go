package session

import "context"

// Frames gives the journal of a session, in order.
func (c *Client) Frames(ctx context.Context, id string, each func(dir string, data []byte)) error {
	return frames(ctx, c.cfg.Store, id, func(f frame) { each(string(f.Dir), f.Data) })
}
