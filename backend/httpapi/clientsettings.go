package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/settings"
)

// settingsRoutes adds the routes for the Settings screen.
func (c *Client) settingsRoutes() {
	register(c, op("getSettings", http.MethodGet, "settings", "Get the settings of the program", http.StatusOK),
		func(context.Context, *struct{}) (*body[settings.Settings], error) {
			return answer(c.lib.settings.Get(), nil)
		})
	register(c, op("changeSettings", http.MethodPatch, "settings", "Change settings; absent settings stay as they are", http.StatusOK),
		func(_ context.Context, in *body[settings.SettingsPatch]) (*body[settings.Settings], error) {
			return answer(c.lib.settings.Change(in.Body))
		})
}
