package session

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
)

// ruleRequests provides package rulebook with the stored permissions.
type ruleRequests struct{ *Client }

// find returns the permission of a request; the zero Permission for a request of another kind.
func (c ruleRequests) find(ctx context.Context, request string) (rulebook.Permission, error) {
	found, err := c.requests.Get(ctx, request)
	if err != nil || found.Kind != requests.KindPermission {
		return rulebook.Permission{}, err
	}
	s, err := c.Get(ctx, found.Session)
	whole, _ := c.WholeRequest(ctx, found) // the request stays clipped with an error
	return permissionOf(&whole, &s), err
}

// newest returns the newest stored permissions of sessions that are not deleted.
func (c ruleRequests) newest(ctx context.Context, limit int) ([]rulebook.Permission, error) {
	requests, err := c.requests.Permissions(ctx, limit)
	if err != nil {
		return nil, err
	}
	known := map[string]*Session{}
	list := make([]rulebook.Permission, 0, len(requests))
	for _, r := range requests {
		s := known[r.Session]
		if s == nil {
			rows, err := query(ctx, c.cfg.Store.Read(), scanSession, "SELECT "+sessionColumns+sessionFrom+"WHERE s.id = ?", r.Session)
			if err != nil {
				return nil, err
			}
			if len(rows) == 0 {
				continue
			}
			s = &rows[0].Session
			known[r.Session] = s
		}
		list = append(list, permissionOf(&r, s))
	}
	return list, nil
}

// workspaceOf returns the id of a session's workspace; of a deleted session only with deleted.
func (c ruleRequests) workspaceOf(ctx context.Context, session string, deleted bool) (id string, err error) {
	err = c.cfg.Store.Read().QueryRowContext(ctx, `SELECT workspace FROM session WHERE id = ? AND (deleted_at = 0 OR ?)`, session, deleted).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound(session)
	}
	return id, err
}

// judgeAgain has every loaded conversation judge its waiting permissions by the current rules.
func (c ruleRequests) judgeAgain() {
	c.mu.Lock()
	live := slices.Collect(maps.Values(c.live))
	c.mu.Unlock()
	for _, v := range live { // all of them, since a conversation's view shows a waiting permission only once the step is stored
		c.background.Start(func() { v.post(v.inbox.judgeWaiting) })
	}
}

func permissionOf(r *requests.Request, s *Session) rulebook.Permission {
	return rulebook.Permission{Request: r.ID, Title: r.Title, At: r.CreatedAt, Asked: askedOf(r), Subject: subjectOf(s)}
}
