package agents

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

// offer is what an agent says of itself.
type offer struct {
	version string
	options []json.RawMessage // SessionConfigOption entries, as it sent them
}

// askError is an agent that did not answer as ACP wants it, with what it wrote to stderr.
type askError struct {
	step   string
	stderr string
	err    error
}

func (e *askError) Error() string { return e.step + ": " + e.err.Error() }

func (e *askError) Unwrap() error { return e.err }

// ask starts an agent in an empty directory, has it answer to initialize, and, if asked to, to session/new, and ends it with all that
// it started. The end of ctx does so too.
func (c *Catalogue) ask(ctx context.Context, id string, cmd proxy.Command, session bool) (o offer, err error) {
	err = c.attend(ctx, id, func(dir string) (proxy.Command, error) {
		cmd.Dir = dir
		if id == Demo { // which keeps what it is told, for the next time
			cmd.Env = append(cmd.Env, "DESKHAND_DEMO_STATE="+filepath.Join(dir, ".state"))
		}
		return cmd, nil
	}, func(q *question, dir string) error {
		o, err = q.put(ctx, dir, session)
		return err
	})
	return o, err
}

// attend starts an agent in an empty directory, by the command for that, and has f ask it something. When it returns, nothing is left of
// the agent but a browser, and an askError has all that it wrote to stderr.
func (c *Catalogue) attend(ctx context.Context, id string, command func(dir string) (proxy.Command, error), f func(q *question, dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "deskhand-ask-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd, err := command(dir)
	if err != nil {
		return err
	}
	inst, err := c.start(ctx, id, cmd)
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
			c.cfg.Logger.Error("an agent that was asked could not be ended", "agent", id, "error", closed)
		}
		err = errors.Join(err, closed)
	}()
	return f(q, dir)
}

// start starts a process of ours. What had begun when ctx ended is ended with it.
func (c *Catalogue) start(ctx context.Context, name string, cmd proxy.Command) (*proxy.Instance, error) {
	serverID := name + "." + rand.Text()
	inst, err := c.processes.Start(ctx, serverID, name, cmd)
	if err != nil {
		return nil, errors.Join(err, c.processes.Remove(serverID))
	}
	return inst, nil
}

// question is one agent that is being asked.
type question struct {
	inst     *proxy.Instance
	last     int
	page     atomic.Pointer[func(url string)] // what shows a person a page, if anything does
	noise    string                           // the first line on stdout that was no message; refuse has it when it has returned
	accounts accounts                         // what refuse has heard of
}

func ask(inst *proxy.Instance) *question {
	return &question{inst: inst, accounts: accounts{news: make(chan struct{}, 1)}}
}

// begin refuses what an agent asks us from now on. end, which has to be called, ends that and the agent.
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

// put asks what there is to ask.
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
			"_meta": map[string]any{"terminal-auth": true}, // how agents were told before the protocol had it
		},
	}
}

// deletes tells whether an agent takes session/delete.
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

// forget has the agent delete the session again: people look for their own in its list.
func (q *question) forget(ctx context.Context, result json.RawMessage) {
	var s struct {
		ID string `json:"sessionId"`
	}
	if json.Unmarshal(result, &s) == nil && s.ID != "" {
		_, _ = q.call(ctx, "session/delete", map[string]any{"sessionId": s.ID}) // it is no use to anybody, and no harm
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

// failed tells how far it got. A process that has ended has said why on stderr, which is complete by then.
func (q *question) failed(step string, err error) error {
	return &askError{step: step, stderr: q.inst.Status().StderrTail, err: err}
}

// refuse answers what the agent asks us with "no such method": we have none of what it may want here, and it may wait for an answer.
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
					_ = q.inst.Send(ctx, no) // one that has ended needs no answer
				}
			case e.Method() == "_adapter/invalid_stdout" && q.noise == "":
				q.noise = proxy.InvalidLine(m.Data)
			case e.Method() == accountUpdate:
				q.accounts.take(m.Data)
			}
		}
	}
}

// versionIn is what an agent calls its version.
func versionIn(result json.RawMessage) string {
	var r struct {
		Info struct {
			Version string `json:"version"`
		} `json:"agentInfo"`
	}
	_ = json.Unmarshal(result, &r) // a bad one has none
	return r.Info.Version
}

// optionsIn are the config options of a new session, as the agent sent them, and what is made of the older modes and models of an agent that has
// no option for these.
func optionsIn(result json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	options, there := acp.ParseConfigOptions(result)
	if there {
		var r struct {
			Options []json.RawMessage `json:"configOptions"`
		}
		_ = json.Unmarshal(result, &r) // it was read above
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

// olderOption is the config option that stands for what an agent offers in an older way; its id is its category.
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
		panic(err) // texts always encode
	}
	return raw
}
