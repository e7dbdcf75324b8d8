package undo

import (
	"context"
	"database/sql"
	"slices"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// kept returns the ids of the hunks that a person has marked as kept, in the changes of a scope.
func (l *Library) kept(ctx context.Context, session, scope string) (map[string]bool, error) {
	ids, err := record.Query(ctx, l.Store.Read(), record.ScanText, `SELECT hunk FROM kept_hunk WHERE session = ? AND scope = ?`, session, scope)
	kept := map[string]bool{}
	for _, id := range ids {
		kept[id] = true
	}
	return kept, err
}

// KeepHunks marks hunks as kept, or removes the marks. A HunkAt without a hunk means all hunks of its file.
func (l *Library) KeepHunks(ctx context.Context, id string, k KeepHunks) error {
	if err := l.Writable(); err != nil {
		return err
	}
	c, err := l.scoped(ctx, id, k.ChangeScope)
	if err != nil {
		return err
	}
	var hunks []string
	for _, h := range k.Hunks {
		ch, err := c.file(ctx, h.Path)
		if err != nil {
			return err
		}
		ids := ch.hunkIDs()
		switch {
		case h.Hunk == "":
			hunks = append(hunks, ids...)
		case slices.Contains(ids, h.Hunk):
			hunks = append(hunks, h.Hunk)
		default:
			return refusal.Bad(refusedUnknownHunk, "path", h.Path)
		}
	}
	text := `DELETE FROM kept_hunk WHERE session = ? AND scope = ? AND hunk = ?`
	if k.Kept {
		text = `INSERT INTO kept_hunk VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	}
	return l.Store.Write(ctx, func(tx *sql.Tx) error {
		for _, hunk := range hunks {
			if _, err := tx.ExecContext(ctx, text, id, c.scope, hunk); err != nil {
				return err
			}
		}
		return nil
	})
}
