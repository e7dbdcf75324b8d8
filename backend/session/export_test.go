package session

import (
	"context"

	"deskhand/backend/proxy"
)

// Patience is what Config.Patience is where nothing is said.
const Patience = patience

// MeasureWith puts other numbers in the place of those that the system tells, for a fake clock. It is called before anything runs.
func (c *Client) MeasureWith(f func(pss bool) (proxy.Overview, error)) { c.processes.Measure = f }

// Overview is what the client's agents take.
func (c *Client) Overview(pss bool) (proxy.Overview, error) { return c.cfg.Proxy.Overview(pss) }

// Holds is how many entries a conversation keeps in memory, to go on with.
func (c *Client) Holds(ctx context.Context, id string) (n int, err error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return 0, err
	}
	err = v.call(ctx, func() error {
		n = v.fold.Held()
		return nil
	})
	return n, err
}
