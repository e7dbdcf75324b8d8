package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/settings"
)

// keyboardRoutes adds the routes about key bindings.
func (c *Client) keyboardRoutes() {
	register(c, op("getKeyboard", http.MethodGet, "keyboard", "Get the person's key bindings", http.StatusOK),
		func(context.Context, *struct{}) (*body[settings.Keyboard], error) {
			return answer(c.lib.settings.Keyboard(), nil)
		})
	register(c, op("changeKeyboard", http.MethodPut, "keyboard", "Replace all of the person's key bindings", http.StatusOK),
		func(_ context.Context, in *body[settings.KeyboardChange]) (*body[settings.Keyboard], error) {
			return answer(c.lib.settings.ChangeKeyboard(in.Body))
		})
}
