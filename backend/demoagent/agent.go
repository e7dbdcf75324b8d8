package demoagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// version of the agent, as initialize reports the version. Changing the meaning of a word raises the version.
const version = "1.0.0"

// agent serves a client with any number of sessions.
type agent struct {
	cfg   Config
	words []word
	out   *agentio.Writer
	store *store
	turns sync.WaitGroup // all goroutines but the reader's and the writer's

	mu         sync.Mutex // protects the fields below, and the session fields named in session.go
	caps       capabilities
	clientCaps json.RawMessage // the same as the client sent them
	sessions   map[string]*session
	pending    map[string]chan<- reply // unanswered requests of the agent, by id
	lastID     int64
}

// reply is the client's answer to a request of the agent.
type reply struct {
	result json.RawMessage
	err    *agentio.Error
}

// Run serves an ACP client over in and out until in or ctx ends, which are both a normal end. Run then cancels the running turns and waits for
// them. At the end Run closes in, if in is an io.Closer, since nothing else ends a pending read after ctx.
func Run(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	a := &agent{
		cfg:      cfg,
		words:    cfg.words(),
		out:      agentio.NewWriter(out, ctx.Done()),
		store:    openStore(),
		sessions: map[string]*session{},
		pending:  map[string]chan<- reply{},
		lastID:   -1, // the first id is 0, which is legal and exposes clients that treat 0 as absent
	}
	return a.serve(ctx, in)
}

func (a *agent) serve(ctx context.Context, in io.Reader) error {
	work, stop := context.WithCancel(ctx)
	lines, ended := agentio.ReadLines(work, in)
	err := a.loop(work, lines, ended)
	stop()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close() // ends a pending read; an error loses nothing
	}
	a.turns.Wait()
	a.out.Close()
	select {
	case <-a.out.Lost():
		return a.out.Err()
	default:
		return err
	}
}

// loop answers line by line until the input or ctx ends, or until the client stops reading.
func (a *agent) loop(ctx context.Context, lines <-chan agentio.Line, ended <-chan error) error {
	for {
		select {
		case next, ok := <-lines:
			if !ok {
				if err := <-ended; err != nil && !errors.Is(err, io.EOF) {
					return fmt.Errorf("demo agent: read: %w", err)
				}
				return nil
			}
			a.receive(ctx, next)
		case <-ctx.Done():
			return nil
		case <-a.out.Lost():
			return nil
		}
	}
}

func (a *agent) receive(ctx context.Context, next agentio.Line) {
	if next.TooLong {
		a.answer(json.RawMessage("null"), nil, agentio.Errorf(acp.CodeInvalidRequest, "invalid request: a line over %d bytes", agentio.MaxLine))
		return
	}
	m, err := agentio.Parse(next.Text)
	switch {
	case err != nil:
		a.answer(m.ID, nil, err)
	case m.Method == nil:
		a.resolve(m)
	case m.ID == nil:
		a.notified(*m.Method, m.Params)
	default:
		a.requested(ctx, m.ID, *m.Method, m.Params)
	}
}

// notified handles a notification. As JSON-RPC requires, unknown and invalid notifications are ignored.
func (a *agent) notified(method string, params json.RawMessage) {
	switch method {
	case "session/cancel":
		if request, err := decode[sessionRequest](params); err == nil {
			a.cancelSession(request.SessionID)
		}
	case "$/cancel_request":
		request, err := decode[struct {
			RequestID json.RawMessage `json:"requestId"`
		}](params)
		if err == nil {
			a.cancelRequest(request.RequestID)
		}
	}
}

// requested answers a request. A prompt, and the close of a working session, are answered later by a goroutine of their own.
func (a *agent) requested(ctx context.Context, id json.RawMessage, method string, params json.RawMessage) {
	var result any
	var after func() // sends further messages once the answer is queued
	var err *agentio.Error
	if a.handled(id, method, params) {
		return
	}
	switch method {
	case "initialize":
		result, err = a.initialize(params)
	case "session/new", "session/load", "session/resume", "session/fork":
		result, after, err = a.openSession(method, params)
	case "session/list":
		result, err = a.listSessions(params)
	case "session/set_mode":
		result, err = a.setMode(params)
	case "session/set_config_option":
		result, err = a.setConfigOption(params)
	case steeringMethod:
		result, err = a.steer(params)
	case "session/close":
		a.closeSession(id, params)
		return
	case "session/delete":
		a.deleteSession(id, params)
		return
	case "session/prompt":
		a.prompt(ctx, id, params)
		return
	default:
		err = agentio.Errorf(acp.CodeMethodNotFound, "method not found: %s", method)
	}
	a.answer(id, result, err)
	if err == nil && after != nil {
		after()
	}
}

// openSession creates, loads, resumes or forks a session.
func (a *agent) openSession(method string, params json.RawMessage) (any, func(), *agentio.Error) {
	switch method {
	case "session/load":
		return a.loadSession(params)
	case "session/resume":
		return a.resumeSession(params)
	case "session/fork":
		return a.forkSession(params)
	}
	return a.newSession(params)
}

// handled has the configuration answer a request, and returns false when the agent has to.
func (a *agent) handled(id json.RawMessage, method string, params json.RawMessage) bool {
	if a.cfg.Handle == nil {
		return false
	}
	answer := a.cfg.Handle(method, params)
	if answer != nil && !answer.Never {
		a.answer(id, answer.Result, answer.Err)
	}
	return answer != nil
}

func (a *agent) initialize(params json.RawMessage) (any, *agentio.Error) {
	request, err := decode[initializeRequest](params)
	if err != nil {
		return nil, err
	}
	if request.ProtocolVersion == nil {
		return nil, agentio.Errorf(acp.CodeInvalidParams, "invalid params: protocolVersion is missing")
	}
	var caps capabilities
	_ = json.Unmarshal(request.ClientCapabilities, &caps) // every capability is optional: an invalid value counts as absent
	a.mu.Lock()
	a.caps, a.clientCaps = caps, request.ClientCapabilities
	a.mu.Unlock()
	var auth *authCapabilities
	methods := []any{}
	if a.cfg.AuthMethods != nil {
		auth, methods = &authCapabilities{}, a.cfg.AuthMethods(request.ClientCapabilities)
	}
	addresses := !a.cfg.ProgramsOnly
	return initializeResponse{
		ProtocolVersion: 1, // whatever version the client asked for: a client that cannot speak version 1 leaves
		AgentCapabilities: agentCapabilities{
			LoadSession:        true,
			PromptCapabilities: promptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
			McpCapabilities:    mcpCapabilities{HTTP: addresses, SSE: addresses},
			Auth:               auth,
		},
		AgentInfo:   implementation{Name: "deskhand-demo", Title: "Deskhand demo agent", Version: version},
		AuthMethods: methods,
		Meta:        initializeMeta{Steering: steeringSupport{Supported: true}},
	}, nil
}

// capabilities are the client's latest capabilities.
func (a *agent) capabilities() capabilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.caps
}

func decode[T any](params json.RawMessage) (T, *agentio.Error) {
	var value T
	if !given(params) {
		return value, agentio.Errorf(acp.CodeInvalidParams, "invalid params: an object is missing")
	}
	if err := json.Unmarshal(params, &value); err != nil {
		return value, agentio.Errorf(acp.CodeInvalidParams, "invalid params: %v", err)
	}
	return value, nil
}

func (a *agent) answer(id json.RawMessage, result any, err *agentio.Error) {
	a.answerAfter(id, result, err, nil)
}

// answerAfter sends an answer, and calls before when every earlier message is written and the answer is next.
func (a *agent) answerAfter(id json.RawMessage, result any, err *agentio.Error, before func()) {
	if err != nil {
		result = nil
	}
	a.out.Send(agentio.Entry{Line: agentio.Frame{ID: id, Result: result, Error: err}.Encode(), Before: before})
}

func (a *agent) notify(method string, params any) {
	a.out.Send(agentio.Entry{Line: agentio.Frame{Method: method, Params: params}.Encode()})
}

func (a *agent) update(sessionID string, update any) {
	a.notify("session/update", sessionNotification{SessionID: sessionID, Update: update})
}

// ask sends a request and waits for the answer. When ctx ends first, ask withdraws the request and returns false; a late answer is dropped.
func (a *agent) ask(ctx context.Context, method string, params any) (reply, bool) {
	answered := make(chan reply, 1)
	a.mu.Lock()
	a.lastID++
	id := strconv.FormatInt(a.lastID, 10)
	a.pending[id] = answered
	a.mu.Unlock()
	a.out.Send(agentio.Entry{Line: agentio.Frame{ID: json.RawMessage(id), Method: method, Params: params}.Encode()})
	select {
	case r := <-answered:
		return r, ctx.Err() == nil
	case <-ctx.Done():
	}
	if a.takePending(id) != nil {
		a.notify("$/cancel_request", map[string]json.RawMessage{"requestId": json.RawMessage(id)})
	}
	return reply{}, false
}

// resolve passes an answer to the goroutine that asked. resolve drops second answers and answers to unknown requests.
func (a *agent) resolve(m agentio.Message) {
	answered := a.takePending(string(m.ID))
	if answered == nil {
		return
	}
	var r reply
	if m.Error != nil {
		r.err = &agentio.Error{Code: acp.CodeInternalError, Message: "an error that cannot be read"}
		_ = json.Unmarshal(m.Error, r.err) // a partly readable error is better than none
	} else {
		r.result = m.Result
	}
	answered <- r
}

func (a *agent) takePending(id string) chan<- reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	answered := a.pending[id]
	delete(a.pending, id)
	return answered
}
