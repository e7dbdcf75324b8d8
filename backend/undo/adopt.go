package undo

import (
	"context"
	"database/sql"
	"fmt"

	"deskhand/backend/record"
)

// A directory that moved to the path of another workspace brings its sessions into that workspace. The trees of their turns stay in the store of
// the old workspace until somebody asks for them: then the new workspace's store takes the trees over.

// join brings the trees of a session's turns and restorations into the store of the session's directory.
func (l *Library) join(ctx context.Context, s *Session) error {
	if l.Writable() != nil || l.Host(s.Place).Snapshots == nil {
		return nil //nolint:nilerr // data that can only be read is shown as stored
	}
	from, err := record.Query(ctx, l.Store.Read(), record.ScanText, `SELECT workspace FROM turn_change WHERE session = ?1 AND workspace <> ?2 AND ended <> 0
		UNION SELECT workspace FROM restoration WHERE session = ?1 AND workspace <> ?2`, s.ID, s.Workspace)
	for _, id := range from {
		if err := l.adoptTrees(ctx, id, s); err != nil {
			return err
		}
		err = l.Store.Write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE turn_change SET workspace = ?2 WHERE session = ?1 AND workspace = ?3 AND ended <> 0`, s.ID, s.Workspace, id)
			if err == nil {
				_, err = tx.ExecContext(ctx, `UPDATE restoration SET workspace = ?2 WHERE session = ?1 AND workspace = ?3`, s.ID, s.Workspace, id)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return err
}

// adoptTrees takes over the trees in the store of another workspace. Two stores that took over each other's trees at once would deadlock.
func (l *Library) adoptTrees(ctx context.Context, workspace string, s *Session) error {
	l.adopt.Lock()
	defer l.adopt.Unlock()
	if err := l.store(s).Adopt(ctx, l.Snapshots.Store(workspace, "")); err != nil {
		return fmt.Errorf("taking over the snapshots of %s: %w", s.Cwd, err)
	}
	return nil
}
