package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// worktreeRoutes adds the routes about the worktrees of sessions. A worktree is made together with its session.
func (c *Client) worktreeRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("planWorktree", http.MethodGet, "worktrees/plan", "What a work tree of a session's own would be like in a directory, or why there can be none", http.StatusOK),
		func(ctx context.Context, in *struct {
			Cwd  string `query:"cwd" required:"true" minLength:"1" maxLength:"4096"`
			Name string `query:"name" maxLength:"1000" doc:"What it is for, in a person's words: its branch is named after it"`
		},
		) (*body[session.WorktreePlan], error) {
			return answer(s.PlanWorktree(ctx, in.Cwd, in.Name))
		})
	huma.Register(c.api, op("previewWorktreeRemoval", http.MethodGet, "sessions/{id}/worktree", "What the removal of a session's work tree would keep, and what would go", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.WorktreeRemoval], error) {
			return answer(s.PreviewRemoval(ctx, in.ID))
		})
	huma.Register(c.api, op("removeWorktree", http.MethodDelete, "sessions/{id}/worktree", "Remove the work tree of a session: what nobody has committed is kept first, what is ignored goes", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID      string `path:"id" maxLength:"64"`
			Preview bool   `query:"preview" doc:"Tells what would be kept and what would go, as GET does, and changes nothing"`
		},
		) (*body[session.WorktreeRemoval], error) {
			if in.Preview {
				return answer(s.PreviewRemoval(ctx, in.ID))
			}
			return answer(s.RemoveWorktree(ctx, in.ID))
		})
	huma.Register(c.api, op("restoreWorktree", http.MethodPost, "sessions/{id}/worktree/restore", "Bring a removed work tree back as it was", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Session], error) {
			return answer(s.RestoreWorktree(ctx, in.ID))
		})
}
