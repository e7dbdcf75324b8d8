package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// placeRoutes are where agents can run. Of a token they tell nothing.
func (c *Client) placeRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("listPlaces", http.MethodGet, "places", "Where agents can run: this machine, and runtimes elsewhere", http.StatusOK),
		func(context.Context, *struct{}) (*body[session.Page[session.Place]], error) {
			return answer(session.Page[session.Place]{Items: s.Places()}, nil)
		})
	huma.Register(c.api, op("addPlace", http.MethodPost, "places", "Add a runtime elsewhere, and ask it what it is", http.StatusCreated),
		func(ctx context.Context, in *body[session.NewPlace]) (*body[session.Place], error) {
			return answer(s.AddPlace(ctx, in.Body))
		})
	huma.Register(c.api, op("changePlace", http.MethodPatch, "places/{id}", "Change a runtime's name, URL or token", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body session.PlacePatch
		},
		) (*body[session.Place], error) {
			return answer(s.ChangePlace(ctx, in.ID, in.Body))
		})
	huma.Register(c.api, op("removePlace", http.MethodDelete, "places/{id}", "Forget a runtime that no session uses", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.PlaceRemoved], error) {
			return answer(s.RemovePlace(ctx, in.ID))
		})
	huma.Register(c.api, op("checkPlace", http.MethodPost, "places/{id}/check", "Ask a runtime whether it is there, what it is and whether it takes the token", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Place], error) {
			return answer(s.CheckPlace(ctx, in.ID))
		})
	huma.Register(c.api, op("listPlaceAgents", http.MethodGet, "places/{id}/agents", "The agents that a runtime elsewhere can start", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Page[session.PlaceAgent]], error) {
			list, err := s.PlaceAgents(ctx, in.ID)
			return answer(session.Page[session.PlaceAgent]{Items: list}, err)
		})
	huma.Register(c.api, op("listPlaceDirectories", http.MethodGet, "places/{id}/directories", "What a directory picker shows of a place elsewhere; a runtime may not tell", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Path string `query:"path" maxLength:"4096"`
		},
		) (*body[session.FarDirectories], error) {
			return answer(s.PlaceDirectories(ctx, in.ID, in.Path))
		})
}
