package roster

import (
	"context"
	"errors"
	"maps"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/mcp"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// List returns the agents that a person can choose from, or the whole catalogue. The error says what is wrong with agents.json. A fresh list has
// the login shell read anew, and forgets why installations have failed.
func (a *Agents) List(ctx context.Context, all, fresh bool) ([]agents.Agent, error) {
	if fresh {
		for _, id := range a.failures.clear() {
			a.tell(id)
		}
		a.catalogue.Environment().Settle(ctx, true)
	}
	read := a.catalogue.List
	if all {
		read = a.catalogue.All
	}
	list, err := read()
	for n := range list {
		list[n] = a.shown(list[n])
	}
	return list, err
}

// Prepare waits until the list of agents is complete: settled waits until the login shell has been read, and newest has the registry asked.
// unasked is why the registry gave no answer, or empty.
func (a *Agents) Prepare(ctx context.Context, settled, newest bool) (unasked string) {
	const patience = 5 * time.Second
	if settled || newest {
		a.catalogue.Environment().Settle(ctx, false) // the registry may be reached by a proxy that the shell names
	}
	if newest {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := a.catalogue.Registry().Ask(ctx); err != nil {
			return a.secret.Text(err.Error())
		}
	}
	return ""
}

// Definition returns the definition of an agent in agents.json, with the values of the environment masked.
func (a *Agents) Definition(id string) (agents.Definition, error) {
	d, err := a.catalogue.Definitions().Find(id)
	return d, refused(id, err)
}

// Define writes an agent into agents.json.
func (a *Agents) Define(d agents.Definition) (agents.Agent, error) {
	if err := a.catalogue.Definitions().Define(d); err != nil {
		return agents.Agent{}, refused(d.ID, err)
	}
	return a.get(d.ID)
}

// Undefine takes an agent out of agents.json.
func (a *Agents) Undefine(id string) error {
	return refused(id, a.catalogue.Definitions().Undefine(id))
}

// Test starts an agent, and reports how the start went.
func (a *Agents) Test(ctx context.Context, id string) (agents.Report, error) {
	a.secrets.Remember(id)
	r, err := a.catalogue.Test(ctx, id)
	if err != nil {
		return r, refused(id, err)
	}
	a.clean(&r)
	r.Agent = a.shown(r.Agent)
	a.tell(id)
	return r, nil
}

// TestDefinition is Test for a definition that is not stored.
func (a *Agents) TestDefinition(ctx context.Context, d agents.Definition) (agents.Report, error) {
	a.secrets.Remember(d.ID) // a masked value stands for the stored value
	entered := maps.Clone(d.Env)
	maps.DeleteFunc(entered, func(_, value string) bool { return value == agents.Masked })
	a.secret.Remember(mcp.CertainIn(entered))
	r, err := a.catalogue.TestDefinition(ctx, d)
	if err != nil {
		return r, refused(d.ID, err)
	}
	a.clean(&r)
	return r, nil
}

// clean takes secrets out of a report, which people send to others.
func (a *Agents) clean(r *agents.Report) {
	text := a.secret.Text
	r.Stderr, r.Capabilities = text(r.Stderr), a.secret.Message(r.Capabilities)
	r.Agent.Detail = text(r.Agent.Detail)
	if i := r.AgentInfo; i != nil {
		i.Name, i.Version, i.Title = text(i.Name), text(i.Version), text(i.Title)
	}
	for n, m := range r.AuthMethods {
		r.AuthMethods[n].Name, r.AuthMethods[n].Description = text(m.Name), text(m.Description)
	}
	for n := range r.Steps {
		r.Steps[n].Detail = text(r.Steps[n].Detail)
	}
	for _, advice := range r.Advice {
		for name, value := range advice.Params {
			advice.Params[name] = text(value)
		}
	}
}

// Codes of refusals about agents.
const (
	refusedNoAgent      = transcript.ProblemUnknown
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
	refusedWrite        = "config.unwritable"
)

// refused returns the refusal of an error of package agents; other errors stay.
func refused(id string, err error) error {
	if errors.Is(err, agents.ErrUnknown) {
		r := refusal.Bad(refusedNoAgent, "agent", id)
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
		{agents.ErrWrite, refusedWrite, false},
	} {
		if errors.Is(err, row.err) {
			return &refusal.Error{Code: row.code, Params: map[string]string{"agent": id, "detail": err.Error()}, Bad: row.bad}
		}
	}
	if errors.Is(err, agents.ErrClosed) {
		return refusal.ErrClosed
	}
	return err
}
