package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// LocalAPI is the state of the API on this machine, besides the window and the private socket.
type LocalAPI struct {
	On      bool   `json:"on"`
	URL     string `json:"url,omitempty" doc:"URL of the API while it is served"`
	Fixed   bool   `json:"fixed" doc:"This program exists to serve the API, and cannot stop serving it"`
	Problem string `json:"problem,omitempty" doc:"Reason that the API is not served although it is switched on"`
}

type tokenList struct {
	Items []Token `json:"items"`
}

// Audit is a page of the last calls.
type Audit struct {
	Items []Call `json:"items" doc:"Calls, the oldest first"`
	More  bool   `json:"more" doc:"More calls exist: later calls when after was given, earlier calls otherwise"`
	Kept  int    `json:"kept" doc:"Number of calls that are kept"`
}

// accessRoutes adds the routes about tokens and the audit.
func (c *Client) accessRoutes() {
	c.tokenRoutes()
	register(c, op("audit", http.MethodGet, "audit", "List the last calls of the API on this machine, without calls of the window, calls over the private socket, and calls that only wait for events", http.StatusOK),
		func(_ context.Context, in *struct {
			After int64 `query:"after" minimum:"0" doc:"Only calls after this seq; 0 = the last calls"`
			Limit int   `query:"limit" default:"200" minimum:"1" maximum:"2000"`
		},
		) (*body[Audit], error) {
			list, more := c.cfg.Access.Calls(in.After, in.Limit)
			return answer(Audit{Items: list, More: more, Kept: keptCalls}, c.cfg.Access.auditLost)
		})
	register(c, op("getLocalApi", http.MethodGet, "local-api", "Tell whether the API is served on this machine, and at which URL", http.StatusOK),
		func(context.Context, *struct{}) (*body[LocalAPI], error) { return answer(c.cfg.Local(), nil) })
	register(c, op("switchLocalApi", http.MethodPut, "local-api", "Start or stop serving the API on this machine", http.StatusOK),
		func(ctx context.Context, in *body[localAPIWish]) (*body[LocalAPI], error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return answer(c.cfg.SwitchLocal(ctx, in.Body.On))
		})
}

func (c *Client) tokenRoutes() {
	register(c, op("listTokens", http.MethodGet, "tokens", "List the tokens that people have made for the API on this machine", http.StatusOK),
		func(context.Context, *struct{}) (*body[tokenList], error) {
			return answer(tokenList{c.cfg.Access.Tokens()}, c.cfg.Access.tokensLost)
		})
	register(c, op("makeToken", http.MethodPost, "tokens", "Make a token; the token itself is returned once", http.StatusCreated),
		func(ctx context.Context, in *body[NewToken]) (*body[MadeToken], error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return answer(c.cfg.Access.Make(ctx, in.Body))
		})
	huma.Register(c.api, op("revokeToken", http.MethodDelete, "tokens/{id}", "Revoke a token, and end the calls that use it", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return done(c.cfg.Access.Revoke(ctx, in.ID))
		})
}

// localAPIWish turns the API for other programs of this machine on or off.
type localAPIWish struct {
	On bool `json:"on"`
}
