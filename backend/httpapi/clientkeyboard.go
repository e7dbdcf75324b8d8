package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/settings"
)

// keyboardRoutes adds the routes about key bindings.
func (c *Client) keyboardRoutes() {
	huma.Register(c.api, op("getKeyboard", http.MethodGet, "keyboard", "Get the person's key bindings", http.StatusOK),
		func(context.Context, *struct{}) (*body[settings.Keyboard], error) {
			return answer(c.cfg.Settings.Keyboard(), nil)
		})
	huma.Register(c.api, op("changeKeyboard", http.MethodPut, "keyboard", "Replace all of the person's key bindings", http.StatusOK),
		func(_ context.Context, in *body[settings.KeyboardChange]) (*body[settings.Keyboard], error) {
			return answer(c.cfg.Settings.ChangeKeyboard(in.Body))
		})
}
