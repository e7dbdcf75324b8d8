package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/landing"
)

// landingRoutes adds the routes that bring a session's work into the history of its repository.
func (c *Client) landingRoutes() {
	l := c.lib.landing
	register(c, op("repositoryStatus", http.MethodGet, "sessions/{id}/repository", "List what is not committed in the repository of a session, and where its branch stands", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[landing.RepositoryStatus], error) {
			return answer(l.Status(ctx, in.ID))
		})
	register(c, op("uncommittedFile", http.MethodGet, "sessions/{id}/repository/file", "Get a file as it is in a commit and on disk", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Path string `query:"path" required:"true" maxLength:"16384" doc:"A path of the status, or of the comparison with the base"`
			Base string `query:"base" maxLength:"1000" doc:"A base: the commit is the one that the branch and the base have in common. Absent: the last commit"`
		},
		) (*body[landing.FileVersions], error) {
			return answer(l.File(ctx, in.ID, in.Path, in.Base))
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
	c.mergeRoutes()
}

// mergeRoutes adds the routes that bring a session's branch and another one together.
func (c *Client) mergeRoutes() {
	l := c.lib.landing
	register(c, op("compareBase", http.MethodGet, "sessions/{id}/repository/base", "Compare the branch and the files of a session with another branch", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Base string `query:"base" maxLength:"1000" doc:"A branch, such as main or origin/main; absent for the most likely one"`
		},
		) (*body[landing.BaseStatus], error) {
			return answer(l.Base(ctx, in.ID, in.Base))
		})
	register(c, op("merge", http.MethodPost, "sessions/{id}/repository/merge", "Merge the branch of a session into a base", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body landing.MergeRequest
		},
		) (*body[landing.Merged], error) {
			return answer(l.Merge(ctx, in.ID, in.Body))
		})
	register(c, op("updateBranch", http.MethodPost, "sessions/{id}/repository/update", "Bring the commits of a base into the branch of a session", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body landing.UpdateRequest
		},
		) (*body[landing.Updated], error) {
			return answer(l.Update(ctx, in.ID, in.Body))
		})
	register(c, op("resolveMerge", http.MethodPost, "sessions/{id}/repository/resolve", "End a merge or a rebase that waits, or take it back", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body landing.ResolveRequest
		},
		) (*body[landing.Resolved], error) {
			return answer(l.Resolve(ctx, in.ID, in.Body))
		})
	huma.Register(c.api, op("fetchRemote", http.MethodPost, "sessions/{id}/repository/fetch", "Get the commits of a remote's branches", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body landing.FetchRequest
		},
		) (*struct{}, error) {
			return nil, l.Fetch(ctx, in.ID, in.Body)
		})
}
