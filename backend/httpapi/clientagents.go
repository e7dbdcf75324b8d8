package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/agents"
)

type agentList struct {
	Items   []agents.Agent `json:"items"`
	Problem string         `json:"problem,omitempty" doc:"What is wrong with agents.json"`
	Unasked string         `json:"unasked,omitempty" doc:"Why the registry was asked for newer versions and gave no answer"`
}

type installWish struct {
	Version string `json:"version,omitempty" maxLength:"200" doc:"Exact; without one, that of the catalogue"`
}

// agentRoutes adds the routes for the Agents screen and deskhand doctor.
func (c *Client) agentRoutes() {
	huma.Register(c.api, op("listAgents", http.MethodGet, "agents", "The agents of this machine", http.StatusOK),
		func(ctx context.Context, in *struct {
			All     bool `query:"all" doc:"The whole catalogue too, those that are not here"`
			Settled bool `query:"settled" doc:"Wait first until the login shell has been read, which takes up to 10 s: before that an agent may seem not to be here"`
			Newest  bool `query:"newest" doc:"Ask the registry for newer versions first, unless that was done within the day; 5 s at most"`
			Fresh   bool `query:"fresh" doc:"Have the login shell read anew first, which takes up to 10 s, and forget why installations have failed"`
		},
		) (*body[agentList], error) {
			out := agentList{Unasked: c.cfg.Sessions.PrepareAgents(ctx, in.Settled, in.Newest)}
			list, err := c.cfg.Sessions.ListAgents(ctx, in.All, in.Fresh)
			out.Items = list
			if err != nil {
				out.Problem = err.Error()
			}
			return answer(out, nil)
		})
	install := op("installAgent", http.MethodPost, "agents/{id}/install", "Begin to install an agent; events tell how it goes on", http.StatusAccepted)
	huma.Register(c.api, install,
		func(_ context.Context, in *struct {
			ID   string       `path:"id" maxLength:"64"`
			Body *installWish `required:"false"`
		},
		) (*body[agents.Agent], error) {
			version := ""
			if in.Body != nil {
				version = in.Body.Version
			}
			return answer(c.cfg.Sessions.Install(in.ID, version)) //nolint:contextcheck // the installation outlives the call; DELETE ends it
		})
	huma.Register(c.api, op("cancelInstall", http.MethodDelete, "agents/{id}/install", "End the installation that runs, and answer when nothing of it is left", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(c.cfg.Sessions.CancelInstall(ctx, in.ID))
		})
	huma.Register(c.api, op("rollbackAgent", http.MethodPost, "agents/{id}/rollback", "Go back to the version before", http.StatusOK),
		func(_ context.Context, in *byID) (*body[agents.Agent], error) {
			return answer(c.cfg.Sessions.Rollback(in.ID))
		})
	huma.Register(c.api, op("uninstallAgent", http.MethodDelete, "agents/{id}", "Remove what Deskhand installed of an agent", http.StatusNoContent),
		func(_ context.Context, in *byID) (*none, error) {
			return done(c.cfg.Sessions.Uninstall(in.ID))
		})
	huma.Register(c.api, op("testAgent", http.MethodPost, "agents/{id}/test", "Start an agent, ask it for a session, end it, and tell how that went. Who goes away ends it", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[agents.Report], error) {
			return answer(c.cfg.Sessions.TestAgent(ctx, in.ID))
		})
	huma.Register(c.api, op("planInstall", http.MethodPost, "agents/{id}/plan", "Ask what an installation would get and how large it is, and install nothing. Who goes away ends it", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string       `path:"id" maxLength:"64"`
			Body *installWish `required:"false"`
		},
		) (*body[agents.Plan], error) {
			version := ""
			if in.Body != nil {
				version = in.Body.Version
			}
			return answer(c.cfg.Sessions.Plan(ctx, in.ID, version))
		})
	c.definitionRoutes()
	c.startRoutes()
}

// definitionRoutes adds the routes for the form of a person's own agent.
func (c *Client) definitionRoutes() {
	huma.Register(c.api, op("getDefinition", http.MethodGet, "agents/{id}/definition", "What agents.json says of an agent", http.StatusOK),
		func(_ context.Context, in *byID) (*body[agents.Definition], error) {
			return answer(c.cfg.Sessions.Definition(in.ID))
		})
	huma.Register(c.api, op("putDefinition", http.MethodPut, "agents/{id}/definition", "Write an agent into agents.json; the rest of the file stays as it is", http.StatusOK),
		func(_ context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body agents.Definition
		},
		) (*body[agents.Agent], error) {
			in.Body.ID = in.ID
			return answer(c.cfg.Sessions.Define(in.Body)) //nolint:contextcheck // a saved definition stays, even if the caller leaves
		})
	huma.Register(c.api, op("deleteDefinition", http.MethodDelete, "agents/{id}/definition", "Take an agent out of agents.json", http.StatusNoContent),
		func(_ context.Context, in *byID) (*none, error) {
			return done(c.cfg.Sessions.Undefine(in.ID)) //nolint:contextcheck // as above
		})
	huma.Register(c.api, op("testDefinition", http.MethodPost, "agents/test", "Start an agent that is not written down yet, as its test would, and tell how that went. Who goes away ends it", http.StatusOK),
		func(ctx context.Context, in *struct {
			Body struct {
				Definition agents.Definition `json:"definition"`
			}
		},
		) (*body[agents.Report], error) {
			return answer(c.cfg.Sessions.TestDefinition(ctx, in.Body.Definition))
		})
}
