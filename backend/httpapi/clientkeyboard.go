package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// keyboardRoutes adds the routes about key bindings.
func (c *Client) keyboardRoutes() {
	huma.Register(c.api, op("getKeyboard", http.MethodGet, "keyboard", "Get the person's key bindings", http.StatusOK),
		func(context.Context, *struct{}) (*body[session.Keyboard], error) {
			return answer(c.cfg.Sessions.Keyboard(), nil)
		})
	huma.Register(c.api, op("changeKeyboard", http.MethodPut, "keyboard", "Replace all of the person's key bindings", http.StatusOK),
		func(_ context.Context, in *body[session.KeyboardChange]) (*body[session.Keyboard], error) {
			return answer(c.cfg.Sessions.ChangeKeyboard(in.Body))
		})
}
