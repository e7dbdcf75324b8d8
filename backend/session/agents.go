package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/mcp"
	"deskhand/backend/transcript"
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
	refusedPlan         = "agent.plan_failed"
	refusedDefinition   = "agent.definition"
	refusedUndefined    = "agent.no_definition"
	refusedFile         = "agents.file_broken"
)

// announce tells the feed of an installation, whoever asked for it. Progress comes in the order of things; at the end comes the
// agent, with the reason when it failed.
func (c *Client) announce(n agents.News) {
	switch {
	case n.Aside:
	case n.Ended:
		c.failures.set(n.Agent, c.failure(n.Err))
	default:
		c.failures.set(n.Agent, nil)
		n.Log = c.secret.Text(n.Log)
		c.feed.publish(Event{Type: eventInstall, Data: mustJSON(InstallProgress{n.Agent, n.Progress})})
		return
	}
	c.announceAgent(n.Agent)
}

// failures are why the last installations failed, by agent. The catalogue does not keep them: it does not know what must not be told.
type failures struct {
	mu  sync.Mutex
	why map[string]*agents.Failure
}

func (f *failures) set(id string, why *agents.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.why == nil {
		f.why = map[string]*agents.Failure{}
	}
	delete(f.why, id)
	if why != nil {
		f.why[id] = why
	}
}

// of puts the failure of an agent into its record.
func (f *failures) of(a agents.Agent) agents.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Installing == nil {
		a.Failure = f.why[a.ID]
	}
	return a
}

// forget drops all of them, and tells whose they were.
func (f *failures) forget() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := slices.Sorted(maps.Keys(f.why))
	clear(f.why)
	return ids
}

// ListAgents gives the agents that a person can choose from, or the whole catalogue, and what is wrong with agents.json, if anything. A
// fresh look has the login shell read anew, and forgets why installations have failed.
func (c *Client) ListAgents(ctx context.Context, all, fresh bool) ([]agents.Agent, error) {
	if fresh {
		for _, id := range c.failures.forget() {
			c.announceAgent(id)
		}
		c.cfg.Agents.Settle(ctx, true)
	}
	look := c.cfg.Agents.List
	if all {
		look = c.cfg.Agents.All
	}
	list, err := look()
	for n := range list {
		list[n] = c.told(list[n])
	}
	return list, err
}

// PrepareAgents has the list of agents be as it can be: settled waits until the login shell has been read, and newest has the registry asked. It
// tells why the registry gave no answer; "" when it did.
func (c *Client) PrepareAgents(ctx context.Context, settled, newest bool) (unasked string) {
	const patience = 5 * time.Second
	if settled || newest {
		c.cfg.Agents.Settle(ctx, false) // the registry may be reached by a proxy that the shell names
	}
	if newest {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := c.cfg.Agents.AskRegistry(ctx); err != nil {
			return c.secret.Text(err.Error())
		}
	}
	return ""
}

// agent is one agent as people see it.
func (c *Client) agent(id string) (agents.Agent, error) {
	a, err := c.cfg.Agents.Agent(id)
	return c.told(a), refusedAgent(id, err)
}

// told is an agent as it may be told of: why it wants a login is in its own words, which may hold the key that it has refused.
func (c *Client) told(a agents.Agent) agents.Agent {
	a.Detail = c.secret.Text(a.Detail)
	return c.failures.of(a)
}

// loginNews is what agents have last said of a login, until the catalogue is told.
type loginNews struct {
	mu      sync.Mutex // protects what is below
	of      map[string]*acp.Error
	telling bool
}

// noteLogin tells the catalogue that an agent has refused for want of a login, or, with nil, that it has not. The catalogue looks for the agent on
// the disk then, which may take for ever: no conversation waits for that.
func (c *core) noteLogin(id string, refused *acp.Error) {
	if refused != nil {
		refused = &acp.Error{Code: refused.Code, Message: c.words(refused)}
	}
	n := &c.loginNews
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]*acp.Error{}
	}
	n.of[id] = refused
	if !n.telling {
		n.telling = c.background(c.tellLogins)
	}
}

// tellLogins tells it what each of them said last, one after the other.
func (c *core) tellLogins() {
	for {
		id, refused, some := c.loginNews.next()
		if !some {
			return
		}
		c.cfg.Agents.NoteLogin(id, refused)
	}
}

// next takes the news of one agent; where there are none who tells them has ended.
func (n *loginNews) next() (id string, refused *acp.Error, some bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, refused = range n.of {
		delete(n.of, id)
		return id, refused, true
	}
	n.telling = false
	return "", nil, false
}

// announceAgent tells the feed how an agent is now. What it tells is looked up and told in one go, so that what is told last holds.
func (c *Client) announceAgent(id string) {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	a, err := c.agent(id)
	if err != nil {
		return // it has just been taken out of agents.json
	}
	c.feed.publish(Event{Type: eventAgent, Data: mustJSON(a)})
}

// failure is what people are told of an installation that failed; one that somebody ended has not.
func (c *Client) failure(err error) *agents.Failure {
	if err == nil || errors.Is(err, agents.ErrCancelled) || errors.Is(err, agents.ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	f := &agents.Failure{Code: refusedInstallation, Detail: c.secret.Text(err.Error())}
	if failed, ok := errors.AsType[*agents.InstallError](err); ok {
		f.Detail, f.Stderr = c.secret.Text(failed.Err.Error()), c.secret.Text(failed.Stderr)
	}
	return f
}

// Install starts an installation and gives the agent as it is from then on. How it goes on is told by events.
func (c *Client) Install(id, version string) (agents.Agent, error) {
	if err := c.cfg.Agents.Begin(id, version); err != nil {
		return agents.Agent{}, refusedAgent(id, err)
	}
	return c.agent(id)
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
	c.failures.set(id, nil)
	c.announceAgent(id)
	return c.agent(id)
}

// Uninstall removes what Deskhand installed of an agent.
func (c *Client) Uninstall(id string) error {
	err := c.cfg.Agents.Uninstall(id)
	if err == nil {
		c.failures.set(id, nil)
		c.announceAgent(id)
	}
	return refusedAgent(id, err)
}

// Plan tells what an installation would get, and whether there is room for it.
func (c *Client) Plan(ctx context.Context, id, version string) (agents.Plan, error) {
	p, err := c.cfg.Agents.Plan(ctx, id, version)
	if failed, ok := errors.AsType[*agents.InstallError](err); ok && ctx.Err() == nil {
		return p, &RefusedError{Code: refusedPlan, Params: map[string]string{"agent": id, "detail": c.secret.Text(failed.Err.Error())}}
	}
	return p, refusedAgent(id, err)
}

// Definition is what agents.json says of an agent; values of its environment are masked.
func (c *Client) Definition(id string) (agents.Definition, error) {
	d, err := c.cfg.Agents.Definition(id)
	return d, refusedAgent(id, err)
}

// Define writes an agent into agents.json.
func (c *Client) Define(d agents.Definition) (agents.Agent, error) {
	if err := c.cfg.Agents.Define(d); err != nil {
		return agents.Agent{}, refusedAgent(d.ID, err)
	}
	return c.agent(d.ID)
}

// Undefine takes an agent out of agents.json.
func (c *Client) Undefine(id string) error {
	return refusedAgent(id, c.cfg.Agents.Undefine(id))
}

// TestDefinition is TestAgent for an agent that is not written down yet.
func (c *Client) TestDefinition(ctx context.Context, d agents.Definition) (agents.Report, error) {
	c.cfg.Secrets.Remember(d.ID) // what it has hidden is what is stored
	entered := maps.Clone(d.Env)
	maps.DeleteFunc(entered, func(_, value string) bool { return value == agents.Masked })
	c.secret.Remember(mcp.CertainIn(entered))
	r, err := c.cfg.Agents.TestDefinition(ctx, d)
	if err != nil {
		return r, refusedAgent(d.ID, err)
	}
	c.clean(&r)
	return r, nil
}

// TestAgent starts an agent and tells how that went.
func (c *Client) TestAgent(ctx context.Context, id string) (agents.Report, error) {
	c.cfg.Secrets.Remember(id)
	r, err := c.cfg.Agents.Test(ctx, id)
	if err != nil {
		return r, refusedAgent(id, err)
	}
	c.clean(&r)
	r.Agent = c.told(r.Agent)
	c.announceAgent(id)
	return r, nil
}

// clean takes secrets out of what the agent wrote: reports are sent to others.
func (c *Client) clean(r *agents.Report) {
	r.Stderr, r.Capabilities = c.secret.Text(r.Stderr), c.secret.Message(r.Capabilities)
	r.Agent.Detail = c.secret.Text(r.Agent.Detail)
	if i := r.AgentInfo; i != nil {
		i.Name, i.Version, i.Title = c.secret.Text(i.Name), c.secret.Text(i.Version), c.secret.Text(i.Title)
	}
	for n, m := range r.AuthMethods {
		r.AuthMethods[n].Name, r.AuthMethods[n].Description = c.secret.Text(m.Name), c.secret.Text(m.Description)
	}
	for n := range r.Steps {
		r.Steps[n].Detail = c.secret.Text(r.Steps[n].Detail)
	}
	for _, a := range r.Advice {
		for name, value := range a.Params {
			a.Params[name] = c.secret.Text(value)
		}
	}
}

// startable refuses an agent that is not in the catalogue of a place. A runtime elsewhere judges its agents itself.
func (c *Client) startable(place, agent string) error {
	if catalogue := c.hosts.At(place).Agents; catalogue != nil && !catalogue.Known(agent) {
		return c.unknownAgent(agent)
	}
	return nil
}

// unknownAgent refuses an agent that is in no table. Where agents.json cannot be read, it may be there, and the refusal says so.
func (c *Client) unknownAgent(id string) *RefusedError {
	if err := c.cfg.Agents.FileProblem(); err != nil {
		return bad(transcript.ProblemUnknown, "agent", id, "detail", err.Error())
	}
	return bad(transcript.ProblemUnknown, "agent", id)
}

// refusedAgent gives the errors of package agents their codes.
func refusedAgent(id string, err error) error {
	if errors.Is(err, agents.ErrUnknown) {
		r := bad(refusedNoAgent, "agent", id)
		if errors.Is(err, agents.ErrFile) {
			r.Params["detail"] = err.Error()
		}
		return r
	}
	for _, row := range []struct {
		err  error
		code string
		bad  bool
	}{
		{agents.ErrInstalling, refusedInstalling, false},
		{agents.ErrNotInstallable, refusedInstallable, true},
		{agents.ErrVersion, refusedVersion, true},
		{agents.ErrNoPrevious, refusedNoPrevious, false},
		{agents.ErrInUse, refusedInUse, false},
		{agents.ErrNotOurs, refusedNotOurs, true},
		{agents.ErrNoDefinition, refusedUndefined, true},
		{agents.ErrDefinition, refusedDefinition, true},
		{agents.ErrFile, refusedFile, false},
		{agents.ErrWrite, "config.unwritable", false},
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
