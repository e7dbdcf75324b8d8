package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend"
)

type sessionsDelete struct {
	common
	ID  []string `arg:"" name:"session" help:"The conversations: their ids, the beginnings of them, or last."`
	Yes bool     `short:"y" help:"Do not ask."`
}

// Run deletes conversations for good after the person has confirmed.
func (c *sessionsDelete) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := api.sessions(ctx, c.ID)
		if err != nil {
			return err
		}
		if !c.Yes {
			if err := p.askToDelete(ctx, list); err != nil {
				return err
			}
		}
		for _, s := range list {
			if err := api.call(ctx, "DELETE", "sessions/"+url.PathEscape(s.ID)+"?undo=false", nil, nil); err != nil {
				return unanswered(ctx, err)
			}
			if err := p.print("deleted %s  %s\n", s.ID, plain(s.Title)); err != nil {
				return err
			}
		}
		return nil
	})
}

// sessions finds the named conversations, each once. sessions fails when a single name is unknown.
func (a *api) sessions(ctx context.Context, names []string) ([]backend.Session, error) {
	var list []backend.Session
	for _, name := range names {
		id, err := a.find(ctx, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(s backend.Session) bool { return s.ID == id }) {
			continue
		}
		var s backend.Session
		err = a.call(ctx, "GET", "sessions/"+url.PathEscape(id), nil, &s)
		if p, ok := errors.AsType[*problem](err); ok && p.Code == "not_found" {
			return nil, noConversation(name)
		}
		if err != nil {
			return nil, unanswered(ctx, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// askToDelete asks at a terminal. Without a terminal askToDelete fails.
func (p *Program) askToDelete(ctx context.Context, list []backend.Session) error {
	if !isTerminal(p.Stdin) {
		return &failure{exitUsage, errors.New("this is no terminal to ask at; --yes deletes without asking")}
	}
	for _, s := range list {
		p.say("%s  %s  %s\n", s.ID, plain(s.AgentName), plain(s.Title))
	}
	what := "this conversation"
	if len(list) > 1 {
		what = fmt.Sprintf("these %d conversations", len(list))
	}
	p.say("Delete %s for good? Type yes to do it: ", what)
	return p.yes(ctx, "nothing was deleted")
}

// yes waits for a person's yes. Any other answer is a failure with the text otherwise.
func (p *Program) yes(ctx context.Context, otherwise string) error {
	text, err := p.line(ctx)
	if err == nil && text != "yes" {
		err = &failure{exitCancel, errors.New(otherwise)}
	}
	return err
}

// line reads a line typed by a person. The end of the input reads as an empty line. The goroutine that reads cannot be interrupted and ends
// with the process.
func (p *Program) line(ctx context.Context) (string, error) {
	answered := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(p.Stdin).ReadString('\n')
		answered <- strings.TrimSpace(text)
	}()
	select {
	case text := <-answered:
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

type sessionsRelink struct {
	common
	Old string `arg:"" help:"The directory as it was called; it need not be there any more."`
	New string `arg:"" help:"Where it is now."`
}

// Run attaches the conversations of a moved directory to the directory's new path.
func (c *sessionsRelink) Run(p *Program) error {
	now, err := filepath.Abs(c.New)
	if err != nil {
		return &failure{exitUsage, err}
	}
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		from, err := api.workspace(ctx, c.Old)
		if err != nil {
			return err
		}
		var w backend.Workspace
		err = api.call(ctx, "POST", "workspaces/"+url.PathEscape(from.ID)+"/relink", map[string]string{"path": now}, &w)
		if p, ok := errors.AsType[*problem](err); ok {
			return c.refused(p)
		}
		if err != nil {
			return unanswered(ctx, err)
		}
		return p.print("%s is the directory of %s now.\n", plain(w.Path), conversations(from.Sessions))
	})
}

// workspace finds the workspace of a local directory.
func (a *api) workspace(ctx context.Context, path string) (backend.Workspace, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return backend.Workspace{}, &failure{exitUsage, err}
	}
	var known struct{ Items []backend.Workspace }
	if err := a.call(ctx, "GET", "workspaces", nil, &known); err != nil {
		return backend.Workspace{}, unanswered(ctx, err)
	}
	i := slices.IndexFunc(known.Items, func(w backend.Workspace) bool { return w.Place == "local" && w.Path == path })
	if i < 0 {
		return backend.Workspace{}, &failure{exitUsage, fmt.Errorf("no conversation works in %s", path)}
	}
	return known.Items[i], nil
}

func conversations(n int) string {
	if n == 1 {
		return "1 conversation"
	}
	return fmt.Sprintf("%d conversations", n)
}

// refused explains why a directory was refused.
func (c *sessionsRelink) refused(p *problem) error {
	text := map[string]string{
		"directory.missing":    "there is no directory " + plain(c.New),
		"directory.not_one":    plain(c.New) + " is no directory",
		"directory.unreadable": plain(c.New) + " cannot be read: " + plain(p.Params["detail"]),
	}[p.Code]
	switch {
	case text != "":
		return &failure{exitUsage, errors.New(text)}
	case p.Code == "workspace.busy":
		return fmt.Errorf("an agent is working there (%s); wait until it is done, or stop it", plain(p.Params["title"]))
	}
	return p
}
