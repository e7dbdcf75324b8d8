package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// processRoutes adds the routes for the status bar and deskhand ps.
func (c *Client) processRoutes() {
	huma.Register(c.api, op("listProcesses", http.MethodGet, "processes", "What runs because of us, and what it takes of the machine", http.StatusOK),
		func(_ context.Context, in *struct {
			PSS bool `query:"pss" doc:"Tell the memory with what is shared counted once, too, which takes longer"`
		},
		) (*body[session.ProcessList], error) {
			return answer(c.cfg.Sessions.Processes(in.PSS))
		})
}
