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
	rules := c.lib.rules
	register(c, op("listRules", http.MethodGet, "rules", "List the rules, the narrowest first and the built-in rules last", http.StatusOK),
		func(ctx context.Context, in *struct {
			Session   string `query:"session" maxLength:"64" doc:"Only rules that apply in this session"`
			Directory string `query:"directory" maxLength:"4096" doc:"Only rules that apply in this directory"`
			Place     string `query:"place" maxLength:"64" doc:"Place of the directory; local when absent"`
		},
		) (*body[session.Page[rulebook.Rule]], error) {
			list, err := rules.List(ctx, rulebook.Filter{Session: in.Session, Directory: in.Directory, Place: in.Place})
			return answer(session.Page[rulebook.Rule]{Items: list}, err)
		})
	register(c, op("addRule", http.MethodPost, "rules", "Add a rule; waiting requests that the rule covers are answered", http.StatusCreated),
		func(ctx context.Context, in *body[rulebook.NewRule]) (*body[rulebook.Rule], error) {
			return answer(rules.Add(ctx, in.Body))
		})
	register(c, op("changeRule", http.MethodPatch, "rules/{id}", "Change a rule", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body rulebook.RulePatch
		},
		) (*body[rulebook.Rule], error) {
			return answer(rules.Change(ctx, in.ID, in.Body))
		})
	huma.Register(c.api, op("removeRule", http.MethodDelete, "rules/{id}", "Remove a rule; requests that the rule has answered stay answered", http.StatusNoContent),
		func(ctx context.Context, in *byID) (*none, error) { return done(rules.Remove(ctx, in.ID)) })
	register(c, op("simulateRule", http.MethodPost, "rules/simulate", "Simulate a rule on past permissions", http.StatusOK),
		func(ctx context.Context, in *struct {
			Body struct {
				Rule     rulebook.NewRule `json:"rule"`
				Replaces string           `json:"replaces,omitempty" maxLength:"64" doc:"Id of the rule that the simulated rule would replace"`
				Limit    int              `json:"limit,omitempty" default:"200" minimum:"1" maximum:"1000" doc:"Maximum number of permissions to simulate, the newest"`
			}
		},
		) (*body[rulebook.Simulated], error) {
			return answer(rules.Simulate(ctx, in.Body.Rule, in.Body.Replaces, in.Body.Limit))
		})
	register(c, op("suggestRules", http.MethodGet, "requests/{id}/rules", "Suggest rules for a permission", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[rulebook.RuleSuggestions], error) {
			return answer(rules.Suggest(ctx, in.ID))
		})
}
