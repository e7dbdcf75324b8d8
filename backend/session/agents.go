package session

import (
	"context"
	"errors"

	"deskhand/backend/agents"
)

// InstallProgress is how far an installation is.
type InstallProgress struct {
	Agent string `json:"agent"`
	agents.Progress
}

// Codes of what cannot be done with an agent.
const (
	refusedNoAgent      = "agent.unknown"
	refusedInstalling   = "agent.installing"
	refusedInstallable  = "agent.not_installable"
	refusedVersion      = "agent.version"
	refusedNoPrevious   = "agent.no_previous"
	refusedInUse        = "agent.in_use"
	refusedNotOurs      = "agent.not_ours"
	refusedInstallation = "agent.install_failed"
)

// announce tells the feed of an installation, whoever asked for it. Progress comes in the order of things; at the end comes the
// agent, with the reason when it failed.
func (c *Client) announce(n agents.News) {
	if !n.Ended {
		n.Log = c.secret.text(n.Log)
		c.feed.publish(Event{Type: eventInstall, Data: mustJSON(InstallProgress{n.Agent, n.Progress})})
		return
	}
	c.announceAgent(n.Agent, c.failure(n.Err))
}

// announceAgent tells the feed how an agent is now. What it tells is looked up and told in one go, so that what is told last holds.
func (c *Client) announceAgent(id string, failure *agents.Failure) {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	a, err := c.cfg.Agents.Agent(id)
	if err != nil {
		return // it has just been taken out of agents.json
	}
	a.Failure = failure
	c.feed.publish(Event{Type: eventAgent, Data: mustJSON(a)})
}

// failure is what people are told of an installation that failed; one that somebody ended has not.
func (c *Client) failure(err error) *agents.Failure {
	if err == nil || errors.Is(err, agents.ErrCancelled) || errors.Is(err, agents.ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	f := &agents.Failure{Code: refusedInstallation, Detail: c.secret.text(err.Error())}
	if failed, ok := errors.AsType[*agents.InstallError](err); ok {
		f.Detail, f.Stderr = c.secret.text(failed.Err.Error()), c.secret.text(failed.Stderr)
	}
	return f
}

// Install starts an installation and gives the agent as it is from then on. How it goes on is told by events.
func (c *Client) Install(id, version string) (agents.Agent, error) {
	if err := c.cfg.Agents.Begin(id, version); err != nil {
		return agents.Agent{}, refusedAgent(id, err)
	}
	a, err := c.cfg.Agents.Agent(id)
	return a, refusedAgent(id, err)
}

// CancelInstall ends an installation, and returns when nothing of it is left.
func (c *Client) CancelInstall(ctx context.Context, id string) error {
	return refusedAgent(id, c.cfg.Agents.Cancel(ctx, id))
}

// Rollback goes back to the version before.
func (c *Client) Rollback(id string) (agents.Agent, error) {
	if err := c.cfg.Agents.Rollback(id); err != nil {
		return agents.Agent{}, refusedAgent(id, err)
	}
	c.announceAgent(id, nil)
	a, err := c.cfg.Agents.Agent(id)
	return a, refusedAgent(id, err)
}

// Uninstall removes what Deskhand installed of an agent.
func (c *Client) Uninstall(id string) error {
	err := c.cfg.Agents.Uninstall(id)
	if err == nil {
		c.announceAgent(id, nil)
	}
	return refusedAgent(id, err)
}

// TestAgent starts an agent and tells how that went. Secrets are taken out of what the agent wrote: reports are sent to others.
func (c *Client) TestAgent(ctx context.Context, id string) (agents.Report, error) {
	r, err := c.cfg.Agents.Test(ctx, id)
	if err != nil {
		return r, refusedAgent(id, err)
	}
	r.Stderr = c.secret.text(r.Stderr)
	for n := range r.Steps {
		r.Steps[n].Detail = c.secret.text(r.Steps[n].Detail)
	}
	for _, a := range r.Advice {
		for name, value := range a.Params {
			a.Params[name] = c.secret.text(value)
		}
	}
	c.announceAgent(id, nil)
	return r, nil
}

// refusedAgent gives the errors of package agents their codes.
func refusedAgent(id string, err error) error {
	for _, row := range []struct {
		err  error
		code string
		bad  bool
	}{
		{agents.ErrUnknown, refusedNoAgent, true},
		{agents.ErrInstalling, refusedInstalling, false},
		{agents.ErrNotInstallable, refusedInstallable, true},
		{agents.ErrVersion, refusedVersion, true},
		{agents.ErrNoPrevious, refusedNoPrevious, false},
		{agents.ErrInUse, refusedInUse, false},
		{agents.ErrNotOurs, refusedNotOurs, true},
		{agents.ErrClosed, "", false},
	} {
		if !errors.Is(err, row.err) {
			continue
		}
		if row.code == "" {
			return ErrClosed
		}
		return &RefusedError{Code: row.code, Params: map[string]string{"agent": id, "detail": err.Error()}, Bad: row.bad}
	}
	return err
}
