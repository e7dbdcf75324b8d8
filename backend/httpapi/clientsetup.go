package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/setup"
	"deskhand/backend/shells"
)

// setupRoutes adds the routes about the set-ups of worktrees, and about the commands of projects.
func (c *Client) setupRoutes() {
	l := c.cfg.Setups
	register(c, op("setup", http.MethodGet, "sessions/{id}/setup", "Describe how the worktree of a session is set up, and the commands of its project", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[setup.ProjectReport], error) {
			return answer(l.Report(ctx, in.ID))
		})
	register(c, op("orderSetup", http.MethodPost, "sessions/{id}/setup", "Run the set-up of a session's worktree, stop it, or have agents start without it", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body setup.Order
		},
		) (*body[setup.ProjectReport], error) {
			if err := l.Obey(ctx, in.ID, in.Body); err != nil {
				return nil, problemOf(err)
			}
			return answer(l.Report(ctx, in.ID))
		})
	register(c, op("runProject", http.MethodPost, "sessions/{id}/setup/run", "Run the app or the tests of a project in a new terminal of a session", http.StatusCreated),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body setup.NewRun
		},
		) (*body[shells.Shell], error) {
			return answer(l.Run(ctx, in.ID, in.Body))
		})
}
