package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// LocalAPI is the state of the API on this machine, besides the window and the private socket.
type LocalAPI struct {
	On      bool   `json:"on"`
	URL     string `json:"url,omitempty" doc:"Where, while it is on"`
	Fixed   bool   `json:"fixed" doc:"It is what this program is for, and cannot be switched off"`
	Problem string `json:"problem,omitempty" doc:"Why it is not served although it should be"`
}

type tokenList struct {
	Items []Token `json:"items"`
}

// Audit is a page of the last calls.
type Audit struct {
	Items []Call `json:"items" doc:"The oldest first"`
	More  bool   `json:"more" doc:"There are further ones: later than these with after, earlier without"`
	Kept  int    `json:"kept" doc:"How many are kept"`
}

// accessRoutes adds the routes about tokens and the audit.
func (c *Client) accessRoutes() {
	c.tokenRoutes()
	huma.Register(c.api, op("audit", http.MethodGet, "audit", "The last calls over the API on this machine. Those of the window and of the private socket are not among them, nor those that only wait for news", http.StatusOK),
		func(_ context.Context, in *struct {
			After int64 `query:"after" minimum:"0" doc:"Those after this seq; 0 = the last ones"`
			Limit int   `query:"limit" default:"200" minimum:"1" maximum:"2000"`
		},
		) (*body[Audit], error) {
			list, more := c.cfg.Access.Calls(in.After, in.Limit)
			return answer(Audit{Items: list, More: more, Kept: keptCalls}, nil)
		})
	huma.Register(c.api, op("getLocalApi", http.MethodGet, "local-api", "Whether the API is served on this machine, and where", http.StatusOK),
		func(context.Context, *struct{}) (*body[LocalAPI], error) { return answer(c.cfg.Local(), nil) })
	huma.Register(c.api, op("switchLocalApi", http.MethodPut, "local-api", "Serve the API on this machine, or serve it no more", http.StatusOK),
		func(ctx context.Context, in *body[localAPIWish]) (*body[LocalAPI], error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return answer(c.cfg.SwitchLocal(ctx, in.Body.On))
		})
}

func (c *Client) tokenRoutes() {
	huma.Register(c.api, op("listTokens", http.MethodGet, "tokens", "The tokens that people have made for the API on this machine", http.StatusOK),
		func(context.Context, *struct{}) (*body[tokenList], error) {
			return answer(tokenList{c.cfg.Access.Tokens()}, nil)
		})
	huma.Register(c.api, op("makeToken", http.MethodPost, "tokens", "Make a token; what it is, is told once", http.StatusCreated),
		func(ctx context.Context, in *body[NewToken]) (*body[MadeToken], error) {
			if err := ownCaller(ctx); err != nil {
				return nil, err
			}
			return answer(c.cfg.Access.Make(ctx, in.Body))
		})
	huma.Register(c.api, op("revokeToken", http.MethodDelete, "tokens/{id}", "End a token, and the calls that run with it", http.StatusNoContent),
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
