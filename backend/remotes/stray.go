package remotes

import (
	"context"
	"database/sql"

	"deskhand/backend/record"
)

// Stray is an agent elsewhere that this program has started and that no session tells of any more. A stray may still run.
type Stray struct{ Server, Place string }

// Strays lists the strays of a place, or of all places where place is empty.
func (l *Library) Strays(ctx context.Context, place string) ([]Stray, error) {
	return record.Query(ctx, l.deps.Store.Read(), func(s record.Scanner) (found Stray, err error) {
		return found, s.Scan(&found.Server, &found.Place)
	}, `SELECT server, place FROM stray WHERE ? IN ('', place)`, place)
}

// KeepStray stores a stray in a transaction.
func KeepStray(ctx context.Context, tx *sql.Tx, s Stray) error {
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO stray (server, place) VALUES (?, ?)`, s.Server, s.Place)
	return err
}

// ForgetStray deletes a stray that has ended, in a transaction.
func ForgetStray(ctx context.Context, tx *sql.Tx, server string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM stray WHERE server = ?`, server)
	return err
}
