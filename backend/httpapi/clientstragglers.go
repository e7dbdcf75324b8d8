package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// stragglerRoutes adds the routes for ending the commands that a stopped turn has left running.
func (c *Client) stragglerRoutes() {
	s := c.cfg.Sessions
	register(c, op("listStragglers", http.MethodGet, "sessions/{id}/stragglers", "List the commands of stopped turns that still run", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.StragglerList], error) {
			return answer(s.Stragglers().List(ctx, in.ID))
		})
	huma.Register(c.api, op("endStraggler", http.MethodPost, "sessions/{id}/stragglers/{entry}/end", "End a command of a stopped turn, with all processes that it started", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Entry string `path:"entry" maxLength:"64" doc:"Id of the straggler's entry; a straggler that has ended is no error"`
		},
		) (*none, error) {
			return done(s.Stragglers().End(ctx, in.ID, in.Entry))
		})
}
