package session

// Trials are the MCP servers that are being tried.
func (c *Client) Trials() []string {
	var ids []string
	for _, s := range c.trials.List() {
		ids = append(ids, s.ServerID)
	}
	return ids
}
