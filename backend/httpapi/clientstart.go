package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/startmode"
)

// startRoutes adds the routes about the mode and the model of new conversations.
func (c *Client) startRoutes() {
	s := c.cfg.Sessions
	register(c, op("getStart", http.MethodGet, "agents/{id}/start", "Get the mode and the model in which new conversations with an agent begin, and the other modes and models", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Cwd   string `query:"cwd" maxLength:"4096" doc:"Directory of the conversation; absent = the choice for all directories without a choice of their own"`
			Place string `query:"place" maxLength:"64" doc:"Place of the directory; local when absent"`
			Mode  string `query:"mode" maxLength:"1024" doc:"Answer as if this mode had been chosen"`
		},
		) (*body[startmode.StartMode], error) {
			return answer(s.Starts().For(ctx, in.ID, in.Place, in.Cwd, in.Mode))
		})
	register(c, op("chooseStart", http.MethodPut, "agents/{id}/start", "Choose the mode and the model in which new conversations with an agent begin; an absent choice is removed", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Cwd   string `query:"cwd" maxLength:"4096" doc:"Directory of the conversation; absent = the choice for all directories without a choice of their own"`
			Place string `query:"place" maxLength:"64" doc:"Place of the directory; local when absent"`
			Body  startmode.Choice
		},
		) (*body[startmode.StartMode], error) {
			return answer(s.Starts().Choose(ctx, in.ID, in.Place, in.Cwd, in.Body))
		})
}
