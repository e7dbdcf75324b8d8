package requests

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"

	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
)

// Library reads stored requests. Any goroutine may call the methods of Library.
type Library struct{ db *store.DB }

// New returns the requests of a database.
func New(db *store.DB) *Library { return &Library{db} }

func (l *Library) list(ctx context.Context, text string, args ...any) ([]Request, error) {
	return record.Query(ctx, l.db.Read(), record.ScanJSON[Request], text, args...)
}

// Get returns a request, whether it waits or has ended. The error is refusal.ErrNotFound for an unknown id.
func (l *Library) Get(ctx context.Context, id string) (Request, error) {
	found, err := l.list(ctx, `SELECT data FROM request WHERE id = ?`, id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("request %s: %w", id, refusal.ErrNotFound)
	}
	if err != nil {
		return Request{}, err
	}
	return found[0], nil
}

// Named returns up to 10 requests whose id begins with a text, the newest first, whether they wait or have ended: a person who answers too
// late is told who has answered.
func (l *Library) Named(ctx context.Context, begins string) ([]Request, error) {
	const afterAll = "~" // sorts after all characters of an id
	return l.list(ctx, `SELECT data FROM request WHERE id >= ? AND id < ? ORDER BY created_at DESC, id DESC LIMIT 10`, begins, begins+afterAll)
}

// Waiting returns every request that waits, the oldest first. Requests that were damaged on the disk are left out.
func (l *Library) Waiting(ctx context.Context) ([]Request, error) {
	return record.Readable[Request](ctx, l.db.Read(), `SELECT data FROM request WHERE status = 'requested' ORDER BY created_at, id`)
}

// SessionsWithWaiting is a query for the ids of the sessions with a request that waits.
const SessionsWithWaiting = `SELECT session FROM request WHERE status = 'requested'`

// WaitingIn returns the requests of a session that wait, the oldest first. Requests that were damaged on the disk are left out.
func (l *Library) WaitingIn(ctx context.Context, session string) ([]Request, error) {
	return record.Readable[Request](ctx, l.db.Read(), `SELECT data FROM request WHERE session = ? AND status = 'requested' ORDER BY created_at, id`, session)
}

// namedOrWaiting selects requests by a JSON list of ids, and those of a session that wait. The plus keeps SQLite from the index by session: few
// requests wait in all sessions together. UNION without ALL would have SQLite go through all requests of all sessions.
const namedOrWaiting = `SELECT data FROM request WHERE id IN (SELECT value FROM json_each(?)
	UNION ALL SELECT id FROM request WHERE status = 'requested' AND +session = ?) ORDER BY created_at, id`

// NamedOrWaiting returns the requests that ids, a JSON list, names, and the requests of a session that wait.
func (l *Library) NamedOrWaiting(ctx context.Context, ids, session string) ([]Request, error) {
	return record.Readable[Request](ctx, l.db.Read(), namedOrWaiting, ids, session)
}

// Of returns all requests of a session, the oldest first.
func (l *Library) Of(ctx context.Context, session string) ([]Request, error) {
	return l.list(ctx, `SELECT data FROM request WHERE session = ? ORDER BY created_at, id`, session)
}

// Permissions returns the newest permissions of sessions that are not deleted.
func (l *Library) Permissions(ctx context.Context, limit int) ([]Request, error) {
	return l.list(ctx, `SELECT r.data FROM request r JOIN session s ON s.id = r.session
		WHERE s.deleted_at = 0 AND CASE WHEN json_valid(r.data) THEN json_extract(r.data, '$.kind') END = 'permission' ORDER BY r.created_at DESC, r.id DESC LIMIT ?`, limit)
}

// FindQuestion finds the request that the id of a question names, and the number of the question in it, or 0 for the whole request. Deskhand's
// own id comes first; of requests with that id of the agent, the waiting one comes before the last.
func (l *Library) FindQuestion(ctx context.Context, session, question string) (found Request, part int, err error) {
	id, _, _ := strings.Cut(question, ".")
	list, err := l.list(ctx, `SELECT data FROM request WHERE id = ? AND session = ?`, id, session)
	if err == nil && len(list) == 0 {
		list, err = l.list(ctx, `SELECT data FROM request
			WHERE session = ? AND json_extract(data, '$.kind') = ? ORDER BY created_at, rowid`, session, KindQuestion)
	}
	if err != nil {
		return found, 0, err
	}
	waiting, known := 0, false
	for _, r := range list {
		n, ok := r.part(question)
		if !ok {
			continue
		}
		if r.Status == lifecycle.StatusRequested {
			waiting++
		}
		if !known || r.Status == lifecycle.StatusRequested || found.Status != lifecycle.StatusRequested {
			found, part, known = r, n, true
		}
	}
	switch {
	case !known:
		return found, 0, fmt.Errorf("question %s: %w", question, refusal.ErrNotFound)
	case waiting > 1:
		return found, 0, &refusal.Error{Code: "question.ambiguous", Params: map[string]string{"question": question}}
	}
	return found, part, nil
}

// Save stores requests, new and changed.
func Save(ctx context.Context, tx *sql.Tx, requests iter.Seq[*Request]) error {
	for r := range requests {
		if _, err := tx.ExecContext(ctx, `INSERT INTO request (id, session, generation, status, data, created_at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET status = excluded.status, data = excluded.data`,
			r.ID, r.Session, r.Generation, r.Status, string(record.JSON(r)), r.CreatedAt.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}
