package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// shellRoutes adds the routes about the person's terminals. terminalRoutes has those for their input and output.
func (c *Client) shellRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("listShells", http.MethodGet, "sessions/{id}/shells", "List the person's terminals of a session", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.ShellList], error) {
			return answer(s.Shells(ctx, in.ID))
		})
	huma.Register(c.api, op("openShell", http.MethodPost, "sessions/{id}/shells", "Start the person's own shell in a terminal", http.StatusCreated),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body session.NewShell
		},
		) (*body[session.Shell], error) {
			return answer(s.OpenShell(ctx, in.ID, in.Body))
		})
}
