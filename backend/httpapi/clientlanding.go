package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/landing"
)

// landingRoutes adds the routes that bring a session's work into the history of its repository.
func (c *Client) landingRoutes() {
	l := c.cfg.Landing
	register(c, op("repositoryStatus", http.MethodGet, "sessions/{id}/repository", "List what is not committed in the repository of a session, and where its branch stands", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[landing.RepositoryStatus], error) {
			return answer(l.Status(ctx, in.ID))
		})
	register(c, op("uncommittedFile", http.MethodGet, "sessions/{id}/repository/file", "Get a file as it is in the last commit and on disk", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Path string `query:"path" required:"true" maxLength:"16384" doc:"A path of the status"`
		},
		) (*body[landing.FileVersions], error) {
			return answer(l.File(ctx, in.ID, in.Path))
		})
	commit := op("commit", http.MethodPost, "sessions/{id}/repository/commit", "Commit chosen files of a session's repository", http.StatusOK)
	commit.MaxBodyBytes = maxChosen
	register(c, commit,
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body landing.CommitRequest
		},
		) (*body[landing.Committed], error) {
			return answer(l.Commit(ctx, in.ID, in.Body))
		})
	register(c, op("push", http.MethodPost, "sessions/{id}/repository/push", "Push the branch of a session's repository", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body landing.PushRequest
		},
		) (*body[landing.Pushed], error) {
			return answer(l.Push(ctx, in.ID, in.Body))
		})
}
