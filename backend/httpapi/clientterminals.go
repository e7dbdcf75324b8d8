package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/shells"
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
	s := c.lib.shells
	register(c, op("readTerminal", http.MethodGet, "terminals/{id}", "Read a program's output after a number of bytes; waits until there is some", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID          string  `path:"id" maxLength:"64"`
			After       int64   `query:"after" minimum:"0" doc:"Number of output bytes that the caller has"`
			AfterHeader int64   `header:"Deskhand-After" minimum:"0" doc:"Same as after, for callers that need one address for all calls"`
			Wait        float64 `query:"wait" default:"25" minimum:"0" maximum:"25" doc:"Seconds to wait for output"`
		},
		) (*body[shells.TerminalOutput], error) {
			return answer(s.Read(ctx, in.ID, cmp.Or(in.After, in.AfterHeader), time.Duration(in.Wait*float64(time.Second))))
		})
	input := op("typeInTerminal", http.MethodPost, "terminals/{id}/input", "Write input to a terminal", http.StatusNoContent)
	input.MaxBodyBytes = maxTyped
	huma.Register(c.api, input, func(_ context.Context, in *typed) (*none, error) {
		if in.Type != "application/octet-stream" { // a type that no form of a foreign page can send
			return nil, newClientError(http.StatusUnsupportedMediaType, "request.invalid", nil, "what is typed comes as application/octet-stream")
		}
		return done(s.Type(in.ID, in.RawBody))
	})
	huma.Register(c.api, op("resizeTerminal", http.MethodPost, "terminals/{id}/size", "Set the size of a terminal's window", http.StatusNoContent),
		func(_ context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				Cols int `json:"cols" minimum:"1" maximum:"1000"`
				Rows int `json:"rows" minimum:"1" maximum:"1000"`
			}
		},
		) (*none, error) {
			return done(s.Resize(in.ID, terminal.Size{Cols: in.Body.Cols, Rows: in.Body.Rows}))
		})
	huma.Register(c.api, op("endTerminal", http.MethodDelete, "terminals/{id}", "End a terminal's program, and the login that uses the terminal; a terminal of the person is also forgotten", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(s.End(ctx, in.ID))
		})
}
