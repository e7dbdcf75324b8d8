package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/remotes"
	"deskhand/backend/session"
)

// placeRoutes registers the routes of the places where agents can run. No answer has a token.
func (c *Client) placeRoutes() {
	places := c.cfg.Remotes
	register(c, op("listPlaces", http.MethodGet, "places", "List the places where agents can run: this machine, and remote runtimes", http.StatusOK),
		func(context.Context, *struct{}) (*body[session.Page[remotes.Place]], error) {
			return answer(session.Page[remotes.Place]{Items: places.List()}, nil)
		})
	register(c, op("addPlace", http.MethodPost, "places", "Add a remote runtime, and ask it for its software", http.StatusCreated),
		func(ctx context.Context, in *body[remotes.NewPlace]) (*body[remotes.Place], error) {
			return answer(places.Add(ctx, in.Body))
		})
	register(c, op("changePlace", http.MethodPatch, "places/{id}", "Change a remote runtime's name, URL or token", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body remotes.PlacePatch
		},
		) (*body[remotes.Place], error) {
			return answer(places.Change(ctx, in.ID, in.Body))
		})
	register(c, op("removePlace", http.MethodDelete, "places/{id}", "Forget a remote runtime that no session uses", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[remotes.PlaceRemoved], error) {
			return answer(places.Remove(ctx, in.ID))
		})
	register(c, op("checkPlace", http.MethodPost, "places/{id}/check", "Check that a remote runtime answers and accepts its token, and which software it runs", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[remotes.Place], error) {
			return answer(places.Check(ctx, in.ID))
		})
	register(c, op("listPlaceAgents", http.MethodGet, "places/{id}/agents", "List the agents that a remote runtime can start", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[session.Page[remotes.PlaceAgent]], error) {
			list, err := places.Agents(ctx, in.ID)
			return answer(session.Page[remotes.PlaceAgent]{Items: list}, err)
		})
	register(c, op("listPlaceDirectories", http.MethodGet, "places/{id}/directories", "List the subdirectories of a directory at a place, for a directory picker; a runtime may refuse", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Path string `query:"path" maxLength:"4096"`
		},
		) (*body[remotes.FarDirectories], error) {
			return answer(places.Directories(ctx, in.ID, in.Path))
		})
}
