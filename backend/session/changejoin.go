package session

import (
	"context"
	"database/sql"
	"fmt"
)

// A directory that moved to where another workspace was has its sessions there from then on. The trees of their turns lie in the store of the
// workspace that they had: they are taken over when somebody asks for them, so that all of a session are in one.

// join brings the trees of a session's turns and restorations into the store of its directory.
func (c *Client) join(ctx context.Context, s Session) error {
	if err := c.ReadOnly(); err != nil || c.hosts.At(s.Place).Snapshots == nil {
		return nil //nolint:nilerr // what can only be read is shown as it is
	}
	from, err := query(ctx, c.cfg.Store.Read(), scanText, `SELECT workspace FROM turn_change WHERE session = ?1 AND workspace <> ?2 AND ended <> 0
		UNION SELECT workspace FROM restoration WHERE session = ?1 AND workspace <> ?2`, s.ID, s.Workspace.ID)
	for _, id := range from {
		if err := c.adopt(ctx, id, s); err != nil {
			return err
		}
		err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE turn_change SET workspace = ?2 WHERE session = ?1 AND workspace = ?3 AND ended <> 0`, s.ID, s.Workspace.ID, id)
			if err == nil {
				_, err = tx.ExecContext(ctx, `UPDATE restoration SET workspace = ?2 WHERE session = ?1 AND workspace = ?3`, s.ID, s.Workspace.ID, id)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return err
}

// adopt takes over what the store of another workspace keeps. One at a time: two that took over each other's would wait for ever.
func (c *Client) adopt(ctx context.Context, workspace string, s Session) error {
	c.looks.joining.Lock()
	defer c.looks.joining.Unlock()
	err := c.cfg.Snapshots.Store(s.Workspace.ID, s.Cwd).Adopt(ctx, c.cfg.Snapshots.Store(workspace, ""))
	if err != nil {
		return fmt.Errorf("taking over what was kept of %s: %w", s.Cwd, err)
	}
	return nil
}
