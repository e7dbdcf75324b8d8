package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/session"
)

// maxChosen has room for the names of all hunks of a very large change.
const maxChosen = 8 << 20

// changeRoutes adds the routes about the agents' changes and their undo.
func (c *Client) changeRoutes() {
	s := c.cfg.Sessions
	huma.Register(c.api, op("changes", http.MethodGet, "sessions/{id}/changes", "What agents changed in the directory: in a turn, the newest if none is named, or since the start", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"64"`
			session.ChangeScope
		},
		) (*body[session.Changes], error) {
			return answer(s.Changes(ctx, in.ID, in.ChangeScope))
		})
	huma.Register(c.api, op("fileChanges", http.MethodGet, "sessions/{id}/changes/file", "What became of one file", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"64"`
			session.ChangeScope
			Path string `query:"path" required:"true" maxLength:"16384"`
		},
		) (*body[session.FileDiff], error) {
			return answer(s.FileDiff(ctx, in.ID, in.ChangeScope, in.Path))
		})
	keep := op("keepChanges", http.MethodPost, "sessions/{id}/changes/keep", "Mark hunks as looked at and wanted, or not", http.StatusNoContent)
	keep.MaxBodyBytes = maxChosen
	huma.Register(c.api, keep,
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body session.KeepHunks
		},
		) (*none, error) {
			return done(s.KeepHunks(ctx, in.ID, in.Body))
		})
	revert := op("revertChanges", http.MethodPost, "sessions/{id}/changes/revert", "Take back hunks, and whole files", http.StatusOK)
	revert.MaxBodyBytes = maxChosen
	huma.Register(c.api, revert,
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body session.RevertChanges
		},
		) (*body[session.Restored], error) {
			return answer(s.Revert(ctx, in.ID, in.Body))
		})
	huma.Register(c.api, op("restoreTurn", http.MethodPost, "sessions/{id}/changes/restore", "Take back all that a turn changed, or tell what that would do", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body session.RestoreTurn
		},
		) (*body[session.Restored], error) {
			return answer(s.RestoreTurn(ctx, in.ID, in.Body))
		})
	huma.Register(c.api, op("undoRestoration", http.MethodPost, "sessions/{id}/changes/restorations/{restoration}/undo", "Take a revert or a restoration back", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID          string `path:"id" maxLength:"64"`
			Restoration string `path:"restoration" maxLength:"64"`
		},
		) (*body[session.Restored], error) {
			return answer(s.UndoRestoration(ctx, in.ID, in.Restoration))
		})
}
