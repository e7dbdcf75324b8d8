package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/environ"
	"deskhand/backend/probe"
	"deskhand/backend/proxy"
)

// proofLimit is how long a session may take to begin. Claude's session/new has taken 18 s with a key that its vendor could not be asked
// about.
const proofLimit = 2 * time.Minute

// Prove begins a conversation with an agent in an empty directory, as for a person, and ends the conversation: an agent's answer to
// authenticate proves little, and some agents are signed in for a single process. The agent gets values beside the stored ones. A
// *LoginError with Unproven says why no conversation can begin. The end of ctx ends the agent.
func (l *Logins) Prove(ctx context.Context, id string, values map[string]string) error {
	e, at, err := l.ready(ctx, id)
	if err != nil {
		return err
	}
	ctx, release := l.background.Call(ctx)
	defer release()
	err = l.launcher.prober.Attend(ctx, id, func(dir string) (proxy.Command, error) {
		return l.asUsual(ctx, e, at, dir, values), nil
	}, func(q *probe.Probe, dir string) error {
		return l.begins(ctx, e, q, dir)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.notes.note(e, at, err)
	if err == nil {
		return nil
	}
	unproven := &LoginError{Err: err, Unproven: true}
	if failed, ok := errors.AsType[*probe.Error](err); ok {
		unproven.Err, unproven.Stderr = failed.Err, failed.Stderr
	}
	return unproven
}

// asUsual returns the command that starts an agent for a conversation, with values that need not be stored yet.
func (l *Logins) asUsual(ctx context.Context, e entry, at place, dir string, values map[string]string) proxy.Command {
	cmd := l.launcher.command(ctx, e, at, dir)
	cmd.Purpose = ForLogin
	cmd.Env = environ.With(cmd.Env, values)
	if at.home != "" {
		cmd.Env = append(cmd.Env, environ.AgentHome+"="+at.home) // filtered has removed the variable
	}
	return cmd
}

// begins begins a session and ends it again.
func (l *Logins) begins(ctx context.Context, e entry, q *probe.Probe, dir string) error {
	starting, started := context.WithTimeout(ctx, cmp.Or(l.cfg.Patience, usualPatience))
	defer started()
	began, err := q.Call(starting, "initialize", probe.InitializeParams())
	if err != nil {
		return err
	}
	since := time.Now()
	limit := max(proofLimit, time.Duration(e.known.Quirks.SessionSeconds)*time.Second)
	beginning, begun := context.WithTimeout(ctx, limit)
	defer begun()
	result, err := q.Call(beginning, probe.MethodNew, map[string]any{"cwd": dir, "mcpServers": []any{}})
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(beginning.Err(), context.DeadlineExceeded):
		return q.Fail(probe.MethodNew, fmt.Errorf("it has not begun a conversation within %v", limit))
	case err != nil:
		return err
	}
	q.Leave(ctx, began, result)
	a, told := q.Account(ctx, began, since)
	if told {
		l.notes.noteAccount(e.id, a)
	}
	if told && a.SignedOut() {
		return q.Fail(probe.MethodNew, &acp.Error{Code: acp.CodeAuthRequired, Message: a.Words()})
	}
	return ctx.Err()
}
