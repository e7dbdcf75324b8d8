package agents

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
)

// InfoQuery selects which details Info and Infos return.
type InfoQuery struct {
	Config bool // adds version, path and config options, which means asking the agent itself, where possible, and takes seconds
	Fresh  bool // ignores earlier answers of the agent
}

// Info is an agent as the API describes it.
type Info struct {
	ID                   string            `json:"id"`
	Name                 string            `json:"name"`
	Installed            bool              `json:"installed" doc:"The agent can be started now"`
	CredentialsAvailable bool              `json:"credentialsAvailable" doc:"Credentials were found in the agent's environment or in the files of its providers. False may also mean that no such file is known"`
	Version              string            `json:"version,omitempty" doc:"Version that the agent reports"`
	Path                 string            `json:"path,omitempty" doc:"Path of the program that is started"`
	Capabilities         Capabilities      `json:"capabilities"`
	ConfigOptions        []json.RawMessage `json:"configOptions,omitempty" doc:"SessionConfigOption entries of ACP"`
	ConfigError          string            `json:"configError,omitempty" doc:"Reason that the agent could not be asked; configOptions then come from the catalogue"`
}

// Info describes an agent, or fails with ErrUnknown. That an agent could not be asked is no error; Info.ConfigError says so.
func (c *Catalogue) Info(ctx context.Context, id string, q InfoQuery) (Info, error) {
	e, err := c.table.row(id)
	if err != nil {
		return Info{}, err
	}
	c.environment.Settle(ctx, q.Fresh)
	return c.info(ctx, e, q)
}

// Infos describes every agent: the catalogue in its order, short ids first, then agents.json in its order, the demo agent last. A mistake
// in agents.json hides the affected agents and is no error; List returns that error.
func (c *Catalogue) Infos(ctx context.Context, q InfoQuery) ([]Info, error) {
	c.environment.Settle(ctx, q.Fresh)
	rows, _ := c.table.rows()
	rows = append(rows[1:], rows[0])
	list, errs := make([]Info, len(rows)), make([]error, len(rows))
	var asking sync.WaitGroup
	for n, e := range rows {
		asking.Go(func() { list[n], errs[n] = c.info(ctx, e, q) })
	}
	asking.Wait()
	return list, errors.Join(errs...)
}

// info fails only with the context's error.
func (c *Catalogue) info(ctx context.Context, e entry, q InfoQuery) (Info, error) {
	at, err := c.finder.locate(e)
	here := err == nil && e.broken == ""
	i := Info{
		ID: e.id, Name: e.name, Installed: here, CredentialsAvailable: c.hasCredentials(e), Capabilities: e.known.Capabilities,
	}
	if !q.Config {
		return i, nil
	}
	i.ConfigOptions = slices.Clone(e.known.ConfigOptions)
	if !here {
		return i, nil
	}
	i.Path, i.Version = at.program, at.version
	o, err := c.offers.of(ctx, e, at, q.Fresh)
	if o.Version != "" {
		i.Version = o.Version
	}
	if o.Options != nil {
		i.ConfigOptions = o.Options
	}
	if ctx.Err() != nil {
		return i, ctx.Err()
	}
	if err != nil {
		i.ConfigError = err.Error()
	}
	return i, nil
}

// hasCredentials reports whether an agent will find credentials: among the values that are kept for its logins, in its environment, or in
// the files of its providers. Values are only looked at: no value is returned. A key in the system's keychain is not seen.
func (c *Catalogue) hasCredentials(e entry) bool {
	if e.source == Builtin {
		return true // the demo agent needs none
	}
	if kept, _ := c.vault.Names(e.id); len(kept) > 0 { // a file that cannot be read gives the agent nothing
		return true
	}
	look := lookout{c.environment.With(e.environ())}
	names := slices.Clone(e.known.Credentials.Environment)
	for _, p := range e.known.Credentials.Providers {
		names = append(names, variablesOf(p)...)
	}
	if slices.ContainsFunc(names, func(name string) bool { return look.variable(name) != "" }) {
		return true
	}
	return slices.ContainsFunc(e.known.Credentials.Providers, look.filesOf)
}
