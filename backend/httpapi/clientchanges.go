package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/undo"
)

// maxChosen has room for the names of all hunks of a very large change.
const maxChosen = 8 << 20

// changeRoutes adds the routes about the agents' changes and their undo.
func (c *Client) changeRoutes() {
	changes := c.lib.undo
	register(c, op("changes", http.MethodGet, "sessions/{id}/changes", "List the changes of agents in the directory: of one turn (the newest by default), or since the start", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"64"`
			undo.ChangeScope
		},
		) (*body[undo.Changes], error) {
			return answer(changes.Changes(ctx, in.ID, in.ChangeScope))
		})
	register(c, op("changeStat", http.MethodGet, "sessions/{id}/changes/stat", "Get the size of the changes of all turns", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[undo.ChangeStat], error) {
			return answer(changes.Stat(ctx, in.ID))
		})
	register(c, op("fileChanges", http.MethodGet, "sessions/{id}/changes/file", "Get the changes of one file", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"64"`
			undo.ChangeScope
			Path string `query:"path" required:"true" maxLength:"16384"`
		},
		) (*body[undo.FileDiff], error) {
			return answer(changes.FileDiff(ctx, in.ID, in.ChangeScope, in.Path))
		})
	keep := op("keepChanges", http.MethodPost, "sessions/{id}/changes/keep", "Mark hunks as accepted, or remove the mark", http.StatusNoContent)
	keep.MaxBodyBytes = maxChosen
	huma.Register(c.api, keep,
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body undo.KeepHunks
		},
		) (*none, error) {
			return done(changes.KeepHunks(ctx, in.ID, in.Body))
		})
	revert := op("revertChanges", http.MethodPost, "sessions/{id}/changes/revert", "Revert hunks and whole files", http.StatusOK)
	revert.MaxBodyBytes = maxChosen
	register(c, revert,
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body undo.RevertChanges
		},
		) (*body[undo.Restored], error) {
			return answer(changes.Revert(ctx, in.ID, in.Body))
		})
	register(c, op("restoreTurn", http.MethodPost, "sessions/{id}/changes/restore", "Revert all changes of a turn, or preview the revert", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body undo.RestoreTurn
		},
		) (*body[undo.Restored], error) {
			return answer(changes.RestoreTurn(ctx, in.ID, in.Body))
		})
	register(c, op("undoRestoration", http.MethodPost, "sessions/{id}/changes/restorations/{restoration}/undo", "Undo a revert or a restoration", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID          string `path:"id" maxLength:"64"`
			Restoration string `path:"restoration" maxLength:"64"`
		},
		) (*body[undo.Restored], error) {
			return answer(changes.UndoRestoration(ctx, in.ID, in.Restoration))
		})
}
