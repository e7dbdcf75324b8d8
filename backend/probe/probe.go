// Package probe hides how an agent is asked something outside of a session: a process in an empty directory, a few calls of ACP, and an end
// that leaves nothing of the process.
package probe

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

// Prober starts the processes that are probed.
type Prober struct {
	Processes *proxy.Set
	Logger    *slog.Logger
}

// Offer is an agent's description of itself.
type Offer struct {
	Version string
	Options []json.RawMessage // SessionConfigOption entries, unchanged
}

// Error is the failure of an agent to answer as ACP demands, with the agent's stderr.
type Error struct {
	Step   string
	Stderr string
	Err    error
}

func (e *Error) Error() string { return e.Step + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Ask starts an agent in an empty directory, calls initialize and, with session, session/new, and ends the agent with everything that the
// agent started. The end of ctx does so too.
func (s *Prober) Ask(ctx context.Context, id string, command func(dir string) (proxy.Command, error), session bool) (o Offer, err error) {
	err = s.Attend(ctx, id, command, func(p *Probe, dir string) error {
		o, err = p.put(ctx, dir, session)
		return err
	})
	return o, err
}

// Attend starts an agent in an empty directory, with the command for that directory, and has f talk to the agent. When Attend returns,
// every process of the agent is gone except a browser, and an Error has the complete stderr.
func (s *Prober) Attend(ctx context.Context, id string, command func(dir string) (proxy.Command, error), f func(p *Probe, dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "deskhand-ask-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cmd, err := command(dir)
	if err != nil {
		return err
	}
	inst, err := s.Start(ctx, id, cmd)
	if err != nil {
		return err
	}
	p, end := begin(ctx, inst)
	defer func() {
		closed := end()
		if failed, ok := errors.AsType[*Error](err); ok {
			failed.Stderr = inst.Status().StderrTail
		}
		if closed != nil {
			s.Logger.Error("an agent that was asked could not be ended", "agent", id, "error", closed)
		}
		err = errors.Join(err, closed)
	}()
	return f(p, dir)
}

// Start starts a process in the set. A process that began before ctx ended is ended too.
func (s *Prober) Start(ctx context.Context, name string, cmd proxy.Command) (*proxy.Instance, error) {
	serverID := name + "." + rand.Text()
	inst, err := s.Processes.Start(ctx, serverID, name, cmd)
	if err != nil {
		return nil, errors.Join(err, s.Processes.Remove(serverID))
	}
	return inst, nil
}

// Probe is an agent process that is asked. Its calls are made by a single goroutine.
type Probe struct {
	inst     *proxy.Instance
	last     int
	page     atomic.Pointer[func(url string)] // shows a page to a person; may be nil
	noise    string                           // the first line on stdout that was no message; set when Refuse returns
	accounts accounts                         // account notifications that Refuse received
}

// New returns the Probe of a process. The caller must have Refuse run.
func New(inst *proxy.Instance) *Probe {
	return &Probe{inst: inst, accounts: accounts{news: make(chan struct{}, 1)}}
}

// begin refuses the agent's requests from now on. The caller must call end, which stops that and ends the agent.
func begin(ctx context.Context, inst *proxy.Instance) (p *Probe, end func() error) {
	p = New(inst)
	ctx, cancel := context.WithCancel(ctx)
	refusing := make(chan struct{})
	go func() {
		defer close(refusing)
		p.Refuse(ctx)
	}()
	return p, func() error {
		cancel()
		<-refusing
		return inst.Close()
	}
}

// ShowPages has opened called from now on with a page that the agent wants a person to see.
func (p *Probe) ShowPages(opened func(url string)) { p.page.Store(&opened) }

// Noise returns the first line on the agent's stdout that was no message, or "". The caller waits for the end of Refuse first.
func (p *Probe) Noise() string { return p.noise }

// put calls initialize and, with session, session/new.
func (p *Probe) put(ctx context.Context, dir string, session bool) (Offer, error) {
	result, err := p.Call(ctx, "initialize", InitializeParams())
	if err != nil {
		return Offer{}, err
	}
	can, err := acp.ParseInitialized(result)
	if err == nil && can.ProtocolVersion != 1 {
		err = fmt.Errorf("it speaks version %d of the protocol, and we 1", can.ProtocolVersion)
	}
	if err != nil {
		return Offer{}, p.Fail("initialize", err)
	}
	o := Offer{Version: versionIn(result)}
	if !session {
		return o, nil
	}
	began, err := p.Call(ctx, MethodNew, map[string]any{"cwd": dir, "mcpServers": []any{}})
	if err != nil {
		return o, err
	}
	o.Options = optionsIn(began)
	p.Leave(ctx, result, began)
	return o, nil
}

// InitializeParams returns the parameters of initialize for a client that offers nothing but terminals for logins.
func InitializeParams() map[string]any {
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
func (p *Probe) forget(ctx context.Context, result json.RawMessage) {
	if id, err := acp.ParseNewSession(result); err == nil {
		_, _ = p.Call(ctx, "session/delete", map[string]any{"sessionId": id}) // best effort: a leftover session does no harm
	}
}

// Call sends a request and waits for its result.
func (p *Probe) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p.last++
	msg, err := acp.NewRequest(json.RawMessage(strconv.Itoa(p.last)), method, params)
	if err != nil {
		return nil, err
	}
	e, err := acp.Peek(msg)
	if err != nil {
		return nil, err
	}
	call, err := p.inst.Call(e)
	if err != nil {
		return nil, p.Fail(method, err)
	}
	select {
	case <-call.Done():
	case <-ctx.Done():
		err = ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("it has not answered in time")
		}
		return nil, p.Fail(method, err)
	}
	answer, err := call.Outcome()
	if err != nil {
		return nil, p.Fail(method, err)
	}
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *acp.Error      `json:"error"`
	}
	if err := json.Unmarshal(answer, &m); err != nil && m.Error == nil && m.Result == nil {
		return nil, p.Fail(method, err)
	}
	if m.Error != nil {
		return nil, p.Fail(method, m.Error)
	}
	return m.Result, nil
}

// Fail returns an Error. A process that has ended gave its reason on stderr, which is complete by then.
func (p *Probe) Fail(step string, err error) error {
	return &Error{Step: step, Stderr: p.inst.Status().StderrTail, Err: err}
}

// Refuse answers the agent's requests with "no such method": a probe offers nothing, and the agent may wait for an answer.
func (p *Probe) Refuse(ctx context.Context) {
	r := p.inst.After(0)
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
			case e.Kind == acp.Request && p.elicited(ctx, e, m.Data):
			case e.Kind == acp.Request:
				if no, err := acp.NewErrorResponse(e.ID, &acp.Error{Code: acp.CodeMethodNotFound, Message: "Method not found"}); err == nil {
					_ = p.inst.Send(ctx, no) // an agent that has ended needs no answer
				}
			case e.Method() == "_adapter/invalid_stdout" && p.noise == "":
				p.noise = proxy.InvalidLine(m.Data)
			case e.Kind == acp.Notification:
				p.accounts.take(e.Method(), m.Data)
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
func (p *Probe) elicited(ctx context.Context, e acp.Envelope, msg []byte) bool {
	opened := p.page.Load()
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
		_ = p.inst.Send(ctx, yes) // an agent that has ended needs no answer
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
	return p.URL, p.Mode == "url" && IsPage(p.URL)
}

// MethodNew is the method that makes a session.
const MethodNew = "session/new"

// Leave has the agent forget the probe's session, where the agent supports that.
func (p *Probe) Leave(ctx context.Context, initialized, session json.RawMessage) {
	if deletes(initialized) {
		p.forget(ctx, session)
	}
}

// IsPage reports whether a text is the URL of a page that can be shown: http or https, no control characters, not too long.
func IsPage(text string) bool {
	const longest = 8 << 10
	u, err := url.Parse(text)
	return err == nil && len(text) <= longest && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}
