package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/processes"
)

// processRoutes adds the routes for the status bar and deskhand ps.
func (c *Client) processRoutes() {
	register(c, op("listProcesses", http.MethodGet, "processes", "List the processes that Deskhand has started, with their memory and processor time", http.StatusOK),
		func(_ context.Context, in *struct {
			PSS bool `query:"pss" doc:"Add the proportional set size, which counts shared memory once; slower"`
		},
		) (*body[processes.ProcessList], error) {
			return answer(c.lib.processes.List(in.PSS))
		})
}
