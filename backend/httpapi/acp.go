package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

const (
	maxEnvelope = 64 << 20
	// Clients give up when headers do not come: Node's after 300 s. So the headers are sent earlier, and the body is kept alive.
	quietLimit = 240 * time.Second
	padEvery   = 15 * time.Second
)

var serverIDForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

// serverID returns the server_id of the path, or answers with a problem.
func serverID(w http.ResponseWriter, r *http.Request) (string, bool) {
	id := r.PathValue("server_id")
	if !serverIDForm.MatchString(id) {
		WriteProblem(w, Problem{Type: "invalid_request", Detail: "server_id must be 1 to 128 of A-Z a-z 0-9 . _ ~ -"})
		return "", false
	}
	return id, true
}

// serverStatus is a row of GET /v1/acp.
type serverStatus struct {
	ServerID    string      `json:"serverId"`
	Agent       string      `json:"agent"`
	CreatedAtMs int64       `json:"createdAtMs"`
	Status      proxy.Phase `json:"status"`
	PID         int         `json:"pid,omitempty"`
	ExitCode    *int        `json:"exitCode,omitempty"`
	Signal      string      `json:"signal,omitempty"`
}

// serverList is the answer of GET /v1/acp.
type serverList struct {
	Servers []serverStatus `json:"servers" doc:"Instances, sorted by serverId"`
}

// acpEndpoints returns the endpoints under /v1/acp.
func (a *API) acpEndpoints(s *spec) []endpoint {
	return []endpoint{
		{
			pattern: "GET /v1/acp", serve: a.listInstances, id: "listInstances", summary: "List the instances",
			text:    "Exited instances are listed, too, until they are deleted, started again or ten minutes old.",
			answers: map[int]*huma.Response{200: record[serverList](s, "The instances")},
		},
		{
			pattern: "POST /v1/acp/{server_id}", serve: a.postMessage, id: "postMessage", summary: "Send one message to an agent",
			text: "The first message to a server_id names the agent, which is installed when missing, and started. The answer to a request " +
				"is the agent's own message, byte for byte; JSON-RPC errors are 200 too. After 240 s of waiting the headers are sent and " +
				"the body is padded with white space until the answer is there.",
			params: []*huma.Param{
				inQuery("agent", "Agent to start for a new server_id", false),
				inQuery("cwd", "Working directory of the agent's process, inside a root; the user's home when absent", false),
				inHeader("Prefer", "wait=SECONDS bounds the wait; respond-async leaves the answer to the stream (RFC 7240)"),
			},
			body: &huma.RequestBody{Required: true, Description: "One JSON-RPC message", Content: map[string]*huma.MediaType{"application/json": {Schema: anyObject()}}},
			answers: map[int]*huma.Response{
				200: {Description: "The answer of the agent", Content: map[string]*huma.MediaType{"application/json": {Schema: anyObject()}}},
				202: noContent("Passed on; the message has no answer, or the answer comes only on the stream"),
			},
			refuses: []string{
				"unsupported_media_type", "not_acceptable", "payload_too_large", "invalid_request", "unsupported_agent", "not_found", "agent_not_installed",
				"conflict", "install_failed", "stream_error", "agent_process_exited", "timeout",
			},
		},
		{
			pattern: "GET /v1/acp/{server_id}", serve: a.streamMessages, id: "streamMessages", summary: "Read the messages of an agent",
			text: "Server-sent events: event message, id the number of the message from 1, data the message as the agent wrote it. Messages in the log are sent " +
				"first. event gap with data {\"oldest\":N} comes first when messages after Last-Event-ID are no longer in the log.",
			params:  []*huma.Param{inHeader("Last-Event-ID", "Number of the last message that the caller has")},
			answers: map[int]*huma.Response{200: {Description: "The stream, which ends with the instance's deletion", Content: bytesOf("Server-sent events", "text/event-stream")}},
			refuses: []string{"not_acceptable", "invalid_request", "session_not_found"},
		},
		{
			pattern: "DELETE /v1/acp/{server_id}", serve: a.deleteInstance, id: "deleteInstance", summary: "End an instance",
			text:    "No process of the instance runs when the call returns.",
			answers: map[int]*huma.Response{204: noContent("The instance does not exist now, whether it existed before or not")}, refuses: []string{"invalid_request"},
		},
	}
}

func anyObject() *huma.Schema { return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true} }

func (a *API) listInstances(w http.ResponseWriter, _ *http.Request) {
	list := serverList{[]serverStatus{}}
	for _, s := range a.cfg.Runtime.List() {
		if s.Phase == proxy.Exited {
			s.PID = 0 // the pid may belong to another process by now
		}
		list.Servers = append(list.Servers, serverStatus{
			s.ServerID, s.Agent, s.CreatedAt.UnixMilli(), s.Phase, s.PID, s.ExitCode, s.Signal,
		})
	}
	a.answer(w, list)
}

func (a *API) deleteInstance(w http.ResponseWriter, r *http.Request) {
	id, ok := serverID(w, r)
	if !ok {
		return
	}
	if err := a.cfg.Runtime.Remove(id); err != nil {
		a.log.Error("an instance was removed but not ended", "server_id", id, "error", err)
	}
	w.WriteHeader(http.StatusNoContent)
}

// postMessage sends a message to an agent, and returns the answer of a request.
func (a *API) postMessage(w http.ResponseWriter, r *http.Request) {
	id, ok := serverID(w, r)
	if !ok {
		return
	}
	e, err := readEnvelope(w, r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	q, err := queryOf(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	agent := q.get("agent", "")
	if agent != "" && !a.cfg.Agents.Known(agent) {
		WriteProblem(w, unsupported(agent))
		return
	}
	p := prefers(r)
	ctx := r.Context()
	var pad *padding
	if limit, limited := a.waitLimit(p); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	} else if e.Kind == acp.Request && !p.async {
		pad = startPadding(w)
		defer pad.end()
	}
	inst, err := a.cfg.Runtime.EnsureFor(ctx, id, agent, a.prepare(agent, q.get("cwd", "")), a.late(e))
	switch {
	case err != nil:
		a.refuseCall(w, pad, e, err)
	case e.Kind != acp.Request:
		a.deliver(ctx, w, inst, e)
	default:
		a.call(ctx, w, inst, e, p.async, pad)
	}
}

// waitLimit returns how long a message may take; limited is false without a limit.
func (a *API) waitLimit(p preference) (limit time.Duration, limited bool) {
	if p.waits {
		return p.wait, true
	}
	return a.cfg.RequestTimeout, a.cfg.RequestTimeout > 0
}

// readEnvelope checks the headers of a POST, in the order of the contract, and reads the message.
func readEnvelope(w http.ResponseWriter, r *http.Request) (acp.Envelope, error) {
	if mediaType(r) != "application/json" {
		return acp.Envelope{}, &refusal{"unsupported_media_type", "the message must be application/json"}
	}
	if quality(r, "application/json") == 0 {
		return acp.Envelope{}, &refusal{"not_acceptable", "the answer is application/json"}
	}
	body, err := readBody(w, r, maxEnvelope)
	if err != nil {
		return acp.Envelope{}, err
	}
	e, err := acp.Peek(body)
	switch {
	case err != nil:
		return e, &refusal{"invalid_request", err.Error()}
	case e.Kind == acp.Other:
		return e, &refusal{"invalid_request", "the message is no object with a method, or with an id and a result or an error"}
	case e.ID != nil && e.Key() == "":
		return e, &refusal{"invalid_request", "the id is neither a string nor a number nor null"}
	default:
		return e, nil
	}
}

// readBody reads a body of up to limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	in, err := bodyOf(w, r, limit)
	if err != nil {
		return nil, err
	}
	if r.ContentLength < 0 {
		return io.ReadAll(in)
	}
	body := make([]byte, r.ContentLength)
	_, err = io.ReadFull(in, body)
	return body, err
}

// bodyOf returns the body of a request. Every read error of the body is a refusal.
func bodyOf(w http.ResponseWriter, r *http.Request, limit int64) (io.Reader, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	return &refusing{http.MaxBytesReader(w, r.Body, limit), func(err error) error {
		if _, over := errors.AsType[*http.MaxBytesError](err); over {
			return tooLarge(limit)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) { // set by pace
			return &refusal{"invalid_request", "the body came too slowly"}
		}
		return &refusal{"invalid_request", "the body ended early"}
	}}, nil
}

func tooLarge(limit int64) error {
	return &refusal{"payload_too_large", "the body is longer than " + strconv.FormatInt(limit, 10) + " bytes"}
}

// refusing is a reader that turns errors into refusals.
type refusing struct {
	in io.Reader
	as func(error) error
}

func (f *refusing) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // Read returns io.EOF itself
		err = f.as(err)
	}
	return n, err
}

// prepare returns the function that starts the agent when necessary.
func (a *API) prepare(agent, cwd string) func(context.Context) (proxy.Command, error) {
	return func(ctx context.Context) (proxy.Command, error) {
		dir, err := a.files.Directory(cwd)
		if err != nil {
			return proxy.Command{}, err
		}
		return a.cfg.Agents.Ensure(ctx, agent, dir)
	}
}

// late delivers a message whose caller left, or timed out, before the agent had started: the agent is to get the message all the same. An
// answer appears on the stream.
func (a *API) late(e acp.Envelope) func(context.Context, *proxy.Instance) {
	return func(ctx context.Context, inst *proxy.Instance) {
		var err error
		if e.Kind == acp.Request {
			_, err = inst.Call(e)
		} else {
			err = inst.Deliver(ctx, e)
		}
		if err != nil {
			a.log.Warn("a message was lost whose caller did not wait for the agent", "server_id", inst.ServerID(), "error", err)
		}
	}
}

// refuse answers with the problem for an error.
func (a *API) refuse(w http.ResponseWriter, err error) { WriteProblem(w, a.problemOf(err)) }

// problemOf is runtimeProblem, and logs the errors that the caller is not told.
func (a *API) problemOf(err error) Problem {
	p := runtimeProblem(err)
	if p.Detail == internalDetail {
		a.log.Error("request failed", "error", err)
	}
	return p
}

// deliver passes on a notification or a response.
func (a *API) deliver(ctx context.Context, w http.ResponseWriter, inst *proxy.Instance, e acp.Envelope) {
	if err := inst.Deliver(ctx, e); err != nil {
		a.refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// call passes on a request and returns the answer. The agent is unaffected when the caller leaves.
func (a *API) call(ctx context.Context, w http.ResponseWriter, inst *proxy.Instance, e acp.Envelope, async bool, pad *padding) {
	call, err := inst.Call(e)
	if err != nil {
		a.refuseCall(w, pad, e, err)
		return
	}
	if async {
		a.confirm(w, call)
		return
	}
	select {
	case <-call.Done():
	case <-ctx.Done(): // timeout, the caller left, or the server is closing
		a.refuseCall(w, pad, e, ctx.Err())
		return
	}
	inst.Delivered(ctx) // the stream goes first: this answer tells the caller that all earlier messages are on the stream
	answer, err := call.Outcome()
	if err != nil {
		a.refuseCall(w, pad, e, err)
		return
	}
	if !pad.end() {
		w.Header().Set("Content-Type", "application/json")
	}
	_, _ = w.Write(answer) // unchanged bytes of the agent; fails only when the caller is gone
}

// unwritten is how long an asynchronous call may wait until the agent has read the request. A broken pipe is noticed within that time.
const unwritten = 3 * time.Second

// confirm answers that the agent has the request, or never will. A busy agent reads the request later.
func (a *API) confirm(w http.ResponseWriter, call *proxy.Call) {
	limit := time.NewTimer(unwritten)
	defer limit.Stop()
	select {
	case <-call.Written():
	case <-limit.C:
	case <-call.Done():
		if _, err := call.Outcome(); err != nil {
			a.refuse(w, err)
			return
		}
	}
	w.Header().Set("Preference-Applied", "respond-async")
	w.WriteHeader(http.StatusAccepted)
}

// refuseCall answers a request with an error: a problem, or, once padding has begun, the JSON-RPC error in place of the agent's answer.
func (a *API) refuseCall(w http.ResponseWriter, pad *padding, e acp.Envelope, err error) {
	if !pad.end() {
		a.refuse(w, err)
		return
	}
	problem := a.problemOf(err).document()
	data, err := json.Marshal(problem)
	if err != nil { // details that cannot be encoded
		data = nil
	}
	failure, _ := acp.NewErrorResponse(e.ID, &acp.Error{Code: acp.CodeInternalError, Message: problem.Detail, Data: data})
	_, _ = w.Write(failure) // fails only when the caller is gone
}

// padding keeps the caller of a long request waiting, during the agent's work or its installation: after a while padding sends the headers,
// and then a space from time to time. end must be called before the answer. A nil padding never sends.
type padding struct {
	w http.ResponseWriter

	mu          sync.Mutex // protects the fields below, and w until end
	timer       *time.Timer
	begun, over bool
}

func startPadding(w http.ResponseWriter) *padding {
	p := &padding{w: w}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(quietLimit, p.pad)
	return p
}

func (p *padding) pad() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	var err error
	if p.begun {
		_, err = p.w.Write([]byte(" "))
	} else {
		p.w.Header().Set("Content-Type", "application/json")
	}
	if err == nil {
		err = http.NewResponseController(p.w).Flush()
	}
	if err == nil { // otherwise the caller is gone, or is the window, whose answers are not streamed
		p.begun = true
		p.timer.Reset(padEvery)
	}
}

// end stops the padding, and reports whether the headers are sent already.
func (p *padding) end() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
	return p.begun
}
