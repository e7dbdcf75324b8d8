package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
	"deskhand/backend/terminal"
)

type typed struct {
	ID      string `path:"id" maxLength:"64"`
	Type    string `header:"Content-Type" hidden:"true"`
	RawBody []byte `contentType:"application/octet-stream"`
}

// maxTyped is more than anybody pastes into a login.
const maxTyped = 64 << 10

// terminalRoutes adds the routes for a terminal in a window. Logins and people open terminals.
func (c *Client) terminalRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("readTerminal", http.MethodGet, "terminals/{id}", "What a program wrote after a number of bytes, as soon as there is something", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID          string  `path:"id" maxLength:"64"`
			After       int64   `query:"after" minimum:"0" doc:"Bytes"`
			AfterHeader int64   `header:"Deskhand-After" minimum:"0" doc:"Is after, for whoever wants each call to have the same address"`
			Wait        float64 `query:"wait" default:"25" minimum:"0" maximum:"25" doc:"Seconds"`
		},
		) (*body[session.TerminalOutput], error) {
			return answer(s.ReadTerminal(ctx, in.ID, cmp.Or(in.After, in.AfterHeader), time.Duration(in.Wait*float64(time.Second))))
		})
	input := op("typeInTerminal", http.MethodPost, "terminals/{id}/input", "Type", http.StatusNoContent)
	input.MaxBodyBytes = maxTyped
	huma.Register(c.api, input, func(_ context.Context, in *typed) (*none, error) {
		if in.Type != "application/octet-stream" { // a type that no form of a foreign page can send
			return nil, newClientError(http.StatusUnsupportedMediaType, "request.invalid", nil, "what is typed comes as application/octet-stream")
		}
		return done(s.TypeInTerminal(in.ID, in.RawBody))
	})
	huma.Register(c.api, op("resizeTerminal", http.MethodPost, "terminals/{id}/size", "Tell the program the size of its window", http.StatusNoContent),
		func(_ context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				Cols int `json:"cols" minimum:"1" maximum:"1000"`
				Rows int `json:"rows" minimum:"1" maximum:"1000"`
			}
		},
		) (*none, error) {
			return done(s.ResizeTerminal(in.ID, terminal.Size{Cols: in.Body.Cols, Rows: in.Body.Rows}))
		})
	huma.Register(c.api, op("endTerminal", http.MethodDelete, "terminals/{id}", "End the program, and the login that it is for; a terminal of the person is forgotten with it", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(s.EndTerminal(ctx, in.ID))
		})
}
