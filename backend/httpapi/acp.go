package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

const (
	maxEnvelope = 64 << 20
	// Clients give up on headers that do not come: Node's after 300 s. So they are sent before, and the body is kept alive.
	quietLimit = 240 * time.Second
	padEvery   = 15 * time.Second
)

var serverIDForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)

// serverID is the transport identity in the path. An error is answered.
func serverID(w http.ResponseWriter, r *http.Request) (string, bool) {
	id := r.PathValue("server_id")
	if !serverIDForm.MatchString(id) {
		WriteProblem(w, Problem{Type: "invalid_request", Detail: "server_id must be 1 to 128 of A-Z a-z 0-9 . _ ~ -"})
		return "", false
	}
	return id, true
}

// serverStatus is one row of GET /v1/acp.
type serverStatus struct {
	ServerID    string      `json:"serverId"`
	Agent       string      `json:"agent"`
	CreatedAtMs int64       `json:"createdAtMs"`
	Status      proxy.Phase `json:"status"`
	PID         int         `json:"pid,omitempty"`
	ExitCode    *int        `json:"exitCode,omitempty"`
	Signal      string      `json:"signal,omitempty"`
}

func (a *API) listInstances(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Servers []serverStatus `json:"servers"`
	}{[]serverStatus{}}
	for _, s := range a.cfg.Runtime.List() {
		if s.Phase == proxy.Exited {
			s.PID = 0 // it may be another's by now
		}
		list.Servers = append(list.Servers, serverStatus{
			s.ServerID, s.Agent, s.CreatedAt.UnixMilli(), s.Phase, s.PID, s.ExitCode, s.Signal,
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // the caller is gone if this fails
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

// postMessage brings one message to an agent, and the answer of a request back.
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
	agent := r.URL.Query().Get("agent")
	if agent != "" && !a.cfg.Agents.Known(agent) {
		WriteProblem(w, Problem{Type: "unsupported_agent", Detail: agent, Agent: agent})
		return
	}
	p := prefers(r)
	limit := a.cfg.RequestTimeout
	if p.waits {
		limit = p.wait
	}
	ctx := r.Context()
	if limit > 0 || p.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	inst, err := a.cfg.Runtime.Ensure(ctx, id, agent, a.prepare(agent, r.URL.Query().Get("cwd")))
	switch {
	case err != nil:
		a.refuse(w, err)
	case e.Kind != acp.Request:
		a.deliver(ctx, w, inst, e)
	default:
		a.call(ctx, w, inst, e, p)
	}
}

// readEnvelope checks what POST says of itself, in the order of the contract, and reads the message.
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
	tooLarge := &refusal{"payload_too_large", "the body is longer than the limit"}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	limited := http.MaxBytesReader(w, r.Body, limit)
	var body []byte
	var err error
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(limited, body)
	} else {
		body, err = io.ReadAll(limited)
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, &refusal{"invalid_request", "the body ended early"}
	default:
		return body, nil
	}
}

// prepare says how the agent is started, when it has to be.
func (a *API) prepare(agent, cwd string) func(context.Context) (proxy.Command, error) {
	return func(ctx context.Context) (proxy.Command, error) {
		dir, err := a.roots.directory(cwd)
		if err != nil {
			return proxy.Command{}, err
		}
		return a.cfg.Agents.Command(ctx, agent, dir)
	}
}

// refuse answers with the problem of an error.
func (a *API) refuse(w http.ResponseWriter, err error) {
	p := runtimeProblem(err)
	if p.Detail == internalDetail {
		a.log.Error("request failed", "error", err)
	}
	WriteProblem(w, p)
}

// deliver passes on what has no answer.
func (a *API) deliver(ctx context.Context, w http.ResponseWriter, inst *proxy.Instance, e acp.Envelope) {
	if err := inst.Deliver(ctx, e); err != nil {
		a.refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// call passes on a request and its answer. The caller's going changes nothing for the agent.
func (a *API) call(ctx context.Context, w http.ResponseWriter, inst *proxy.Instance, e acp.Envelope, p preference) {
	call, err := inst.Call(e)
	if err != nil {
		a.refuse(w, err)
		return
	}
	if p.async {
		w.Header().Set("Preference-Applied", "respond-async")
		w.WriteHeader(http.StatusAccepted)
		return
	}
	_, limited := ctx.Deadline()
	quiet := time.NewTimer(quietLimit)
	defer quiet.Stop()
	if limited {
		quiet.Stop()
	}
	select {
	case <-call.Done():
		a.answerCall(w, call)
	case <-ctx.Done():
		a.refuse(w, ctx.Err())
	case <-quiet.C:
		padAnswer(ctx, w, call, e)
	}
}

// answerCall answers with the agent's own bytes.
func (a *API) answerCall(w http.ResponseWriter, call *proxy.Call) {
	answer, err := call.Outcome()
	if err != nil {
		a.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // the caller is gone if this fails
}

// padAnswer sends the headers and then a space from time to time until the answer is there. A failure can no longer be a status
// then, so it is the JSON-RPC error that the agent did not send.
func padAnswer(ctx context.Context, w http.ResponseWriter, call *proxy.Call, e acp.Envelope) {
	w.Header().Set("Content-Type", "application/json")
	out := http.NewResponseController(w)
	pad := time.NewTicker(padEvery)
	defer pad.Stop()
	for {
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-call.Done():
			answer, err := call.Outcome()
			_, _ = w.Write(lateOutcome(answer, err, e)) // the caller is gone if this fails
			return
		case <-pad.C:
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
		case <-ctx.Done(): // the caller has gone, or we are going
			_, _ = w.Write(lateOutcome(nil, ctx.Err(), e))
			return
		}
	}
}

// lateOutcome is the answer, or the failure in its shape.
func lateOutcome(answer []byte, err error, e acp.Envelope) []byte {
	if err == nil {
		return answer
	}
	problem := runtimeProblem(err).document()
	data, err := json.Marshal(problem)
	if err != nil {
		data = nil
	}
	answer, _ = acp.NewErrorResponse(e.ID, &acp.Error{Code: acp.CodeInternalError, Message: problem.Detail, Data: data})
	return answer
}
