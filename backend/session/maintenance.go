package session

import (
	"context"

	"deskhand/backend/maintenance"
)

// Maintenance returns the maintenance of the data directory.
func (c *Client) Maintenance() *maintenance.Maintainer { return c.maintainer }

func (c *Client) newMaintenance() *maintenance.Maintainer {
	return maintenance.New(maintenance.Deps{
		Store: c.cfg.Store, Logger: c.cfg.Logger, Pace: c.cfg.Unattached,
		Publish: func(kind, session string, rec any) {
			c.feed.publish(Event{Session: session, Type: kind, Data: mustJSON(rec)})
		},
		Writable: c.writable, Running: c.Running, Search: c.cfg.Search,
		Attachments: c.attachments, PruneSnapshots: c.undo.Prune, SnapshotBytes: c.undo.Bytes,
		Workspaces: c.workspaces.List, KnownAgent: c.cfg.Agents.Known, AgentSessions: c.maintainedSessions, SessionsOf: c.sessionsOf,
	})
}

func (c *Client) maintainedSessions(ctx context.Context, agent, before string) (list []maintenance.AgentSession, next string, supported bool, err error) {
	page, err := c.AgentSessions(ctx, agent, "", before)
	for _, s := range page.Items {
		list = append(list, maintenance.AgentSession{ID: s.ACPSessionID, Title: s.Title, Cwd: s.Cwd, Session: s.Session})
	}
	return list, page.Next, page.Supported, err
}
