package httpapi

import (
	"context"
	"net/http"

	"deskhand/backend/forge"
)

// forgeList is how the hosts of pull requests are reached.
type forgeList struct {
	Items []forge.HostChoice `json:"items" doc:"By the names of the hosts"`
}

// forgeRoutes adds the routes for the pull requests of sessions' branches.
func (c *Client) forgeRoutes() {
	l := c.cfg.Forge
	register(c, op("pullRequest", http.MethodGet, "sessions/{id}/pull-request", "Get the pull request of a session's branch, or how one would be made", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Fresh bool   `query:"fresh" doc:"A person asks: the forge is asked again, if that was not just done and the forge wants calls. Otherwise it is asked once a minute at most"`
		},
		) (*body[forge.PullRequestStatus], error) {
			return answer(l.Status(ctx, in.ID, in.Fresh))
		})
	register(c, op("proposePullRequest", http.MethodGet, "sessions/{id}/pull-request/proposal", "Get a title and a text for a pull request", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Base string `query:"base" maxLength:"1000" doc:"Branch of the remote that the pull request goes into; absent for the default"`
		},
		) (*body[forge.PullRequestProposal], error) {
			return answer(l.Propose(ctx, in.ID, in.Base))
		})
	register(c, op("createPullRequest", http.MethodPost, "sessions/{id}/pull-request", "Push a session's branch where the remote lacks commits, and make a pull request", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body forge.CreatePullRequest
		},
		) (*body[forge.CreatedPullRequest], error) {
			return answer(l.Create(ctx, in.ID, in.Body))
		})
	register(c, op("chooseForge", http.MethodPut, "forges/{host}", "Say how a host of pull requests is reached", http.StatusOK),
		func(_ context.Context, in *struct {
			Host string `path:"host" maxLength:"260"`
			Body struct {
				Use string `json:"use" enum:"gh,glab,page," doc:"gh or glab, programs of the person's with their own login; page, the browser; or empty, so that the next pull request asks"`
			}
		},
		) (*body[forgeList], error) {
			items, err := l.Choose(in.Host, in.Body.Use)
			return answer(forgeList{Items: items}, err)
		})
}
