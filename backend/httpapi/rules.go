package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/rulebook"
	"deskhand/backend/session"
)

// ruleRoutes registers the routes of the remembered answers. An answer to a request may make a rule, too.
func (c *Client) ruleRoutes() {
	rules := c.cfg.Rules
	huma.Register(c.api, op("listRules", http.MethodGet, "rules", "The remembered answers, the narrowest first and the built-in ones last", http.StatusOK),
		func(ctx context.Context, in *struct {
			Session   string `query:"session" maxLength:"64" doc:"Those that apply in this session"`
			Directory string `query:"directory" maxLength:"4096" doc:"Those that apply in this directory"`
			Place     string `query:"place" maxLength:"64" doc:"Where the directory is; local when it is left out"`
		},
		) (*body[session.Page[rulebook.Rule]], error) {
			list, err := rules.List(ctx, rulebook.Filter{Session: in.Session, Directory: in.Directory, Place: in.Place})
			return answer(session.Page[rulebook.Rule]{Items: list}, err)
		})
	huma.Register(c.api, op("addRule", http.MethodPost, "rules", "Make a rule; what waits and is covered by it is answered", http.StatusCreated),
		func(ctx context.Context, in *body[rulebook.NewRule]) (*body[rulebook.Rule], error) {
			return answer(rules.Add(ctx, in.Body))
		})
	huma.Register(c.api, op("changeRule", http.MethodPatch, "rules/{id}", "Change a rule", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body rulebook.RulePatch
		},
		) (*body[rulebook.Rule], error) {
			return answer(rules.Change(ctx, in.ID, in.Body))
		})
	huma.Register(c.api, op("removeRule", http.MethodDelete, "rules/{id}", "Take a rule back; what it has answered stays answered", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) { return done(rules.Remove(ctx, in.ID)) })
	huma.Register(c.api, op("simulateRule", http.MethodPost, "rules/simulate", "What a rule would have decided of the permissions that were asked for", http.StatusOK),
		func(ctx context.Context, in *struct {
			Body struct {
				Rule     rulebook.NewRule `json:"rule"`
				Replaces string           `json:"replaces,omitempty" maxLength:"64" doc:"The rule that it is a change of"`
				Limit    int              `json:"limit,omitempty" default:"200" minimum:"1" maximum:"1000" doc:"How many permissions are looked at, the newest"`
			}
		},
		) (*body[rulebook.Simulated], error) {
			return answer(rules.Simulate(ctx, in.Body.Rule, in.Body.Replaces, in.Body.Limit))
		})
	huma.Register(c.api, op("suggestRules", http.MethodGet, "requests/{id}/rules", "What may be remembered of an answer to a permission", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[rulebook.RuleSuggestions], error) {
			return answer(rules.Suggest(ctx, in.ID))
		})
}
