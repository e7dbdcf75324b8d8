package session

import "sync"

// HoldAnnouncing has whoever tells of an agent wait, as if the disk that it is looked for on did not answer, until release is called.
func (c *Client) HoldAnnouncing() (release func()) {
	c.announcing.Lock()
	return sync.OnceFunc(c.announcing.Unlock)
}

// LoginsAreTold tells that there is no news of a login that the catalogue is not told of.
func (c *Client) LoginsAreTold() bool {
	c.loginNews.mu.Lock()
	defer c.loginNews.mu.Unlock()
	return !c.loginNews.telling
}
