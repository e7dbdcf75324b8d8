package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// lifecycleRoutes adds the routes that delete, restore and relink sessions.
func (c *Client) lifecycleRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("deleteSession", http.MethodDelete, "sessions/{id}", "Delete a session; for 15 s it can be restored", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID     string `path:"id" maxLength:"64"`
			Undo   bool   `query:"undo" default:"true" doc:"false erases it at once, and answers when nothing of it is stored any more"`
			Unused bool   `query:"unused" doc:"Refuses (session.used) when anything was written, attached, queued or sent in it, and erases it else"`
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
	huma.Register(c.api, op("restoreSession", http.MethodPost, "sessions/{id}/restore", "Take the deletion of a session back", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Session], error) {
			return answer(s.Restore(ctx, in.ID))
		})
	huma.Register(c.api, op("branch", http.MethodGet, "sessions/{id}/branch", "What is checked out where a session works", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Branch], error) {
			return answer(s.Branch(ctx, in.ID))
		})
	huma.Register(c.api, op("starters", http.MethodGet, "sessions/{id}/starters", "What a first message could be about", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Starters], error) {
			return answer(s.Starters(ctx, in.ID))
		})
	huma.Register(c.api, op("listWorkspaces", http.MethodGet, "workspaces", "The directories of all sessions, the most recently used first", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[session.Page[session.KnownWorkspace]], error) {
			items, err := s.Workspaces(ctx)
			return answer(session.Page[session.KnownWorkspace]{Items: items}, err)
		})
	huma.Register(c.api, op("relinkWorkspace", http.MethodPost, "workspaces/{id}/relink", "Tell where a directory is now; its sessions follow", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				Path string `json:"path" minLength:"1" maxLength:"4096" doc:"An absolute path of a directory that is there"`
			}
		},
		) (*body[session.KnownWorkspace], error) {
			return answer(s.Relink(ctx, in.ID, in.Body.Path))
		})
}
