package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

// Time limits of a proof. Claude's session/new has taken 18 s with a key that its vendor cannot be asked about.
const (
	proofLimit = 2 * time.Minute
	// An agent that tells its account looks for that beside everything else, from initialize on: Claude gives its own program 5 s.
	accountLimit = 8 * time.Second
	// A session may know the account better than that look: an agent that is signed out is given this time to say otherwise.
	accountGrace = time.Second
)

// Prove begins a conversation with an agent in an empty directory, as one is begun for a person, and ends it: what an agent answers to
// authenticate says little, and some are signed in for one process. values are given to the agent beside those that are kept for it. A
// *LoginError, with Unproven, says why the agent cannot. The end of ctx ends the agent.
func (c *Catalogue) Prove(ctx context.Context, id string, values map[string]string) error {
	e, at, err := c.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)() //nolint:contextcheck // Close ends it as well as the caller
	err = c.attend(ctx, id, func(dir string) (proxy.Command, error) {
		return c.asUsual(ctx, e, at, dir, values), nil
	}, func(q *question, dir string) error {
		return c.begins(ctx, e, q, dir)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.noteLogin(e, at, err)
	if err == nil {
		return nil
	}
	unproven := &LoginError{Err: err, Unproven: true}
	if failed, ok := errors.AsType[*askError](err); ok {
		unproven.Err, unproven.Stderr = failed.err, failed.stderr
	}
	return unproven
}

// asUsual is how an agent is started for a conversation, with values that need not be kept yet.
func (c *Catalogue) asUsual(ctx context.Context, e entry, at place, dir string, values map[string]string) proxy.Command {
	cmd := c.command(ctx, e, at, dir)
	cmd.Purpose = ForLogin
	cmd.Env = filtered(cmd.Env, values)
	if at.home != "" {
		cmd.Env = append(cmd.Env, homeVariable+"="+at.home) // which filtered has taken out
	}
	return cmd
}

// begins begins a session and ends it again.
func (c *Catalogue) begins(ctx context.Context, e entry, q *question, dir string) error {
	starting, started := context.WithTimeout(ctx, cmp.Or(c.cfg.Patience, usualPatience))
	defer started()
	began, err := q.call(starting, "initialize", initializeParams())
	if err != nil {
		return err
	}
	since := time.Now()
	limit := max(proofLimit, time.Duration(e.known.Quirks.SessionSeconds)*time.Second)
	beginning, begun := context.WithTimeout(ctx, limit)
	defer begun()
	result, err := q.call(beginning, methodNew, map[string]any{"cwd": dir, "mcpServers": []any{}})
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(beginning.Err(), context.DeadlineExceeded):
		return q.failed(methodNew, fmt.Errorf("it has not begun a conversation within %v", limit))
	case err != nil:
		return err
	}
	q.leave(ctx, began, result)
	if a, told := q.account(ctx, began, since); told && a.signedOut() {
		return q.failed(methodNew, &acp.Error{Code: acp.CodeAuthRequired, Message: a.words()})
	}
	return ctx.Err()
}

const methodNew = "session/new"

// leave has the agent forget a session that nobody needs, where it can.
func (q *question) leave(ctx context.Context, initialized, session json.RawMessage) {
	if deletes(initialized) {
		q.forget(ctx, session)
	}
}

// accountUpdate is the notification by which some agents tell, unasked, as whom they are signed in. It is no part of the protocol yet.
const accountUpdate = "_auth/status_update"

// account is as whom an agent is signed in.
type account struct {
	Kind   string `json:"kind"` // none = nobody is
	Label  string `json:"label"`
	Detail string `json:"detail"`
}

func (a account) signedOut() bool { return a.Kind == "none" }

// words are what a person reads of it.
func (a account) words() string {
	text := cmp.Or(a.Label, a.Kind)
	if a.Detail != "" {
		text += " (" + a.Detail + ")"
	}
	return text
}

// accounts holds what an agent has told of its account last.
type accounts struct {
	last atomic.Pointer[account]
	news chan struct{} // holds one
}

// take takes a notification in.
func (s *accounts) take(msg []byte) {
	var m struct {
		Params struct {
			Status *account `json:"authStatus"`
		} `json:"params"`
	}
	if json.Unmarshal(msg, &m) != nil || m.Params.Status == nil || m.Params.Status.Kind == "" {
		return
	}
	s.last.Store(m.Params.Status)
	select {
	case s.news <- struct{}{}:
	default: // who waits looks anew
	}
}

// account is what an agent tells of its account: told is false when the agent says nothing. Whether an agent will say something stands in
// its answer to initialize, which came at since.
func (q *question) account(ctx context.Context, initialized json.RawMessage, since time.Time) (a account, told bool) {
	now := q.accounts.last.Load()
	if now == nil && tellsAccount(initialized) {
		now = q.nextAccount(ctx, max(time.Until(since.Add(accountLimit)), accountGrace), func(account) bool { return true })
	}
	if now != nil && now.signedOut() {
		now = q.nextAccount(ctx, accountGrace, func(a account) bool { return !a.signedOut() })
	}
	if now == nil {
		return account{}, false
	}
	return *now, true
}

// nextAccount waits a while for an account that will do, and gives the last that the agent has told.
func (q *question) nextAccount(ctx context.Context, limit time.Duration, will func(account) bool) *account {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-q.accounts.news:
			if a := q.accounts.last.Load(); will(*a) {
				return a
			}
		case <-timer.C:
			return q.accounts.last.Load()
		case <-ctx.Done():
			return q.accounts.last.Load()
		}
	}
}

// tellsAccount tells whether an agent says that it will tell of its account.
func tellsAccount(initialized json.RawMessage) bool {
	var r struct {
		Capabilities struct {
			Meta struct {
				Status *struct{} `json:"authStatus"`
			} `json:"_meta"`
		} `json:"agentCapabilities"`
	}
	return json.Unmarshal(initialized, &r) == nil && r.Capabilities.Meta.Status != nil
}
