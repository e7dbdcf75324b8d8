package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/agents"
	"deskhand/backend/session"
)

type loginWish struct {
	Method string            `json:"method" minLength:"1" maxLength:"200" doc:"Of the agent's ways to sign in"`
	Values map[string]string `json:"values,omitempty" doc:"By name, where the method has vars; an empty one keeps what there is"`
}

// loginRoutes adds the routes for signing in to an agent and out.
func (c *Client) loginRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("loginMethods", http.MethodGet, "agents/{id}/login", "How one signs in to an agent. It is started when it has not been asked yet", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[agents.LoginMethods], error) {
			return answer(s.LoginMethods(ctx, in.ID))
		})
	huma.Register(c.api, op("beginLogin", http.MethodPost, "agents/{id}/login", "Begin to sign in; events tell how it goes on", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body loginWish
		},
		) (*body[session.Login], error) {
			return answer(s.BeginLogin(ctx, in.ID, in.Body.Method, in.Body.Values))
		})
	huma.Register(c.api, op("signedIn", http.MethodPost, "agents/{id}/signed-in", "Say that somebody has signed in by other means: that is proven, and then what was refused is tried again; events tell how it goes on", http.StatusAccepted),
		func(ctx context.Context, in *byID) (*body[session.Login], error) {
			return answer(s.SignedIn(ctx, in.ID))
		})
	huma.Register(c.api, op("logout", http.MethodPost, "agents/{id}/logout", "Sign out of an agent, and forget the values that are kept for it", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(s.Logout(ctx, in.ID))
		})
	huma.Register(c.api, op("getLogin", http.MethodGet, "logins/{id}", "One attempt to sign in, of this run of the program", http.StatusOK),
		func(_ context.Context, in *byID) (*body[session.Login], error) {
			return answer(s.GetLogin(in.ID))
		})
	huma.Register(c.api, op("cancelLogin", http.MethodDelete, "logins/{id}", "End an attempt to sign in, and answer when nothing of it is left", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(s.CancelLogin(ctx, in.ID))
		})
}
