// Package editor hides that the conversation between an editor and its agent is a session of Deskhand. Towards the editor the package speaks
// ACP over a pair of pipes, as an agent would; on the other side it uses the client API, like every other surface.
//
// The editor sees the session's journal: the agent's own updates, unchanged and in order, and the updates of other surfaces in between. Every
// session has a goroutine of its own, so that a waiting session delays no other; within a session everything is in order. The session outlives
// the editor.
package editor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"deskhand/backend/acp"
)

// Config configures a conversation with an editor.
type Config struct {
	// HTTP reaches the client API of the Deskhand that has the sessions, whatever host a URL names. When that Deskhand has ended, HTTP finds
	// another.
	HTTP    *http.Client
	Agent   string       // the agent's id
	Version string       // version of this program
	Login   []string     // arguments that make this program sign in to the agent at a terminal
	Self    string       // path of this program, for editors that want the command
	Args    []string     // arguments that this program was started with
	Tell    func(string) // writes a line to the editor's log
}

// maxLine limits the length of a message.
const maxLine = 64 << 20

// Serve serves an editor until in or ctx ends. The sessions and their turns go on.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &editor{cfg: cfg, client: client{cfg.HTTP}, wire: newWire(ctx, out), ctx: ctx, shown: map[string]*shown{}, asked: map[acp.Key]context.CancelFunc{}}
	lines := make(chan []byte)
	var failure error
	go func() { // a read cannot be interrupted: the goroutine ends with in, possibly after Serve
		defer close(lines)
		failure = readLines(in, func(line []byte) bool {
			select {
			case lines <- line:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	err := e.listen(lines, &failure) //nolint:contextcheck // the editor's requests live until the editor's end
	cancel()
	e.work.Wait()
	e.wire.close()
	return err
}

// editor is a connected editor with its open sessions.
type editor struct {
	cfg    Config
	client client
	wire   *wire
	ctx    context.Context //nolint:containedctx // ends with the editor's input
	work   sync.WaitGroup  // goroutines of sessions and of slow requests

	mu    sync.Mutex // protects the fields below
	takes takes
	shown map[string]*shown
	asked map[acp.Key]context.CancelFunc // requests of the editor in progress
}

func (e *editor) listen(lines <-chan []byte, failure *error) error {
	for {
		select {
		case line, more := <-lines:
			if !more {
				return *failure
			}
			e.line(line)
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
	}
}

// readLines passes each non-blank line to each, until in ends or each returns false.
func readLines(in io.Reader, each func([]byte) bool) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line) > maxLine {
				return fmt.Errorf("a message is longer than %d bytes", maxLine)
			}
			continue
		case len(bytes.TrimSpace(line)) > 0 && !each(bytes.TrimSpace(line)):
			return nil
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		line = nil // each owns the previous line
	}
}

// line handles a message of the editor.
func (e *editor) line(data []byte) {
	env, err := acp.Peek(data)
	if err != nil { // some editors print a byte order mark
		if found := acp.Find(data).Messages; len(found) > 0 {
			for _, m := range found {
				e.line(m.Raw)
			}
			return
		}
	}
	switch {
	case err != nil:
		e.wire.fail(json.RawMessage("null"), &acp.Error{Code: acp.CodeParseError, Message: err.Error()})
		return
	case env.Kind == acp.Other:
		e.wire.fail(json.RawMessage("null"), &acp.Error{Code: acp.CodeInvalidRequest, Message: "neither a request nor a response; there are no batches in ACP"})
		return
	case env.Kind == acp.Response:
		e.wire.answered(env.Key(), data)
		return
	}
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // Peek has checked the message
	if env.Kind == acp.Notification {
		e.notified(env.Method(), m.Params)
		return
	}
	e.request(request{id: bytes.Clone(env.ID), key: env.Key(), method: env.Method(), params: m.Params})
}

func (e *editor) notified(method string, params json.RawMessage) {
	var p struct {
		SessionID string          `json:"sessionId"`
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p)
	switch method {
	case "session/cancel":
		if s := e.find(p.SessionID); s != nil {
			s.do(s.cancel)
		}
	case "$/cancel_request":
		env := acp.Envelope{ID: p.RequestID}
		e.takeBack(env.Key())
	}
}

// takeBack cancels a request that the editor has withdrawn.
func (e *editor) takeBack(key acp.Key) {
	e.mu.Lock()
	cancel := e.asked[key]
	list := make([]*shown, 0, len(e.shown))
	for _, s := range e.shown {
		list = append(list, s)
	}
	e.mu.Unlock()
	if cancel != nil {
		cancel()
		return
	}
	for _, s := range list {
		s.do(func() { s.cancelPrompt(key) })
	}
}

// request is a request of the editor. Every request gets a single answer.
type request struct {
	id     json.RawMessage
	key    acp.Key
	method string
	params json.RawMessage
}

func (e *editor) request(r request) {
	switch r.method {
	case "initialize":
		e.later(r, e.initialize)
	case "session/new":
		e.later(r, e.newSession)
	case "session/load", "session/resume":
		e.later(r, e.openSession)
	case "session/list":
		e.later(r, e.listSessions)
	case "session/delete":
		e.later(r, e.deleteSession)
	case "authenticate":
		e.wire.fail(r.id, &acp.Error{Code: acp.CodeInvalidParams, Message: "sign in with: deskhand login " + e.cfg.Agent})
	case "session/close", "session/prompt", "session/set_mode", "session/set_config_option":
		e.within(r)
	default:
		e.wire.fail(r.id, &acp.Error{Code: acp.CodeMethodNotFound, Message: "this agent does not know " + r.method})
	}
}

// later handles a request in a goroutine of its own. The request's context ends when the editor withdraws the request.
func (e *editor) later(r request, f func(ctx context.Context, r request) (any, *acp.Error)) {
	ctx, cancel := context.WithCancel(e.ctx)
	e.mu.Lock()
	e.asked[r.key] = cancel
	e.mu.Unlock()
	e.work.Go(func() {
		defer cancel()
		result, failure := f(ctx, r)
		e.mu.Lock()
		delete(e.asked, r.key)
		e.mu.Unlock()
		switch {
		case failure == nil && result == nil: // it was answered on the way
		case failure == nil:
			e.wire.answer(r.id, result)
		case ctx.Err() != nil:
			e.wire.fail(r.id, &acp.Error{Code: acp.CodeRequestCancelled, Message: "cancelled"})
		default:
			e.wire.fail(r.id, failure)
		}
	})
}

// within queues a request at the session that the request names.
func (e *editor) within(r request) {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(r.params, &p)
	s := e.find(p.SessionID)
	if s == nil {
		e.wire.fail(r.id, &acp.Error{Code: acp.CodeResourceNotFound, Message: "this session is not open here: load it first"})
		return
	}
	s.request(r, func() {
		switch r.method {
		case "session/prompt":
			s.prompt(r)
		case "session/set_mode":
			s.setMode(r)
		case "session/set_config_option":
			s.setOption(r)
		default:
			s.closeIt(r)
		}
	})
}

func (e *editor) find(id string) *shown {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shown[id]
}

func (e *editor) tell(format string, args ...any) {
	if e.cfg.Tell != nil {
		e.cfg.Tell(fmt.Sprintf(format, args...))
	}
}
