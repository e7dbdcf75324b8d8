package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"deskhand/backend"
)

// localPlace is the place of conversations on this machine.
const localPlace = "local"

// continues holds the flags that name the conversation to continue.
type continues struct {
	Session string `xor:"conversation" placeholder:"ID" help:"Go on with this conversation: its id, the beginning of it, or last. Its agent and its directory stay."`
	Last    bool   `xor:"conversation" help:"Go on with the last conversation of the directory, with --agent the last one with that agent."`
}

// check rejects flags that describe a new conversation when an existing conversation is named.
func (c *promptCommand) check() error {
	begins := map[string]bool{"--worktree": c.Worktree, "--mode": c.Mode != "", "--model": c.Model != "", "--base": c.Base != ""}
	if c.Session != "" {
		begins["--agent"], begins["--place"], begins["--dir"] = c.Agent != "", c.Place != "", c.Dir != "."
	}
	if err := c.checkAgents(); err != nil {
		return err
	}
	if c.Session == "" && !c.Last {
		if c.Base != "" && !c.Worktree && len(c.Agents) == 0 {
			return &failure{exitUsage, errors.New("--base is for a new worktree, with --worktree")}
		}
		return nil
	}
	for flag, given := range begins {
		if given {
			return &failure{exitUsage, fmt.Errorf("%s is for a new conversation, and the one that is there has its own", flag)}
		}
	}
	return nil
}

// goOn finds the named conversation, if a conversation is named.
func (t *terminalTurn) goOn(ctx context.Context) error {
	id, err := t.named(ctx)
	if id == "" || err != nil {
		return err
	}
	var s backend.Session
	err = t.api.call(ctx, "GET", "sessions/"+url.PathEscape(id), nil, &s)
	if p, ok := errors.AsType[*problem](err); ok && p.Code == "not_found" {
		return noConversation(id)
	}
	if err != nil {
		return unanswered(ctx, err)
	}
	t.old, t.agent = &s, s.AgentName
	t.session.Agent, t.session.Cwd = s.Agent, s.Cwd
	if s.Place != localPlace {
		t.session.Place = s.Place
	}
	t.aside("· going on with %s, %s in %s", dash(plain(s.Title)), plain(s.AgentName), plain(s.Cwd))
	var newest struct{ Items []backend.Entry }
	if err := t.api.call(ctx, "GET", "sessions/"+s.ID+"/entries?limit=1", nil, &newest); err != nil {
		return unanswered(ctx, err)
	}
	for _, e := range newest.Items {
		t.before = max(t.before, e.Seq)
	}
	return nil
}

// named is the id of the conversation to continue; "" for a new conversation.
func (t *terminalTurn) named(ctx context.Context) (id string, err error) {
	switch {
	case t.goesOn.Session != "":
		return t.api.find(ctx, t.goesOn.Session)
	case !t.goesOn.Last:
		return "", nil
	}
	place := localPlace
	if t.session.Place != "" {
		p, err := t.api.place(ctx, t.session.Place)
		if err != nil {
			return "", err
		}
		place = p.ID
	}
	dirs := map[string]bool{t.session.Cwd: true}
	if real, err := filepath.EvalSymlinks(t.session.Cwd); err == nil && place == localPlace {
		dirs[real] = true
	}
	err = t.api.each(ctx, func(s backend.Session) bool {
		here := s.Place == place && (dirs[s.Cwd] || dirs[s.Workspace.Path])
		if here && s.ArchivedAt == nil && (t.session.Agent == "" || s.Agent == t.session.Agent) {
			id = s.ID
		}
		return id != ""
	})
	if err != nil || id != "" {
		return id, err
	}
	with := ""
	if t.session.Agent != "" {
		with = " with " + t.session.Agent
	}
	return "", &failure{exitUsage, fmt.Errorf("there is no conversation%s in %s to go on with; without --last a new one begins", with, t.session.Cwd)}
}

// begin creates a conversation, or returns the conversation to continue.
func (t *terminalTurn) begin(ctx context.Context) (backend.Session, error) {
	if t.old != nil {
		return *t.old, t.judgeOld()
	}
	if err := t.judgeMode(ctx); err != nil {
		return backend.Session{}, err
	}
	return t.create(ctx)
}

// refusedTurn explains how to proceed when a conversation takes no prompt at the moment.
func (t *terminalTurn) refusedTurn(err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok || t.old == nil || p.Code != "turn.running" {
		return refusedFile(err)
	}
	return fmt.Errorf("a turn of this conversation still runs.\n`deskhand sessions steer %s` tells its agent something within the turn, and `deskhand tail %s` shows it", t.old.ID, t.old.ID)
}
