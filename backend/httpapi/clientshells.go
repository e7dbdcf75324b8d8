package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/shells"
)

// shellRoutes adds the routes about the person's terminals. terminalRoutes has those for their input and output.
func (c *Client) shellRoutes() {
	s := c.lib.shells
	register(c, op("listShells", http.MethodGet, "sessions/{id}/shells", "List the person's terminals of a session", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[shells.ShellList], error) {
			return answer(s.List(ctx, in.ID))
		})
	register(c, op("openShell", http.MethodPost, "sessions/{id}/shells", "Start the person's own shell in a terminal", http.StatusCreated),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body shells.NewShell
		},
		) (*body[shells.Shell], error) {
			return answer(s.Open(ctx, in.ID, in.Body))
		})
}
