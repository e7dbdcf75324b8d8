package app

import (
	"net/http"
	"strings"
)

// mount answers the API from ours and everything else from the assets. Middleware and not the asset server's own Handler:
// that one is asked last and, in development, only after the frontend's server.
func mount(ours http.Handler) func(http.Handler) http.Handler {
	return func(assets http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/client/") {
				ours.ServeHTTP(w, r)
				return
			}
			assets.ServeHTTP(w, r)
		})
	}
}
