package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"deskhand/backend/proxy"
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

// Capabilities lists the measured abilities of an agent. For an agent that nobody has measured, the abilities that the protocol demands of
// all are true.
type Capabilities struct {
	PlanMode         bool `json:"planMode" doc:"The agent has a mode that plans and changes nothing"`
	Permissions      bool `json:"permissions" doc:"The agent asks for permission before it acts"`
	Questions        bool `json:"questions" doc:"The agent asks the user questions"`
	ToolCalls        bool `json:"toolCalls" doc:"The agent reports tool calls"`
	ToolResults      bool `json:"toolResults" doc:"The agent reports the results of tool calls"`
	TextMessages     bool `json:"textMessages"`
	Images           bool `json:"images" doc:"The agent accepts images"`
	FileAttachments  bool `json:"fileAttachments" doc:"The agent accepts files"`
	SessionLifecycle bool `json:"sessionLifecycle" doc:"The agent loads or resumes sessions"`
	ErrorEvents      bool `json:"errorEvents" doc:"The agent reports errors as errors"`
	Reasoning        bool `json:"reasoning" doc:"The agent reports its thoughts"`
	Status           bool `json:"status" doc:"The agent reports its state and usage"`
	CommandExecution bool `json:"commandExecution" doc:"The agent runs commands"`
	FileChanges      bool `json:"fileChanges" doc:"The agent reports changed files"`
	MCPTools         bool `json:"mcpTools" doc:"The agent accepts MCP servers"`
	StreamingDeltas  bool `json:"streamingDeltas" doc:"The agent streams its messages"`
	ItemStarted      bool `json:"itemStarted" doc:"The agent reports tool calls before they end"`
	SharedProcess    bool `json:"sharedProcess" doc:"One agent process has several sessions"`
}

func allCapabilities() Capabilities {
	return Capabilities{
		PlanMode: true, Permissions: true, Questions: true, ToolCalls: true, ToolResults: true, TextMessages: true, Images: true,
		FileAttachments: true, SessionLifecycle: true, ErrorEvents: true, Reasoning: true, Status: true, CommandExecution: true,
		FileChanges: true, MCPTools: true, StreamingDeltas: true, ItemStarted: true, SharedProcess: true,
	}
}

// plainCapabilities returns the capabilities that the protocol demands of every agent.
func plainCapabilities() Capabilities {
	return Capabilities{ToolCalls: true, ToolResults: true, TextMessages: true, StreamingDeltas: true}
}

// Info describes an agent, or fails with ErrUnknown. That an agent could not be asked is no error; Info.ConfigError says so.
func (c *Catalogue) Info(ctx context.Context, id string, q InfoQuery) (Info, error) {
	e, err := c.row(id)
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
	rows, _ := c.rows()
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
	at, err := c.locate(e)
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
	o, err := c.offerOf(ctx, e, at, q.Fresh)
	if o.version != "" {
		i.Version = o.version
	}
	if o.options != nil {
		i.ConfigOptions = o.options
	}
	if ctx.Err() != nil {
		return i, ctx.Err()
	}
	if err != nil {
		i.ConfigError = err.Error()
	}
	return i, nil
}

// Time limits of asking. Claude's session/new has taken 19 s; the end of the process is noticed at once.
const (
	askLimit = 90 * time.Second
	// A failure is asked again after a while: a login may have cured the cause.
	failureLife = 30 * time.Second
)

// answer holds an agent's answer, perhaps still awaited.
type answer struct {
	done  chan struct{}
	at    time.Time // valid once done is closed, like offer and err
	offer offer
	err   error
}

// old reports whether the answer must be asked again.
func (a *answer) old(fresh bool) bool {
	select {
	case <-a.done:
		return fresh || a.err != nil && time.Since(a.at) > failureLife
	default:
		return false // an awaited answer is fresh
	}
}

// offerOf asks an agent for its offer, or returns the earlier answer. Concurrent callers for the same agent share the answer.
func (c *Catalogue) offerOf(ctx context.Context, e entry, at place, fresh bool) (offer, error) {
	cmd := c.command(ctx, e, at, "")
	if ctx.Err() != nil {
		return offer{}, ctx.Err() // cmd may lack values
	}
	key := e.key(at)
	c.mu.Lock()
	a := c.answers[key]
	if a == nil || a.old(fresh) {
		a = &answer{done: make(chan struct{})}
		if !c.backgroundLocked(func() { c.answer(a, e, at, cmd) }) { //nolint:contextcheck // other callers may wait for the answer too
			c.mu.Unlock()
			return offer{}, ErrClosed
		}
		c.answers[key] = a
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.offer, a.err
	case <-ctx.Done():
		return offer{}, ctx.Err()
	}
}

// answer asks the agent as soon as a slot is free.
func (c *Catalogue) answer(a *answer, e entry, at place, cmd proxy.Command) {
	defer close(a.done)
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-c.life.Done():
		a.err = ErrClosed
		return
	}
	ctx, cancel := context.WithTimeout(c.life, askLimit)
	defer cancel()
	a.offer, a.err = c.ask(ctx, e.id, cmd, true)
	c.noteLogin(e, at, a.err)
	a.at = time.Now()
}

// key changes when the agent's program or its way to start changes.
func (e entry) key(at place) string {
	return e.id + "\x00" + at.version + "\x00" + at.program + "\x00" + stamp(at.program) + "\x00" + fmt.Sprintf("%q %q %q", e.args, e.env, e.cwd)
}

// stamp changes when a program is replaced.
func stamp(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}
