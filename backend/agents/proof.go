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
	"deskhand/backend/environ"
	"deskhand/backend/proxy"
)

// Time limits of a proof. Claude's session/new has taken 18 s with a key that its vendor could not be asked about.
const (
	proofLimit = 2 * time.Minute
	// An agent that reports its account looks the account up in parallel, from initialize on: Claude allows its own program 5 s.
	accountLimit = 8 * time.Second
	// A session may know the account better than that lookup: an agent that reports no login gets this time to correct itself.
	accountGrace = time.Second
)

// Prove begins a conversation with an agent in an empty directory, as for a person, and ends the conversation: an agent's answer to
// authenticate proves little, and some agents are signed in for a single process. The agent gets values beside the stored ones. A
// *LoginError with Unproven says why no conversation can begin. The end of ctx ends the agent.
func (c *Catalogue) Prove(ctx context.Context, id string, values map[string]string) error {
	e, at, err := c.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)() //nolint:contextcheck // both Close and the caller end it
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

// asUsual returns the command that starts an agent for a conversation, with values that need not be stored yet.
func (c *Catalogue) asUsual(ctx context.Context, e entry, at place, dir string, values map[string]string) proxy.Command {
	cmd := c.command(ctx, e, at, dir)
	cmd.Purpose = ForLogin
	cmd.Env = environ.With(cmd.Env, values)
	if at.home != "" {
		cmd.Env = append(cmd.Env, environ.AgentHome+"="+at.home) // filtered has removed the variable
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

// leave has the agent forget the probe's session, where the agent supports that.
func (q *question) leave(ctx context.Context, initialized, session json.RawMessage) {
	if deletes(initialized) {
		q.forget(ctx, session)
	}
}

// accountUpdate is a notification, outside the protocol, by which some agents report the signed-in account unasked.
const accountUpdate = "_auth/status_update"

// account is the account that an agent is signed in with.
type account struct {
	Kind   string `json:"kind"` // none = signed out
	Label  string `json:"label"`
	Detail string `json:"detail"`
}

func (a account) signedOut() bool { return a.Kind == "none" }

// words returns the account's text for a person.
func (a account) words() string {
	text := cmp.Or(a.Label, a.Kind)
	if a.Detail != "" {
		text += " (" + a.Detail + ")"
	}
	return text
}

// accounts holds the last account that an agent reported.
type accounts struct {
	last atomic.Pointer[account]
	news chan struct{} // capacity 1
}

// take stores the account of a notification.
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
	default: // the waiter reads last anew
	}
}

// account returns the account that an agent reports; told is false when the agent reports none. initialized, the answer to initialize, says
// whether the agent will report an account; since is when that answer came.
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

// nextAccount waits up to limit for an account that satisfies will, and returns the last reported account.
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

// tellsAccount reports whether the agent announces account notifications.
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
