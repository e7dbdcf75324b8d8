package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
	"deskhand/backend/starters"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// lifecycleRoutes adds the routes that delete, restore and relink sessions.
func (c *Client) lifecycleRoutes() {
	s, w := c.cfg.Sessions, c.lib.workspaces
	huma.Register(c.api, op("deleteSession", http.MethodDelete, "sessions/{id}", "Delete a session, which can be restored for 15 s", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID     string `path:"id" maxLength:"64"`
			Undo   bool   `query:"undo" default:"true" doc:"false erases the session at once, and answers when nothing of the session is stored"`
			Unused bool   `query:"unused" doc:"Refuse with session.used when something was written, attached, queued or sent in the session; otherwise erase the session"`
		},
		) (*none, error) {
			if in.Unused {
				return done(s.EraseUnused(ctx, in.ID))
			}
			if !in.Undo {
				return done(s.Erase(ctx, in.ID))
			}
			return done(s.Delete(ctx, in.ID))
		})
	register(c, op("restoreSession", http.MethodPost, "sessions/{id}/restore", "Restore a deleted session", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Session], error) {
			return answer(s.Restore(ctx, in.ID))
		})
	register(c, op("branch", http.MethodGet, "sessions/{id}/branch", "Get the branch that is checked out in a session's directory", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[worktrees.Branch], error) {
			return answer(c.lib.worktrees.Branch(ctx, in.ID))
		})
	register(c, op("starters", http.MethodGet, "starters", "Get the properties of a directory of this machine that suggest a first message", http.StatusOK),
		func(_ context.Context, in *struct {
			Cwd string `query:"cwd" required:"true" maxLength:"4096"`
		},
		) (*body[starters.Starters], error) {
			return answer(starters.In(in.Cwd))
		})
	register(c, op("listWorkspaces", http.MethodGet, "workspaces", "List the directories of all sessions, the most recently used first", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[session.Page[workspace.KnownWorkspace]], error) {
			items, err := w.List(ctx)
			return answer(session.Page[workspace.KnownWorkspace]{Items: items}, err)
		})
	register(c, op("relinkWorkspace", http.MethodPost, "workspaces/{id}/relink", "Set the new path of a directory; its sessions follow", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				Path string `json:"path" minLength:"1" maxLength:"4096" doc:"Absolute path of an existing directory"`
			}
		},
		) (*body[workspace.KnownWorkspace], error) {
			return answer(w.Relink(ctx, in.ID, in.Body.Path))
		})
}
