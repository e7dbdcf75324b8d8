package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
	"deskhand/backend/startmode"
)

// startRoutes adds the routes about the mode and the model of new conversations.
func (c *Client) startRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("getStart", http.MethodGet, "agents/{id}/start", "The mode and the model in which a new conversation with an agent begins, and what else it offers", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Cwd   string `query:"cwd" maxLength:"4096" doc:"The directory of the conversation; without one, what holds for all in which nothing else was chosen"`
			Place string `query:"place" maxLength:"64" doc:"Where: local when it is left out"`
			Mode  string `query:"mode" maxLength:"1024" doc:"Answer as if this mode had been chosen"`
		},
		) (*body[session.StartMode], error) {
			return answer(s.StartMode(ctx, in.ID, in.Place, in.Cwd, in.Mode))
		})
	huma.Register(c.api, op("chooseStart", http.MethodPut, "agents/{id}/start", "Choose the mode and the model in which new conversations with an agent begin; what is left out is chosen no more", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Cwd   string `query:"cwd" maxLength:"4096" doc:"The directory of the conversation; without one, what holds for all in which nothing else was chosen"`
			Place string `query:"place" maxLength:"64" doc:"Where: local when it is left out"`
			Body  startmode.Choice
		},
		) (*body[session.StartMode], error) {
			return answer(s.ChooseStart(ctx, in.ID, in.Place, in.Cwd, in.Body))
		})
}
