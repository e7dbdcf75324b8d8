package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/session"
	"deskhand/backend/worktrees"
)

// worktreeRoutes adds the routes about the worktrees of sessions. A worktree is made together with its session.
func (c *Client) worktreeRoutes() {
	w := c.lib.worktrees
	register(c, op("planWorktree", http.MethodGet, "worktrees/plan", "Describe the worktree that a new session in a directory would get, or the reason that there can be none", http.StatusOK),
		func(ctx context.Context, in *struct {
			Cwd  string `query:"cwd" required:"true" minLength:"1" maxLength:"4096"`
			Name string `query:"name" maxLength:"1000" doc:"Purpose of the worktree in a person's words; the branch is named after it"`
			Base string `query:"base" maxLength:"1000" doc:"What the worktree would begin with: a branch, a remote's branch or a commit; absent for the commit that is checked out"`
		},
		) (*body[worktrees.WorktreePlan], error) {
			return answer(w.Plan(ctx, in.Cwd, in.Name, in.Base))
		})
	register(c, op("previewWorktreeRemoval", http.MethodGet, "sessions/{id}/worktree", "Describe what removing a session's worktree would keep and delete", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[worktrees.WorktreeRemoval], error) {
			return answer(w.Preview(ctx, in.ID))
		})
	register(c, op("removeWorktree", http.MethodDelete, "sessions/{id}/worktree", "Remove the worktree of a session: uncommitted files are kept first, ignored files are deleted", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID      string `path:"id" maxLength:"64"`
			Preview bool   `query:"preview" doc:"Return what would be kept and removed, as GET does, and change nothing"`
		},
		) (*body[worktrees.WorktreeRemoval], error) {
			if in.Preview {
				return answer(w.Preview(ctx, in.ID))
			}
			return answer(w.Remove(ctx, in.ID))
		})
	register(c, op("restoreWorktree", http.MethodPost, "sessions/{id}/worktree/restore", "Restore a removed worktree as it was", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Session], error) {
			if err := w.Restore(ctx, in.ID); err != nil {
				return nil, problemOf(err)
			}
			return answer(c.cfg.Sessions.Get(ctx, in.ID))
		})
}
