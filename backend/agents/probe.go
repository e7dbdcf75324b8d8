package agents

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

// prober starts the processes of this package, and talks to agents outside of a session.
type prober struct {
	processes *proxy.Set // npm, uv, and agents that are asked for their offers
	logger    *slog.Logger
}

// offer is an agent's description of itself.
type offer struct {
	version string
	options []json.RawMessage // SessionConfigOption entries, unchanged
}

// askError is the failure of an agent to answer as ACP demands, with the agent's stderr.
type askError struct {
	step   string
	stderr string
	err    error
}

func (e *askError) Error() string { return e.step + ": " + e.err.Error() }

func (e *askError) Unwrap() error { return e.err }

// ask starts an agent in an empty directory, calls initialize and, with session, session/new, and ends the agent with everything that the
// agent started. The end of ctx does so too.
func (p *prober) ask(ctx context.Context, id string, cmd proxy.Command, session bool) (o offer, err error) {
	err = p.attend(ctx, id, func(dir string) (proxy.Command, error) {
		cmd.Dir = dir
		if id == Demo { // the demo agent would keep a message for its next start
			cmd.Env = append(cmd.Env, "DESKHAND_DEMO_STATE="+filepath.Join(dir, ".state"))
		}
		return cmd, nil
	}, func(q *question, dir string) error {
		o, err = q.put(ctx, dir, session)
		return err
	})
	return o, err
}

// attend starts an agent in an empty directory, with the command for that directory, and has f talk to the agent. When attend returns,
// every process of the agent is gone except a browser, and an askError has the complete stderr.
func (p *prober) attend(ctx context.Context, id string, command func(dir string) (proxy.Command, error), f func(q *question, dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "deskhand-ask-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd, err := command(dir)
	if err != nil {
		return err
	}
	inst, err := p.start(ctx, id, cmd)
	if err != nil {
		return err
	}
	q, end := begin(ctx, inst)
	defer func() {
		closed := end()
		if failed, ok := errors.AsType[*askError](err); ok {
			failed.stderr = inst.Status().StderrTail
		}
		if closed != nil {
			p.logger.Error("an agent that was asked could not be ended", "agent", id, "error", closed)
		}
		err = errors.Join(err, closed)
	}()
	return f(q, dir)
}

// start starts a process in the set. A process that began before ctx ended is ended too.
func (p *prober) start(ctx context.Context, name string, cmd proxy.Command) (*proxy.Instance, error) {
	serverID := name + "." + rand.Text()
	inst, err := p.processes.Start(ctx, serverID, name, cmd)
	if err != nil {
		return nil, errors.Join(err, p.processes.Remove(serverID))
	}
	return inst, nil
}

// question is a conversation with a probed agent process.
type question struct {
	inst     *proxy.Instance
	last     int
	page     atomic.Pointer[func(url string)] // shows a page to a person; may be nil
	noise    string                           // the first line on stdout that was no message; set when refuse returns
	accounts accounts                         // account notifications that refuse received
}

func ask(inst *proxy.Instance) *question {
	return &question{inst: inst, accounts: accounts{news: make(chan struct{}, 1)}}
}

// begin refuses the agent's requests from now on. The caller must call end, which stops that and ends the agent.
func begin(ctx context.Context, inst *proxy.Instance) (q *question, end func() error) {
	q = ask(inst)
	ctx, cancel := context.WithCancel(ctx)
	refusing := make(chan struct{})
	go func() {
		defer close(refusing)
		q.refuse(ctx)
	}()
	return q, func() error {
		cancel()
		<-refusing
		return inst.Close()
	}
}

// put calls initialize and, with session, session/new.
func (q *question) put(ctx context.Context, dir string, session bool) (offer, error) {
	result, err := q.call(ctx, "initialize", initializeParams())
	if err != nil {
		return offer{}, err
	}
	can, err := acp.ParseInitialized(result)
	if err == nil && can.ProtocolVersion != 1 {
		err = fmt.Errorf("it speaks version %d of the protocol, and we 1", can.ProtocolVersion)
	}
	if err != nil {
		return offer{}, q.failed("initialize", err)
	}
	o := offer{version: versionIn(result)}
	if !session {
		return o, nil
	}
	began, err := q.call(ctx, methodNew, map[string]any{"cwd": dir, "mcpServers": []any{}})
	if err != nil {
		return o, err
	}
	o.options = optionsIn(began)
	q.leave(ctx, result, began)
	return o, nil
}

func initializeParams() map[string]any {
	return map[string]any{
		"protocolVersion": 1,
		"clientInfo":      map[string]any{"name": "deskhand", "title": "Deskhand", "version": "1"},
		"clientCapabilities": map[string]any{
			"fs":    map[string]any{"readTextFile": false, "writeTextFile": false},
			"auth":  map[string]any{"terminal": true},
			"_meta": map[string]any{"terminal-auth": true}, // announced terminals to agents before the protocol did
		},
	}
}

// deletes reports whether an agent supports session/delete.
func deletes(initialized json.RawMessage) bool {
	var r struct {
		Capabilities struct {
			Session struct {
				Delete *struct{} `json:"delete"`
			} `json:"sessionCapabilities"`
		} `json:"agentCapabilities"`
	}
	return json.Unmarshal(initialized, &r) == nil && r.Capabilities.Session.Delete != nil
}

// forget has the agent delete the probe's session, so that people do not find the session in the agent's list.
func (q *question) forget(ctx context.Context, result json.RawMessage) {
	var s struct {
		ID string `json:"sessionId"`
	}
	if json.Unmarshal(result, &s) == nil && s.ID != "" {
		_, _ = q.call(ctx, "session/delete", map[string]any{"sessionId": s.ID}) // best effort: a leftover session does no harm
	}
}

// call sends a request and waits for its result.
func (q *question) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	q.last++
	msg, err := acp.NewRequest(json.RawMessage(strconv.Itoa(q.last)), method, params)
	if err != nil {
		return nil, err
	}
	e, err := acp.Peek(msg)
	if err != nil {
		return nil, err
	}
	call, err := q.inst.Call(e)
	if err != nil {
		return nil, q.failed(method, err)
	}
	select {
	case <-call.Done():
	case <-ctx.Done():
		err = ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("it has not answered in time")
		}
		return nil, q.failed(method, err)
	}
	answer, err := call.Outcome()
	if err != nil {
		return nil, q.failed(method, err)
	}
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *acp.Error      `json:"error"`
	}
	if err := json.Unmarshal(answer, &m); err != nil && m.Error == nil && m.Result == nil {
		return nil, q.failed(method, err)
	}
	if m.Error != nil {
		return nil, q.failed(method, m.Error)
	}
	return m.Result, nil
}

// failed returns an askError. A process that has ended gave its reason on stderr, which is complete by then.
func (q *question) failed(step string, err error) error {
	return &askError{step: step, stderr: q.inst.Status().StderrTail, err: err}
}

// refuse answers the agent's requests with "no such method": a probe offers nothing, and the agent may wait for an answer.
func (q *question) refuse(ctx context.Context) {
	r := q.inst.After(0)
	defer r.Close()
	for {
		batch, err := r.Next(ctx)
		if err != nil {
			return
		}
		for _, m := range batch {
			e, err := acp.Peek(m.Data)
			switch {
			case err != nil:
			case e.Kind == acp.Request && q.elicited(ctx, e, m.Data):
			case e.Kind == acp.Request:
				if no, err := acp.NewErrorResponse(e.ID, &acp.Error{Code: acp.CodeMethodNotFound, Message: "Method not found"}); err == nil {
					_ = q.inst.Send(ctx, no) // an agent that has ended needs no answer
				}
			case e.Method() == "_adapter/invalid_stdout" && q.noise == "":
				q.noise = proxy.InvalidLine(m.Data)
			case e.Method() == accountUpdate:
				q.accounts.take(m.Data)
			}
		}
	}
}

// versionIn returns the agent's version from its answer to initialize.
func versionIn(result json.RawMessage) string {
	var r struct {
		Info struct {
			Version string `json:"version"`
		} `json:"agentInfo"`
	}
	_ = json.Unmarshal(result, &r) // a bad answer has no version
	return r.Info.Version
}

// optionsIn returns the config options of a new session, unchanged, and options made of the older modes and models where the agent has no
// option for these.
func optionsIn(result json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	options, there := acp.ParseConfigOptions(result)
	if there {
		var r struct {
			Options []json.RawMessage `json:"configOptions"`
		}
		_ = json.Unmarshal(result, &r) // parsed above already
		list = r.Options
	} else if modes, there := acp.ParseModes(result); there {
		list = append(list, olderOption("mode", "Mode", modes.Current, modes.List))
	}
	if models, there := acp.ParseModels(result); there && !slices.ContainsFunc(options, choosesModel) {
		list = append(list, olderOption("model", "Model", models.Current, models.List))
	}
	return list
}

func choosesModel(o acp.ConfigOption) bool { return o.Category == "model" || o.ID == "model" }

// olderOption returns the config option for modes or models that an agent offers in the older way; its id is its category.
func olderOption(id, name, current string, list []acp.ConfigChoice) json.RawMessage {
	type choice struct {
		Value       string `json:"value"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}
	option := struct {
		ID       string   `json:"id"`
		Name     string   `json:"name"`
		Category string   `json:"category"`
		Type     string   `json:"type"`
		Current  string   `json:"currentValue"`
		Options  []choice `json:"options"`
	}{ID: id, Name: name, Category: id, Type: "select", Current: current}
	for _, c := range list {
		option.Options = append(option.Options, choice{c.Value, c.Name, c.Description})
	}
	raw, err := json.Marshal(option)
	if err != nil {
		panic(err) // strings always encode
	}
	return raw
}

// elicited answers an elicitation by URL. The page is only for a person to see, so elicited accepts before anybody has seen the page.
func (q *question) elicited(ctx context.Context, e acp.Envelope, msg []byte) bool {
	opened := q.page.Load()
	if opened == nil || e.Method() != "elicitation/create" {
		return false
	}
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(msg, &m) // the caller has peeked at msg
	url, ok := shown(m.Params)
	if !ok {
		return false
	}
	(*opened)(url)
	if yes, err := acp.NewResponse(e.ID, map[string]any{"action": "accept"}); err == nil {
		_ = q.inst.Send(ctx, yes) // an agent that has ended needs no answer
	}
	return true
}

// shown returns the page of an elicitation by URL, the only elicitation that an agent may send during a login.
func shown(params json.RawMessage) (url string, ok bool) {
	var p struct {
		Mode string `json:"mode"`
		URL  string `json:"url"`
	}
	_ = json.Unmarshal(params, &p)
	return p.URL, p.Mode == "url" && isPage(p.URL)
}

const methodNew = "session/new"

// leave has the agent forget the probe's session, where the agent supports that.
func (q *question) leave(ctx context.Context, initialized, session json.RawMessage) {
	if deletes(initialized) {
		q.forget(ctx, session)
	}
}
