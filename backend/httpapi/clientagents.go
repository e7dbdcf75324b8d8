package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/agents"
)

type agentList struct {
	Items   []agents.Agent `json:"items"`
	Problem string         `json:"problem,omitempty" doc:"Error in agents.json"`
	Unasked string         `json:"unasked,omitempty" doc:"Reason that the registry, asked for newer versions, gave no answer"`
}

type installWish struct {
	Version string `json:"version,omitempty" maxLength:"200" doc:"Exact version; absent = the version of the catalogue"`
}

// agentRoutes adds the routes for the Agents screen and deskhand doctor.
func (c *Client) agentRoutes() {
	register(c, op("listAgents", http.MethodGet, "agents", "List the agents of this machine", http.StatusOK),
		func(ctx context.Context, in *struct {
			All     bool `query:"all" doc:"Include the agents of the catalogue that are not on this machine"`
			Settled bool `query:"settled" doc:"Wait until the login shell has been read, up to 10 s; before that, an installed agent may seem missing"`
			Newest  bool `query:"newest" doc:"Ask the registry for newer versions first, unless it was asked within the last day; takes up to 5 s"`
			Fresh   bool `query:"fresh" doc:"Read the login shell again first, which takes up to 10 s, and forget the reasons of failed installations"`
		},
		) (*body[agentList], error) {
			out := agentList{Unasked: c.cfg.Roster.Prepare(ctx, in.Settled, in.Newest)}
			list, err := c.cfg.Roster.List(ctx, in.All, in.Fresh)
			out.Items = list
			if err != nil {
				out.Problem = err.Error()
			}
			return answer(out, nil)
		})
	install := op("installAgent", http.MethodPost, "agents/{id}/install", "Begin to install an agent; events report the progress", http.StatusAccepted)
	register(c, install,
		func(_ context.Context, in *struct {
			ID   string       `path:"id" maxLength:"64"`
			Body *installWish `required:"false"`
		},
		) (*body[agents.Agent], error) {
			version := ""
			if in.Body != nil {
				version = in.Body.Version
			}
			return answer(c.cfg.Roster.Install(in.ID, version)) //nolint:contextcheck // the installation outlives the call; DELETE ends it
		})
	huma.Register(c.api, op("cancelInstall", http.MethodDelete, "agents/{id}/install", "Cancel the running installation; answers when nothing of the installation is left", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) {
			return done(c.cfg.Roster.CancelInstall(ctx, in.ID))
		})
	register(c, op("rollbackAgent", http.MethodPost, "agents/{id}/rollback", "Go back to the previous version of an agent", http.StatusOK),
		func(_ context.Context, in *byID) (*body[agents.Agent], error) {
			return answer(c.cfg.Roster.Rollback(in.ID))
		})
	huma.Register(c.api, op("uninstallAgent", http.MethodDelete, "agents/{id}", "Remove an agent that Deskhand installed", http.StatusNoContent),
		func(_ context.Context, in *byID) (*none, error) {
			return done(c.cfg.Roster.Uninstall(in.ID))
		})
	register(c, op("testAgent", http.MethodPost, "agents/{id}/test", "Test an agent: start it, ask for a session, and end it. Ending the call ends the test", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[agents.Report], error) {
			return answer(c.cfg.Roster.Test(ctx, in.ID))
		})
	register(c, op("planInstall", http.MethodPost, "agents/{id}/plan", "Get the packages and the size of an installation, without installing. Ending the call ends the plan", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string       `path:"id" maxLength:"64"`
			Body *installWish `required:"false"`
		},
		) (*body[agents.Plan], error) {
			version := ""
			if in.Body != nil {
				version = in.Body.Version
			}
			return answer(c.cfg.Roster.Plan(ctx, in.ID, version))
		})
	c.definitionRoutes()
	c.startRoutes()
}

// definitionRoutes adds the routes for the form of a person's own agent.
func (c *Client) definitionRoutes() {
	register(c, op("getDefinition", http.MethodGet, "agents/{id}/definition", "Get the definition of an agent in agents.json", http.StatusOK),
		func(_ context.Context, in *byID) (*body[agents.Definition], error) {
			return answer(c.cfg.Roster.Definition(in.ID))
		})
	register(c, op("putDefinition", http.MethodPut, "agents/{id}/definition", "Write the definition of an agent to agents.json; the rest of the file stays as it is", http.StatusOK),
		func(_ context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body agents.Definition
		},
		) (*body[agents.Agent], error) {
			in.Body.ID = in.ID
			return answer(c.cfg.Roster.Define(in.Body)) //nolint:contextcheck // a saved definition stays, even if the caller leaves
		})
	huma.Register(c.api, op("deleteDefinition", http.MethodDelete, "agents/{id}/definition", "Remove the definition of an agent from agents.json", http.StatusNoContent),
		func(_ context.Context, in *byID) (*none, error) {
			return done(c.cfg.Roster.Undefine(in.ID)) //nolint:contextcheck // as above
		})
	register(c, op("testDefinition", http.MethodPost, "agents/test", "Test a definition that is not stored, as testAgent tests an agent. Ending the call ends the test", http.StatusOK),
		func(ctx context.Context, in *struct {
			Body struct {
				Definition agents.Definition `json:"definition"`
			}
		},
		) (*body[agents.Report], error) {
			return answer(c.cfg.Roster.TestDefinition(ctx, in.Body.Definition))
		})
}
