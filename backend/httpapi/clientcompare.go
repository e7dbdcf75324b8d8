package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/compare"
	"deskhand/backend/landing"
	"deskhand/backend/undo"
)

// comparisonList is the comparisons of a data directory.
type comparisonList struct {
	Items []compare.Comparison `json:"items" doc:"The newest first"`
}

// memberOf names a member of a comparison.
type memberOf struct {
	ID      string `path:"id" maxLength:"64"`
	Session string `path:"session" maxLength:"64" doc:"Session of the member"`
}

// compareRoutes adds the routes for a prompt to several agents.
func (c *Client) compareRoutes() {
	l := c.cfg.Compare
	register(c, op("comparisons", http.MethodGet, "comparisons", "List the comparisons of several agents", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[comparisonList], error) {
			items, err := l.List(ctx)
			return answer(comparisonList{Items: items}, err)
		})
	register(c, op("compare", http.MethodPost, "comparisons", "Put a prompt to several agents, each in a worktree of its own from the same commit", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body compare.NewComparison }) (*body[compare.Comparison], error) {
			return answer(l.Create(ctx, in.Body))
		})
	register(c, op("comparison", http.MethodGet, "comparisons/{id}", "Get a comparison with what its members have made of the prompt", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[compare.ComparisonResults], error) {
			return answer(l.Results(ctx, in.ID))
		})
	huma.Register(c.api, op("dissolveComparison", http.MethodDelete, "comparisons/{id}", "Forget a comparison; the sessions of its members stay", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(l.Dissolve(ctx, in.ID))
		})
	c.memberRoutes()
}

// memberRoutes adds the routes about the members of a comparison.
func (c *Client) memberRoutes() {
	l := c.cfg.Compare
	register(c, op("addMember", http.MethodPost, "comparisons/{id}/members", "Put the prompt of a comparison to another agent", http.StatusCreated),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body compare.NewMember
		},
		) (*body[compare.Comparison], error) {
			return answer(l.Add(ctx, in.ID, in.Body))
		})
	register(c, op("beginMember", http.MethodPost, "comparisons/{id}/members/{session}/begin", "Make the session of a member that has none", http.StatusOK),
		func(ctx context.Context, in *memberOf) (*body[compare.Comparison], error) {
			return answer(l.Begin(ctx, in.ID, in.Session))
		})
	register(c, op("takeMember", http.MethodPost, "comparisons/{id}/members/{session}/take", "Take a member: the others are stopped, their worktrees are removed with what is uncommitted kept, and their sessions are archived", http.StatusOK),
		func(ctx context.Context, in *memberOf) (*body[compare.Comparison], error) {
			return answer(l.Take(ctx, in.ID, in.Session))
		})
	register(c, op("memberFile", http.MethodGet, "comparisons/{id}/members/{session}/file", "Get a file of a member as it is in the commit of the comparison, and on disk", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID      string `path:"id" maxLength:"64"`
			Session string `path:"session" maxLength:"64" doc:"Session of the member"`
			Path    string `query:"path" required:"true" minLength:"1" maxLength:"16384" doc:"As of the files of the results"`
			Was     string `query:"was" maxLength:"16384" doc:"Path of a renamed file in the commit"`
		},
		) (*body[landing.FileVersions], error) {
			return answer(l.Versions(ctx, in.ID, in.Session, in.Path, in.Was))
		})
	register(c, op("takeFiles", http.MethodPost, "comparisons/{id}/files", "Give files of a member the content that they have in another one", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body compare.TakeFiles
		},
		) (*body[undo.Restored], error) {
			return answer(l.TakeFiles(ctx, in.ID, in.Body))
		})
	register(c, op("testMembers", http.MethodPost, "comparisons/{id}/test", "Run the project's tests in the worktrees of all members, or stop them", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body struct {
				Stop bool   `json:"stop,omitempty"`
				Hash string `json:"hash,omitempty" maxLength:"64" doc:"Of the command that was shown, which is approved by this"`
			}
		},
		) (*body[compare.ComparisonResults], error) {
			if in.Body.Stop {
				return answer(l.StopTests(ctx, in.ID))
			}
			return answer(l.Test(ctx, in.ID, in.Body.Hash))
		})
}
