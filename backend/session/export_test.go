package session

import "deskhand/backend/proxy"

// MeasureWith puts other numbers in the place of those that the system tells, for a fake clock. It is called before anything runs.
func (c *Client) MeasureWith(f func(pss bool) (proxy.Overview, error)) { c.sampler.measure = f }

// Overview is what the client's agents take.
func (c *Client) Overview(pss bool) (proxy.Overview, error) { return c.cfg.Proxy.Overview(pss) }
