package session

import "deskhand/backend/feed"

// Publish puts a surface's record into the feed, for the other surfaces. The record is not stored: later readers ask the surface.
func (c *Client) Publish(kind string, record any) {
	c.feed.Publish(feed.Event{Type: kind, Data: mustJSON(record)})
}

// Hide keeps a secret of a surface out of everything that is written, until the program ends. Secrets shorter than shortestHidden are not
// hidden, since they may be words.
func (c *Client) Hide(secret string) {
	if len(secret) >= shortestHidden {
		c.secret.Remember([]string{secret})
	}
}

const shortestHidden = 16
