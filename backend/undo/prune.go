package undo

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"deskhand/backend/record"
)

// The snapshots of a turn are kept for keepAge, and for the newest keepTurns turns of a directory.
const (
	keepAge   = 30 * 24 * time.Hour
	keepTurns = 300
)

// Prune forgets the snapshots of turns that are too old or too many, and the trees that no turn and no restoration names any more.
func (l *Library) Prune(ctx context.Context) error {
	if l.Snapshots == nil {
		return nil
	}
	ids, err := l.Snapshots.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := l.pruneStore(ctx, id); err != nil {
			return fmt.Errorf("the snapshots of %s: %w", id, err)
		}
	}
	return nil
}

func (l *Library) pruneStore(ctx context.Context, id string) error {
	pruned := string(record.JSON(TurnChanges{State: stateOff, Reason: reasonPruned}))
	before := time.Now().Add(-keepAge).UnixMilli()
	err := l.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE turn_change SET was = '', became = '', left_out = '{}', data = ?1 WHERE workspace = ?2 AND ended <> 0 AND was <> '' AND
			(at < ?3 OR turn NOT IN (SELECT turn FROM turn_change WHERE workspace = ?2 ORDER BY at DESC LIMIT ?4))`, pruned, id, before, keepTurns)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM restoration WHERE workspace = ? AND at < ?`, id, before)
		}
		return err
	})
	if err != nil {
		return err
	}
	trees, err := record.Query(ctx, l.Store.Read(), record.ScanText, `SELECT was FROM turn_change WHERE workspace = ?1
		UNION SELECT became FROM turn_change WHERE workspace = ?1
		UNION SELECT was FROM restoration WHERE workspace = ?1 UNION SELECT became FROM restoration WHERE workspace = ?1`, id)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, tree := range trees {
		keep[tree] = tree != ""
	}
	return l.Snapshots.Store(id, "").Prune(ctx, keep)
}
