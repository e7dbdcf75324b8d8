package session

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/lifecycle"
	"deskhand/backend/subagents"
)

// familyOf defines the table family: the ids of the sessions of all subagents of a session, and of theirs.
const familyOf = `WITH RECURSIVE family (id) AS (SELECT id FROM session WHERE parent = ?1 UNION SELECT s.id FROM session s JOIN family f ON s.parent = f.id) `

// ofFamily calls f with the id of a session and of the sessions of all its subagents.
func ofFamily(ctx context.Context, c *Client, id string, f func(id string) error) error {
	members, err := query(ctx, c.cfg.Store.Read(), scanText, familyOf+`SELECT id FROM family`, id)
	for _, member := range append(members, id) {
		err = errors.Join(err, f(member))
	}
	return err
}

// childOf returns the session of a subagent in the process of a session, see core.child.
func childOf(c *Client, process, acpID, teller string) (*subagents.Child, error) {
	ctx := c.lasting()
	stored, err := query(ctx, c.cfg.Store.Read(), scanText, familyOf+`SELECT s.id FROM family f JOIN session s ON s.id = f.id
		WHERE s.acp_session_id = ?2 AND s.deleted_at = 0 ORDER BY s.created_at DESC LIMIT 1`, process, acpID)
	if err != nil {
		return nil, err
	}
	var v *conversation
	switch {
	case len(stored) > 0:
		v, err = c.conversation(ctx, stored[0])
	case teller == "":
		return nil, nil //nolint:nilnil // there is none
	default:
		var of *conversation
		if of, err = c.conversation(ctx, teller); err == nil {
			v, err = c.store(ctx, newChild(of.look(), acpID))
		}
	}
	if err != nil {
		return nil, err
	}
	return &subagents.Child{Session: v.id, Known: len(stored) > 0, AtWork: func() bool { return v.look().Turn != nil }, Join: v.join}, nil
}

// newChild returns the row of a new session below another.
func newChild(of Session, acpID string) row {
	now := Time{Time: time.Now()}
	return row{Session: Session{
		ID: uuid.Must(uuid.NewV7()).String(), Place: of.Place, Workspace: of.Workspace, Cwd: of.Cwd, Directories: of.Directories, Agent: of.Agent,
		ACPSessionID: acpID, ProtocolVersion: 1, Phase: lifecycle.Closed, Subagent: &Subagent{Parent: of.ID}, CreatedAt: now, UpdatedAt: now,
	}}
}
