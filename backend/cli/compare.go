package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"deskhand/backend"
)

type compareCommand struct {
	List    compareList    `cmd:"" default:"withargs" help:"Show the comparisons, the newest first (default)."`
	Show    compareShow    `cmd:"" help:"Show what each agent has made of the prompt."`
	Test    compareTest    `cmd:"" help:"Run the project's tests in the worktree of each agent, and wait for them."`
	Begin   compareBegin   `cmd:"" help:"Begin agents that have not begun, after a failure or a crash."`
	Add     compareAdd     `cmd:"" help:"Put the prompt to another agent."`
	Files   compareFiles   `cmd:"" help:"Give files of one agent the content that they have in another one's worktree."`
	Take    compareTake    `cmd:"" help:"Take one agent's work: the others are stopped, their worktrees removed with what is uncommitted kept, and their conversations put away."`
	Ungroup compareUngroup `cmd:"" help:"Forget a comparison; the conversations stay."`
}

// compares names a comparison on the command line.
type compares struct {
	common
	ID string `arg:"" help:"The comparison: its id, the beginning of it, or last."`
}

// results calls f with a comparison and what its members have made of the prompt.
func (c *compares) results(p *Program, f func(ctx context.Context, api *api, raw json.RawMessage, r backend.ComparisonResults) error) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		id, err := api.findComparison(ctx, c.ID)
		if err != nil {
			return err
		}
		raw, r, err := api.comparison(ctx, id)
		if err != nil {
			return err
		}
		return f(ctx, api, raw, r)
	})
}

// comparison returns a comparison with its results, as JSON and decoded.
func (a *api) comparison(ctx context.Context, id string) (raw json.RawMessage, r backend.ComparisonResults, err error) {
	if err := a.call(ctx, "GET", "comparisons/"+url.PathEscape(id), nil, &raw); err != nil {
		return nil, r, notCompared(ctx, err)
	}
	return raw, r, json.Unmarshal(raw, &r)
}

// findComparison returns the id that begins with id, or the newest one's for "last".
func (a *api) findComparison(ctx context.Context, id string) (string, error) {
	var list struct{ Items []backend.Comparison }
	if err := a.call(ctx, "GET", "comparisons", nil, &list); err != nil {
		return "", unanswered(ctx, err)
	}
	var found []string
	for _, c := range list.Items {
		if id != "" && strings.HasPrefix(c.ID, id) || id == "last" && len(found) == 0 {
			found = append(found, c.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", &failure{exitUsage, fmt.Errorf("there is no comparison %q; deskhand compare lists them", id)}
	case 1:
		return found[0], nil
	}
	return "", &failure{exitUsage, fmt.Errorf("%d comparisons begin with %q", len(found), id)}
}

// memberOf returns the session of the member that a person has named: by its number, its name, or the beginning of the session's id.
func memberOf(c backend.Comparison, name string) (string, error) {
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(c.Members) {
		return c.Members[n-1].Session, nil
	}
	var found []string
	for _, m := range c.Members {
		if strings.EqualFold(m.Name, name) || name != "" && strings.HasPrefix(m.Session, name) {
			found = append(found, m.Session)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	var names []string
	for i, m := range c.Members {
		names = append(names, fmt.Sprintf("%d (%s)", i+1, printable(m.Name)))
	}
	return "", &failure{exitUsage, fmt.Errorf("%q names no agent of the comparison: name one of %s", name, strings.Join(names, ", "))}
}

type compareList struct {
	common
	JSON bool `name:"json" help:"Print the records as JSON."`
}

// Run prints a row for each comparison.
func (c *compareList) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		var raw json.RawMessage
		if err := api.call(ctx, "GET", "comparisons", nil, &raw); err != nil {
			return unanswered(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var list struct{ Items []backend.Comparison }
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ID\tWHEN\tAGENTS\tTITLE") // Flush reports failures of w
		for _, one := range list.Items {
			var names []string
			for _, m := range one.Members {
				name := plain(m.Name)
				if m.Session == one.Taken {
					name += " (taken)"
				}
				names = append(names, name)
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", one.ID, when(one.CreatedAt.Time), strings.Join(names, ", "), plain(one.Title))
		}
		return w.Flush()
	})
}

type compareShow struct {
	compares
	Answers bool `help:"Print the whole last answer of each agent."`
	JSON    bool `name:"json" help:"Print the record as JSON."`
}

// Run prints what each member has made of the prompt.
func (c *compareShow) Run(p *Program) error {
	return c.results(p, func(_ context.Context, _ *api, raw json.RawMessage, r backend.ComparisonResults) error {
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		return p.print("%s", comparisonWords(r, c.Answers))
	})
}

type compareTest struct {
	compares
	Approve bool `help:"Approve the command of the tests as it is shown by deskhand compare show --json."`
	Stop    bool `help:"End tests that run."`
	JSON    bool `name:"json" help:"Print the record as JSON."`
}

// Run runs the tests of the project in each worktree, and waits for the end of all.
func (c *compareTest) Run(p *Program) error {
	return c.results(p, func(ctx context.Context, api *api, _ json.RawMessage, r backend.ComparisonResults) error {
		raw, r, err := c.tested(ctx, api, r)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(p.Stdout, raw)
		} else {
			err = p.print("%s", comparisonWords(r, false))
		}
		failed := func(m backend.MemberResult) bool { return m.Tests != nil && m.Tests.State != "passed" }
		if err == nil && !c.Stop && slices.ContainsFunc(r.Results, failed) {
			err = errors.New("not all tests have passed")
		}
		return err
	})
}

// tested begins the tests of a comparison, or stops them, and returns the comparison when none run any more.
func (c *compareTest) tested(ctx context.Context, api *api, r backend.ComparisonResults) (raw json.RawMessage, _ backend.ComparisonResults, err error) {
	request := map[string]any{"stop": c.Stop}
	if c.Approve && r.Test != nil {
		request["hash"] = r.Test.Hash
	}
	batch, err := api.events(ctx, backend.FeedQuery{}, 0)
	if err == nil {
		err = api.call(ctx, "POST", "comparisons/"+url.PathEscape(r.ID)+"/test", request, nil)
	}
	if err != nil {
		return nil, r, notCompared(ctx, err)
	}
	for {
		raw, r, err = api.comparison(ctx, r.ID)
		if err != nil || !slices.ContainsFunc(r.Results, backend.MemberResult.Testing) {
			return raw, r, err
		}
		const wait = 25
		q := backend.FeedQuery{Gen: batch.Gen, After: batch.Seq, Types: []string{"comparison.upsert"}}
		if batch, err = api.events(ctx, q, wait); err != nil {
			return nil, r, unanswered(ctx, err)
		}
	}
}

type compareBegin struct {
	compares
	JSON bool `name:"json" help:"Print the record of the comparison as JSON."`
}

// Run begins the members that have no session.
func (c *compareBegin) Run(p *Program) error {
	return c.results(p, func(ctx context.Context, api *api, _ json.RawMessage, r backend.ComparisonResults) error {
		for _, m := range r.Members {
			if m.Begun {
				continue
			}
			path := "comparisons/" + url.PathEscape(r.ID) + "/members/" + url.PathEscape(m.Session) + "/begin"
			if err := api.call(ctx, "POST", path, nil, nil); err != nil {
				return notCompared(ctx, err)
			}
		}
		raw, r, err := api.comparison(ctx, r.ID)
		if err != nil || c.JSON {
			return errors.Join(err, printJSON(p.Stdout, raw))
		}
		return p.print("%s", comparisonWords(r, false))
	})
}

type compareAdd struct {
	compares
	Agent string `arg:"" help:"The agent, by its id; ID=MODEL names a model."`
	JSON  bool   `name:"json" help:"Print the record of the comparison as JSON."`
}

// Run puts the prompt to another agent.
func (c *compareAdd) Run(p *Program) error {
	return c.results(p, func(ctx context.Context, api *api, _ json.RawMessage, r backend.ComparisonResults) error {
		id, model, _ := strings.Cut(c.Agent, "=")
		var raw json.RawMessage
		if err := api.call(ctx, "POST", "comparisons/"+url.PathEscape(r.ID)+"/members", backend.NewMember{Agent: id, Model: model}, &raw); err != nil {
			return notCompared(ctx, err)
		}
		var now backend.Comparison
		if err := json.Unmarshal(raw, &now); err != nil || c.JSON {
			return errors.Join(err, printJSON(p.Stdout, raw))
		}
		last := now.Members[len(now.Members)-1]
		return p.print("%s works in conversation %s\n", printable(last.Name), last.Session)
	})
}

type compareFiles struct {
	compares
	From    string   `required:"" placeholder:"AGENT" help:"Whose content is taken: a number of deskhand compare show, a name, or the beginning of a conversation's id."`
	Into    string   `required:"" placeholder:"AGENT" help:"Whose files change."`
	Paths   []string `arg:"" help:"The files, from the top of the repository."`
	Preview bool     `help:"Tell what would happen, and change nothing."`
	JSON    bool     `name:"json" help:"Print what was done as JSON."`
}

// Run gives files of a member the content that they have in another one.
func (c *compareFiles) Run(p *Program) error {
	return c.results(p, func(ctx context.Context, api *api, _ json.RawMessage, r backend.ComparisonResults) error {
		from, err := memberOf(r.Comparison, c.From)
		if err != nil {
			return err
		}
		into, err := memberOf(r.Comparison, c.Into)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		request := map[string]any{"from": from, "to": into, "paths": c.Paths, "preview": c.Preview}
		if err := api.call(ctx, "POST", "comparisons/"+url.PathEscape(r.ID)+"/files", request, &raw); err != nil {
			return notCompared(ctx, err)
		}
		if c.JSON {
			return printJSON(p.Stdout, raw)
		}
		var done struct {
			Files []struct{ Path, Outcome string }
		}
		if err := json.Unmarshal(raw, &done); err != nil {
			return err
		}
		var text strings.Builder
		for _, f := range done.Files {
			fmt.Fprintf(&text, "%-9s %s\n", f.Outcome, printable(f.Path))
		}
		return p.print("%s", cmp.Or(text.String(), "the files are the same in both\n"))
	})
}

type compareTake struct {
	compares
	Agent string `arg:"" help:"The agent: a number of deskhand compare show, a name, or the beginning of a conversation's id."`
	JSON  bool   `name:"json" help:"Print the record as JSON."`
}

// Run takes a member.
func (c *compareTake) Run(p *Program) error {
	return c.results(p, func(ctx context.Context, api *api, _ json.RawMessage, r backend.ComparisonResults) error {
		member, err := memberOf(r.Comparison, c.Agent)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := api.call(ctx, "POST", "comparisons/"+url.PathEscape(r.ID)+"/members/"+url.PathEscape(member)+"/take", nil, &raw); err != nil {
			return notCompared(ctx, err)
		}
		var now backend.Comparison
		if err := json.Unmarshal(raw, &now); err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(p.Stdout, raw)
		} else {
			err = p.print("taken: conversation %s; deskhand sessions land %s brings it into its base\n", member, member)
		}
		for _, m := range now.Members {
			if m.Session != member && m.Problem != "" {
				err = errors.Join(err, fmt.Errorf("%s is still there: %s", printable(m.Name), printable(m.Problem)))
			}
		}
		return err
	})
}

type compareUngroup struct{ compares }

// Run forgets a comparison.
func (c *compareUngroup) Run(p *Program) error {
	return c.results(p, func(ctx context.Context, api *api, _ json.RawMessage, r backend.ComparisonResults) error {
		return notCompared(ctx, api.call(ctx, "DELETE", "comparisons/"+url.PathEscape(r.ID), nil, nil))
	})
}

// notCompared explains why a comparison does not do as it was told.
func notCompared(ctx context.Context, err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	said := func(name string) string { return printable(p.Params[name]) }
	text := map[string]string{
		"compare.busy":           "another call is at work on the comparison",
		"compare.full":           "there are " + said("most") + " agents already",
		"compare.not_begun":      said("name") + " has not begun",
		"compare.outside":        said("path") + " lies outside of the directory that the agents work in",
		"compare.same":           "the files are to come from another agent",
		"compare.taken":          "another agent was taken",
		"changes.turn_running":   "the agent is at work there; wait until it is done, or stop it",
		"changes.not_looked_at":  "no snapshot of the files could be taken",
		"setup.command":          "the project names no command for its tests (.deskhand/project.json)",
		"setup.testing":          "the tests run already; --stop ends them",
		"setup.unapproved":       "nobody has approved the command of the tests: --approve does, after deskhand compare show --json",
		"agent.unknown":          "there is no agent " + said("agent"),
		"worktree.no_repository": said("path") + " is in no git repository",
	}[p.Code]
	if text == "" {
		return refusedTree(ctx, err)
	}
	return &failure{exitUsage, errors.New(text)}
}
