package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/probe"
	"deskhand/backend/proxy"
)

// Report is the result of a test: how the start of an agent went.
type Report struct {
	Agent           Agent           `json:"agent"`
	Steps           []Step          `json:"steps" doc:"Steps of the test, up to and including a failed step"`
	ProtocolVersion *int            `json:"protocolVersion,omitempty"`
	AgentInfo       *AgentInfo      `json:"agentInfo,omitempty"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty" doc:"agentCapabilities as the agent sent them"`
	AuthMethods     []AuthMethod    `json:"authMethods,omitempty"`
	ExitCode        *int            `json:"exitCode,omitempty" doc:"Exit code of a process that ended by itself"`
	Signal          string          `json:"signal,omitempty"`
	Stderr          string          `json:"stderr,omitempty" doc:"End of the agent's stderr, at most 8 KiB"`
	Env             Env             `json:"env"`
	Advice          []Advice        `json:"advice" doc:"Advice for a person, the most useful first"`
}

// Healthy reports whether the agent has opened a session, and does not say that nobody is signed in.
func (r Report) Healthy() bool {
	n := len(r.Steps)
	return n > 0 && (r.Steps[n-1].Step == stepSession || r.Steps[n-1].Step == stepLogin) && r.Steps[n-1].OK
}

// Step is a step of a start.
type Step struct {
	Step   string `json:"step" enum:"resolve,spawn,initialize,session,login" doc:"Step of the test; login occurs for agents that say who is signed in"`
	OK     bool   `json:"ok"`
	Ms     int64  `json:"ms"`
	Detail string `json:"detail,omitempty"`
}

// AgentInfo is an agent's own name and version.
type AgentInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Title   string `json:"title,omitempty"`
}

// AuthMethod is a way to sign in that an agent offers.
type AuthMethod struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Env lists where programs are looked up.
type Env struct {
	Path []string `json:"path"`
	Node string   `json:"node,omitempty"`
	NPM  string   `json:"npm,omitempty"`
}

// Advice is an action or a fact for the person.
type Advice struct {
	Code   string            `json:"code" enum:"install,get,node,uv,reinstall,file,needs,login,protocol,silent,crash,spawn,banner,refused,cleanup"`
	Params map[string]string `json:"params"`
}

// The steps of a start; the first is StepResolve.
const (
	stepSpawn      = "spawn"
	stepInitialize = "initialize"
	stepSession    = "session"
	stepLogin      = "login"
)

// usualPatience is how long a tested agent may take to answer to initialize.
const usualPatience = time.Minute

// Test starts an agent in an empty directory, as a session would, and reports how the start went. When Test returns, every process that the
// agent started is gone. A failing agent is no error: Test fails only with ErrUnknown, ErrClosed and the context's error.
func (c *Catalogue) Test(ctx context.Context, id string) (Report, error) {
	e, err := c.table.row(id)
	if err != nil {
		return Report{}, err
	}
	return c.try(ctx, e)
}

// TestDefinition is Test of a definition that is not stored yet.
func (c *Catalogue) TestDefinition(ctx context.Context, d Definition) (Report, error) {
	e, err := c.definitions.draft(d)
	if err != nil {
		return Report{}, err
	}
	return c.try(ctx, e)
}

// try is Test for an entry, which need not be in the table.
func (c *Catalogue) try(ctx context.Context, e entry) (Report, error) {
	ctx, release := c.background.Call(ctx)
	defer release()
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
	}
	t := &trial{c: c, e: e, report: Report{Advice: []Advice{}, Steps: []Step{}}}
	t.run(ctx)
	switch {
	case c.background.Stopped():
		return Report{}, ErrClosed
	case ctx.Err() != nil:
		return Report{}, ctx.Err()
	}
	t.report.Agent = c.describe(e)
	return t.report, nil
}

// trial is the start of an agent that is tested.
type trial struct {
	c      *Catalogue
	e      entry
	at     place
	inst   *proxy.Instance
	report Report
}

// step runs a step and records its duration.
func (t *trial) step(name string, f func() (string, error)) bool {
	began := time.Now()
	detail, err := f()
	s := Step{Step: name, OK: err == nil, Ms: time.Since(began).Milliseconds(), Detail: detail}
	if err != nil {
		s.Detail = err.Error()
	}
	t.report.Steps = append(t.report.Steps, s)
	return s.OK
}

func (t *trial) advise(code string, params ...string) {
	a := Advice{Code: code, Params: map[string]string{"agent": t.e.name}}
	for n := 0; n+1 < len(params); n += 2 {
		a.Params[params[n]] = params[n+1]
	}
	t.report.Advice = append(t.report.Advice, a)
}

func (t *trial) run(ctx context.Context) {
	if !t.step(StepResolve, func() (string, error) { return t.resolve(ctx) }) {
		return
	}
	dir, err := os.MkdirTemp("", "deskhand-ask-*")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	if !t.step(stepSpawn, func() (string, error) {
		if err != nil {
			return "", err
		}
		return t.spawn(ctx, dir)
	}) {
		return
	}
	t.talk(ctx, dir)
	if t.report.Healthy() {
		t.cleanUp()
	}
}

func (t *trial) resolve(ctx context.Context) (string, error) {
	t.c.environment.Settle(ctx, false)
	path := []string{}
	for _, d := range t.c.environment.Surroundings().Directories {
		path = append(path, d.Path)
	}
	t.report.Env = Env{Path: path, Node: t.c.environment.Program("node"), NPM: t.c.environment.Program("npm")}
	if t.e.broken != "" {
		t.advise("file", "detail", t.e.broken)
		return "", errors.New(t.e.broken)
	}
	at, err := t.c.finder.find(t.e)
	if err != nil {
		t.missing(err)
		return "", err
	}
	t.at = at
	if err := t.c.finder.lacks(t.e); err != nil {
		t.advise("needs", "detail", err.Error())
		return "", err
	}
	return at.program + ": " + at.reason, nil
}

// missing advises about an agent that cannot be found.
func (t *trial) missing(err error) {
	install := t.c.store.installable(t.e)
	switch {
	case install == nil && t.e.known.via == viaNPM && (t.report.Env.Node == "" || t.report.Env.NPM == ""):
		t.advise("node", "detail", getNode)
	case install == nil && t.e.known.via == viaUVX && t.c.environment.Program("uv") == "":
		t.advise("uv", "detail", getUV)
	case install == nil && errors.Is(err, errUnusable):
		t.advise("reinstall", "detail", err.Error())
	case install == nil:
		t.advise("install", "id", t.e.id, "version", t.e.known.version)
	case t.e.source == OnPath:
		t.advise("get", "detail", t.e.how())
	default:
		t.advise("file", "detail", err.Error())
	}
}

func (t *trial) spawn(ctx context.Context, dir string) (string, error) {
	cmd := forgetful(t.e, t.c.launcher.command(ctx, t.e, t.at, dir), dir)
	inst, err := t.c.prober.Start(ctx, t.e.id, cmd)
	if err != nil {
		t.advise("spawn", "detail", err.Error())
		return "", err
	}
	t.inst = inst
	return "pid " + strconv.Itoa(inst.Status().PID), nil
}

// talk makes the calls of a session's start, and ends the agent.
func (t *trial) talk(ctx context.Context, dir string) {
	q := probe.New(t.inst)
	refusing := make(chan struct{})
	go func() {
		defer close(refusing)
		q.Refuse(context.WithoutCancel(ctx)) // ends when the agent has ended, so that all of its output is seen
	}()
	var began json.RawMessage
	ok := t.step(stepInitialize, func() (string, error) {
		var detail string
		var err error
		began, detail, err = t.initialize(ctx, q)
		return detail, err
	})
	since := time.Now()
	if ok && t.step(stepSession, func() (string, error) { return "", t.session(ctx, q, dir, began) }) {
		t.login(ctx, q, began, since)
	}
	t.died()
	t.report.Stderr = t.inst.Status().StderrTail
	if err := t.inst.Close(); err != nil {
		t.c.cfg.Logger.Warn("an agent that was tested cannot be ended", "agent", t.e.id, "error", err)
	}
	<-refusing
	t.report.Stderr = cmp.Or(t.report.Stderr, t.inst.Status().StderrTail) // early output may be read only after the answer
	if noise := q.Noise(); noise != "" {
		t.advise("banner", "text", noise)
	}
}

// died records how a process that ended by itself has ended.
func (t *trial) died() {
	if status := t.inst.Status(); status.Phase == proxy.Exited {
		t.report.ExitCode, t.report.Signal = status.ExitCode, status.Signal
	}
}

func (t *trial) initialize(ctx context.Context, q *probe.Probe) (json.RawMessage, string, error) {
	patience := cmp.Or(t.c.cfg.Patience, usualPatience)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result, err := q.Call(ctx, "initialize", probe.InitializeParams())
	if err != nil {
		return nil, "", t.unanswered(ctx, err, patience)
	}
	var r struct {
		ProtocolVersion acp.Integer     `json:"protocolVersion"`
		AgentInfo       *AgentInfo      `json:"agentInfo"`
		Capabilities    json.RawMessage `json:"agentCapabilities"`
		AuthMethods     []AuthMethod    `json:"authMethods"`
	}
	_ = json.Unmarshal(result, &r) // fields that do not fit stay empty; the version is checked below
	t.report.ProtocolVersion, t.report.AgentInfo, t.report.AuthMethods = r.ProtocolVersion.Int(), r.AgentInfo, distinctWays(r.AuthMethods)
	if len(r.Capabilities) > 0 && !bytes.Equal(r.Capabilities, []byte("null")) {
		t.report.Capabilities = r.Capabilities
	}
	can, err := acp.ParseInitialized(result)
	if err != nil {
		return nil, "", err
	}
	if can.ProtocolVersion != 1 {
		t.advise("protocol", "theirs", strconv.Itoa(can.ProtocolVersion), "ours", "1")
		return nil, "", fmt.Errorf("it speaks version %d of the protocol, and we 1", can.ProtocolVersion)
	}
	detail := ""
	if r.AgentInfo != nil {
		detail = strings.TrimSpace(r.AgentInfo.Name + " " + r.AgentInfo.Version)
	}
	return result, detail, nil
}

func (t *trial) session(ctx context.Context, q *probe.Probe, dir string, began json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	result, err := q.Call(ctx, probe.MethodNew, map[string]any{"cwd": dir, "mcpServers": []any{}})
	t.c.notes.note(t.e, t.at, err)
	if err != nil {
		return t.unanswered(ctx, err, askLimit)
	}
	q.Leave(ctx, began, result)
	return nil
}

// login is the step of agents that report their signed-in account: Claude opens a session without a login, and fails at the first prompt.
func (t *trial) login(ctx context.Context, q *probe.Probe, began json.RawMessage, since time.Time) {
	at := time.Now()
	a, told := q.Account(ctx, began, since)
	if !told {
		return
	}
	t.c.notes.noteAccount(t.e.id, a)
	t.report.Steps = append(t.report.Steps, Step{Step: stepLogin, OK: !a.SignedOut(), Ms: time.Since(at).Milliseconds(), Detail: a.Words()})
	if a.SignedOut() {
		refused := &acp.Error{Code: acp.CodeAuthRequired, Message: a.Words()}
		t.c.notes.note(t.e, t.at, refused)
		t.adviseLogin(refused)
	}
}

func (t *trial) adviseLogin(refused *acp.Error) {
	names := make([]string, 0, len(t.report.AuthMethods))
	for _, m := range t.report.AuthMethods {
		names = append(names, m.Name)
	}
	t.advise("login", "detail", refused.Sentence(), "methods", strings.Join(names, ", "), "id", t.e.id)
}

// unanswered advises about a failed call, and returns the reason without the name of the step.
func (t *trial) unanswered(ctx context.Context, err error, patience time.Duration) error {
	refused, answered := errors.AsType[*acp.Error](err)
	switch {
	case answered && refused.Code == acp.CodeAuthRequired:
		t.adviseLogin(refused)
	case answered:
		t.advise("refused", "detail", refused.Sentence())
	case errors.Is(err, proxy.ErrExited):
		t.advise("crash", "detail", err.Error())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.advise("silent", "seconds", strconv.FormatFloat(patience.Seconds(), 'f', -1, 64))
	}
	if failed, ok := errors.AsType[*probe.Error](err); ok {
		return failed.Err
	}
	return err
}

// cleanUp advises about an agent that deletes conversations by itself, and names the setting against that.
func (t *trial) cleanUp() {
	u := t.e.known.Quirks.CleanUp
	if u == nil {
		return
	}
	if file := u.settings(t.c.environment.With(t.e.env)); !u.isOff(file) {
		t.advise("cleanup", "setting", u.Setting, "file", file, "age", u.Age)
	}
}

// distinctWays gives the ways to sign in of a report distinct names.
func distinctWays(list []AuthMethod) []AuthMethod {
	names := distinct(list, func(m AuthMethod) (string, string, string) { return m.ID, cmp.Or(m.Name, m.ID), m.Description })
	for i := range list {
		list[i].Name = names[i]
	}
	return list
}
