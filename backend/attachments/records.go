package attachments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// Get returns an attachment by its id.
func (l *Library) Get(ctx context.Context, id string) (transcript.Attachment, error) {
	list, err := query(ctx, l.deps.Store, `SELECT data FROM attachment WHERE id = ?`, id)
	if err != nil {
		return transcript.Attachment{}, err
	}
	if len(list) == 0 {
		return transcript.Attachment{}, fmt.Errorf("attachment %s: %w", id, refusal.ErrNotFound)
	}
	return list[0], nil
}

// List returns attachments by their ids, in the order of the ids and each once. The records are kept for a while from now on, so that no
// record goes before the caller has stored what names the record.
func (l *Library) List(ctx context.Context, ids []string) ([]transcript.Attachment, error) {
	if err := refuse(limits().Count(len(ids))); err != nil {
		return nil, err
	}
	list := make([]transcript.Attachment, 0, len(ids))
	for _, id := range ids {
		a, err := l.named(ctx, id)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(b transcript.Attachment) bool { return b.ID == id }) {
			list = append(list, a)
		}
	}
	return list, l.keep(ctx, list)
}

// named is Get for an id in a command: an unknown id is refused.
func (l *Library) named(ctx context.Context, id string) (transcript.Attachment, error) {
	a, err := l.Get(ctx, id)
	if errors.Is(err, refusal.ErrNotFound) {
		return a, refusal.Bad(refusedUnknown, "id", id)
	}
	return a, err
}

// Of returns the attachments that the journal of a session names.
func Of(ctx context.Context, db *store.DB, session string) ([]transcript.Attachment, error) {
	return query(ctx, db, `SELECT data FROM attachment WHERE id IN (SELECT attachment FROM attachment_use WHERE session = ?) ORDER BY id`, session)
}

// Stored returns an attachment of each blob.
func Stored(ctx context.Context, db *store.DB) ([]transcript.Attachment, error) {
	return query(ctx, db, `SELECT data FROM attachment WHERE sha256 <> '' GROUP BY sha256`)
}

// Names reports whether an attachment has the bytes of a blob.
func Names(ctx context.Context, db *store.DB, sha string) (is bool, err error) {
	err = db.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM attachment WHERE sha256 = ? AND sha256 <> '')`, sha).Scan(&is)
	return is, err
}

// Uses returns the ids of the attachments that the journal of a session names, as the table has them.
func Uses(ctx context.Context, tx *sql.Tx, session string) (ids []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT attachment FROM attachment_use WHERE session = ?`, session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Save stores records in the caller's transaction. Until a draft, a queue or a journal names a record, the record is kept for a while from
// now on. Drafts and queues save the records that they name no more, so that the person can take the removal back.
func Save(ctx context.Context, tx *sql.Tx, list []transcript.Attachment) error {
	now := time.Now().UnixMilli()
	for _, a := range list {
		a = a.Plain()
		if _, err := tx.ExecContext(ctx, `INSERT INTO attachment (id, sha256, data, used_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET used_at = max(used_at, excluded.used_at)`, a.ID, a.SHA256, string(record.JSON(a)), now); err != nil {
			return err
		}
	}
	return nil
}

// Use stores, in the caller's transaction, that the journal of a session names attachments.
func Use(ctx context.Context, tx *sql.Tx, session string, list []transcript.Attachment) error {
	if err := Save(ctx, tx, list); err != nil {
		return err
	}
	for _, a := range list {
		if _, err := tx.ExecContext(ctx, `INSERT INTO attachment_use (session, attachment) VALUES (?, ?) ON CONFLICT DO NOTHING`, session, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// keep saves records in a transaction of its own.
func (l *Library) keep(ctx context.Context, list []transcript.Attachment) error {
	if len(list) == 0 {
		return nil
	}
	if err := l.deps.Store.Write(ctx, func(tx *sql.Tx) error { return Save(ctx, tx, list) }); err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	return nil
}

// unnamed selects the records that no draft, no queue and no journal names.
func (l *Library) unnamed() string {
	return `NOT EXISTS (SELECT 1 FROM attachment_use u WHERE u.attachment = attachment.id) AND id NOT IN (` + l.deps.NamedBy + `)`
}

// Forget removes the records that nothing has named for a while. The blobs go with the next sweep.
func (l *Library) Forget(ctx context.Context) error {
	before := time.Now().Add(-l.deps.Unnamed).UnixMilli()
	var due bool
	err := l.deps.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM attachment WHERE used_at < ? AND `+l.unnamed()+`)`, before).Scan(&due)
	if err != nil || !due {
		return err
	}
	return l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM attachment WHERE used_at < ? AND `+l.unnamed(), before)
		return err
	})
}

func query(ctx context.Context, db *store.DB, text string, args ...any) ([]transcript.Attachment, error) {
	return record.Query(ctx, db.Read(), record.ScanJSON[transcript.Attachment], text, args...)
}
