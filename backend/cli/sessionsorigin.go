package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"text/tabwriter"

	"deskhand/backend"
)

type sessionsImport struct {
	common
	Agent string   `arg:"" help:"The agent, by its id."`
	IDs   []string `arg:"" optional:"" name:"id" help:"Its conversations, by the ids that --list shows. None: all of --dir that are not here yet."`
	List  bool     `help:"Show what there is, and import nothing."`
	Dir   string   `placeholder:"DIR" help:"Those of this directory alone."`
	JSON  bool     `name:"json" help:"Print the records as JSON."`
}

// Run lists an agent's own conversations, or imports some of them.
func (c *sessionsImport) Run(p *Program) error {
	if !c.List && len(c.IDs) == 0 && c.Dir == "" {
		return &failure{exitUsage, errors.New("say which: ids of conversations, a directory with --dir, or --list to see them")}
	}
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := c.all(ctx, api)
		if err != nil {
			return err
		}
		if c.List {
			return c.show(p, list)
		}
		return c.take(ctx, p, api, list)
	})
}

// all lists the agent's conversations, page by page.
func (c *sessionsImport) all(ctx context.Context, api *api) (list []backend.AgentSession, err error) {
	v := url.Values{}
	if c.Dir != "" {
		dir, err := filepath.Abs(c.Dir)
		if err != nil {
			return nil, &failure{exitUsage, err}
		}
		v.Set("directory", dir)
	}
	const pages = 100 // stops an agent that never ends its list
	for range pages {
		var page backend.AgentSessions
		if err := api.call(ctx, "GET", "agents/"+url.PathEscape(c.Agent)+"/sessions?"+v.Encode(), nil, &page); err != nil {
			return nil, unanswered(ctx, err)
		}
		if !page.Supported {
			return nil, fmt.Errorf("%s does not list its conversations", c.Agent)
		}
		list = append(list, page.Items...)
		if page.Next == "" {
			break
		}
		v.Set("before", page.Next)
	}
	return list, nil
}

func (c *sessionsImport) show(p *Program, list []backend.AgentSession) error {
	if c.JSON {
		return printJSON(p.Stdout, list)
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tWHEN\tHERE\tDIRECTORY\tTITLE") // Flush reports failures of w
	for _, s := range list {
		at, here := "", ""
		if s.UpdatedAt != nil {
			at = when(s.UpdatedAt.Time)
		}
		if s.Session != "" {
			here = "yes"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", plain(s.ACPSessionID), at, here, plain(s.Cwd), plain(s.Title))
	}
	return w.Flush()
}

// take imports the chosen conversations. take waits until the history of each is stored, since a program that ends takes its agents with it.
func (c *sessionsImport) take(ctx context.Context, p *Program, api *api, list []backend.AgentSession) error {
	known := map[string]backend.AgentSession{}
	wanted := c.IDs
	for _, s := range list {
		known[s.ACPSessionID] = s
		if len(c.IDs) == 0 && s.Session == "" {
			wanted = append(wanted, s.ACPSessionID)
		}
	}
	for _, id := range wanted {
		s, there := known[id]
		if !there {
			return &failure{exitUsage, fmt.Errorf("%s has no conversation %q", c.Agent, id)}
		}
		if err := c.takeOne(ctx, p, api, s); err != nil {
			return err
		}
	}
	if len(wanted) == 0 {
		p.say("There is nothing that is not here already.\n")
	}
	return nil
}

func (c *sessionsImport) takeOne(ctx context.Context, p *Program, api *api, from backend.AgentSession) error {
	var made backend.Session
	in := backend.Import{Agent: c.Agent, ACPSessionID: from.ACPSessionID, Cwd: from.Cwd, Title: from.Title, Directories: from.Directories}
	err := api.call(ctx, "POST", "sessions/import", in, &made)
	if err == nil {
		err = api.settle(ctx, &made)
	}
	switch {
	case err != nil:
		return unanswered(ctx, err)
	case made.Phase == "closed" && made.Exit != nil:
		return fmt.Errorf("%s: %s %s", from.ACPSessionID, made.Exit.Problem, made.Exit.Params["detail"])
	}
	if c.JSON {
		return printJSON(p.Stdout, made)
	}
	return p.print("%s  %s\n", made.ID, plain(made.Title))
}

// settle waits until a starting session is ready or has failed.
func (a *api) settle(ctx context.Context, s *backend.Session) error {
	const wait = 25
	q := backend.FeedQuery{Session: s.ID}
	for s.Phase == "starting" || s.Phase == "replaying" {
		batch, err := a.events(ctx, q, wait) // the first answer has the feed's position, as has the answer to a reader that a long history left behind
		if err != nil {
			return err
		}
		q.Gen, q.After = batch.Gen, batch.Seq
		if err := a.call(ctx, "GET", "sessions/"+url.PathEscape(s.ID), nil, s); err != nil {
			return err
		}
	}
	return nil
}

type sessionsFork struct {
	common
	ID string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
}

// Run forks a conversation, and prints the fork's id.
func (c *sessionsFork) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		var made backend.Session
		if err := api.call(ctx, "POST", "sessions/"+url.PathEscape(id)+"/fork", nil, &made); err != nil {
			return unanswered(ctx, err)
		}
		return p.print("%s\n", made.ID)
	})
}

type sessionsSummary struct {
	common
	ID string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
}

// Run prints a summary of a conversation, short enough to send to an agent that does not know the conversation.
func (c *sessionsSummary) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		var summary struct {
			Text string `json:"text"`
		}
		if err := api.call(ctx, "GET", "sessions/"+url.PathEscape(id)+"/summary", nil, &summary); err != nil {
			return unanswered(ctx, err)
		}
		return p.print("%s\n", summary.Text)
	})
}

type sessionsSteer struct {
	common
	ID   string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Text string `arg:"" help:"What to say."`
}

// Run sends a message to an agent of the running app in the middle of its turn.
func (c *sessionsSteer) Run(p *Program) error {
	return withRunning(c.common, func(ctx context.Context, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		in := map[string]string{"message": c.Text, "when": "steer"}
		return unanswered(ctx, api.call(ctx, "POST", "sessions/"+url.PathEscape(id)+"/prompt", in, nil))
	})
}
