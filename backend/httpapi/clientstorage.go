package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// storageRoutes are what tells about the data directory, and proves it.
func (c *Client) storageRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("storage", http.MethodGet, "storage", "What is kept, and what it takes of the disk", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[session.Storage], error) { return answer(s.Storage(ctx)) })
	huma.Register(c.api, op("verify", http.MethodPost, "verify", "Begin to compare what is kept with its journal; one at a time", http.StatusAccepted),
		func(_ context.Context, in *body[session.Verify]) (*body[session.Verification], error) {
			return answer(s.Verify(in.Body))
		})
	huma.Register(c.api, op("verification", http.MethodGet, "verify", "How far the verification is, or what the last one found", http.StatusOK),
		func(context.Context, *struct{}) (*body[session.Verification], error) {
			return answer(s.Verification(), nil)
		})
	huma.Register(c.api, op("cancelVerify", http.MethodDelete, "verify", "End the verification; what it found is kept", http.StatusNoContent),
		func(context.Context, *struct{}) (*none, error) {
			s.CancelVerify()
			return &none{}, nil
		})
}
