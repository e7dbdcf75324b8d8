package session

// Hang has the next look at a file not return before the channel is closed.
func (c *Client) Hang(path string, until <-chan struct{}) {
	c.files.Begin(path, func() bool { <-until; return false })
}
