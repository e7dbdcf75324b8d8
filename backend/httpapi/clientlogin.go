package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/agents"
	"deskhand/backend/roster"
)

type loginWish struct {
	Method string            `json:"method" minLength:"1" maxLength:"200" doc:"Id of one of the agent's login methods"`
	Values map[string]string `json:"values,omitempty" doc:"Values by the names of the method's vars; an empty value keeps the stored value"`
}

// loginRoutes adds the routes for signing in to an agent and out.
func (c *Client) loginRoutes() {
	register(c, op("loginMethods", http.MethodGet, "agents/{id}/login", "List the login methods of an agent. An agent that was not asked yet is started", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[agents.LoginMethods], error) {
			return answer(c.cfg.Roster.Logins().Methods(ctx, in.ID))
		})
	register(c, op("beginLogin", http.MethodPost, "agents/{id}/login", "Begin a login; events report the progress", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body loginWish
		},
		) (*body[roster.Login], error) {
			return answer(c.cfg.Roster.Logins().Begin(ctx, in.ID, in.Body.Method, in.Body.Values))
		})
	register(c, op("signedIn", http.MethodPost, "agents/{id}/signed-in", "Report that somebody has signed in by other means: the login is checked, then refused prompts are retried; events report the progress", http.StatusAccepted),
		func(ctx context.Context, in *byID) (*body[roster.Login], error) {
			return answer(c.cfg.Roster.Logins().SignedIn(ctx, in.ID))
		})
	huma.Register(c.api, op("logout", http.MethodPost, "agents/{id}/logout", "Sign out of an agent, and delete the values that are kept for the agent", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(c.cfg.Roster.Logins().Logout(ctx, in.ID))
		})
	register(c, op("getLogin", http.MethodGet, "logins/{id}", "Get a login of this run of the program", http.StatusOK),
		func(_ context.Context, in *byID) (*body[roster.Login], error) {
			return answer(c.cfg.Roster.Logins().Get(in.ID))
		})
	huma.Register(c.api, op("cancelLogin", http.MethodDelete, "logins/{id}", "Cancel a login; answers when nothing of the login is left", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(c.cfg.Roster.Logins().Cancel(ctx, in.ID))
		})
}
