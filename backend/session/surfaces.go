package session

// Publish puts a record of a surface into the feed, for the other surfaces to show. It is kept nowhere else: who looks later asks the surface.
func (c *Client) Publish(kind string, record any) {
	c.feed.publish(Event{Type: kind, Data: mustJSON(record)})
}

// Hide has a secret of a surface kept out of everything that is written, until the program ends. A text that is as short as a word is
// left where it is.
func (c *Client) Hide(secret string) {
	if len(secret) >= shortestHidden {
		c.secret.Remember([]string{secret})
	}
}

const shortestHidden = 16
