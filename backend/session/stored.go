package session

import (
	"context"
	"maps"
	"slices"

	"deskhand/backend/entries"
	"deskhand/backend/requests"
	"deskhand/backend/store"
)

// The functions of this file read stored sessions, turns and requests for the packages above session.

// Titled is a session's id with its title.
type Titled struct{ ID, Title string }

// Titles returns all sessions that are not deleted, the oldest first.
func Titles(ctx context.Context, db *store.DB) ([]Titled, error) {
	return query(ctx, db.Read(), func(row scanner) (s Titled, err error) { err = row.Scan(&s.ID, &s.Title); return s, err },
		`SELECT id, title FROM session WHERE deleted_at = 0 ORDER BY created_at, id`)
}

// Complete adds the turns and requests that the entries of a transcript name, the running turns, and the waiting requests.
func Complete(ctx context.Context, db *store.DB, id string, t Transcript) (_ Transcript, err error) {
	turns, asked := map[string]bool{}, map[string]bool{}
	for i := range t.Items {
		turns[t.Items[i].Turn] = true
		asked[t.Items[i].Request] = true
	}
	named, err := entries.New(db).NamedOrRunningTurns(ctx, namesOf(turns), id)
	if err != nil {
		return Transcript{}, err
	}
	t.Turns = turnsOf(named)
	t.Requests, err = requests.New(db).NamedOrWaiting(ctx, namesOf(asked), id)
	return t, err
}

// namesOf returns a set of ids as a JSON list.
func namesOf(ids map[string]bool) string { return string(mustJSON(slices.Sorted(maps.Keys(ids)))) }

// Erased reports whether a session is erased, or is being erased. A reader of several rows calls Erased afterwards, since rows may have
// been missing.
func Erased(ctx context.Context, db *store.DB, id string) (is bool, err error) {
	err = db.Read().QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM session WHERE id = ? AND deleted_at <> 1)`, id).Scan(&is)
	return is, err
}

// Stored returns a session as stored, or the live state of a loaded session. Stored loads no conversation.
func (c *Client) Stored(ctx context.Context, id string) (Session, error) {
	r, _, err := c.load(ctx, id, false)
	if err != nil {
		return Session{}, err
	}
	return c.showRow(r), nil
}
