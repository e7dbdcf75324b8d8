package session

import (
	"fmt"
	"strconv"

	"deskhand/backend/store"
)

// Data that a newer version has made is shown, and left as it is: nothing is recovered, tidied up or indexed, no agent starts, and every
// wish to change something is refused. What the tables hold otherwise than we know cannot be shown.

const refusedNewer = "storage.newer"

// ReadOnly is why nothing can be changed; nil = it can.
func (c *Client) ReadOnly() *RefusedError {
	n := c.cfg.Store.Newer()
	if n == nil {
		return nil
	}
	params := map[string]string{"schema": strconv.Itoa(n.Schema), "known": strconv.Itoa(n.Known), "version": n.By}
	params["detail"] = fmt.Sprintf("%s (schema %d, this program knows %d); it is not changed", store.ErrNewer, n.Schema, n.Known)
	return &RefusedError{Code: refusedNewer, Params: params}
}

// writable is ReadOnly as an error, for the features that change stored data.
func (c *Client) writable() error {
	if err := c.ReadOnly(); err != nil {
		return err
	}
	return nil
}

// openNewer is the rest of Open for data of a newer version.
func (c *Client) openNewer(loaded error) error {
	if loaded != nil {
		return fmt.Errorf("%w, and it cannot be read: %w", store.ErrNewer, loaded)
	}
	n := c.cfg.Store.Newer()
	c.cfg.Logger.Warn("the data is of a newer version: it can be read, and nothing of it is changed", "schema", n.Schema, "known", n.Known, "by", n.By)
	return nil
}
