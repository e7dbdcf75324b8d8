package session

import (
	"context"

	"deskhand/backend/proxy"
)

// Patience is the default of Config.Patience.
const Patience = patience

// MeasureWith replaces the measurement of the processes, for a fake clock. MeasureWith must be called before anything runs.
func (c *Client) MeasureWith(f func(pss bool) (proxy.Overview, error)) { c.processes.Measure = f }

// Overview measures the client's agents.
func (c *Client) Overview(pss bool) (proxy.Overview, error) { return c.cfg.Proxy.Overview(pss) }

// Holds returns how many entries a conversation keeps in memory.
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
