package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"deskhand/backend/agents"
	"deskhand/backend/config"
	"deskhand/backend/files"
	"deskhand/backend/proxy"
)

// Problem is an error of a request, by RFC 9457. Most problems need only Type and Detail.
type Problem struct {
	Type   string // the suffix: "invalid_request"
	Status int    // 0: the type's usual status
	Detail string // for people; follows "invalid request: "

	// Extensions.
	Code      string            // stable name for surfaces with their own texts
	Params    map[string]string // parameters of those texts
	Agent     string
	SessionID string
	Details   any
}

// statusOf returns the status of a problem type.
func statusOf(suffix string) int {
	switch suffix {
	case "invalid_request", "unsupported_agent":
		return http.StatusBadRequest
	case "token_invalid":
		return http.StatusUnauthorized
	case "permission_denied":
		return http.StatusForbidden
	case "session_not_found", "not_found", "agent_not_installed":
		return http.StatusNotFound
	case "method_not_allowed":
		return http.StatusMethodNotAllowed
	case "not_acceptable":
		return http.StatusNotAcceptable
	case "conflict":
		return http.StatusConflict
	case "precondition_failed":
		return http.StatusPreconditionFailed
	case "payload_too_large":
		return http.StatusRequestEntityTooLarge
	case "unsupported_media_type":
		return http.StatusUnsupportedMediaType
	case "range_not_satisfiable":
		return http.StatusRequestedRangeNotSatisfiable
	case "misdirected_request":
		return http.StatusMisdirectedRequest
	case "too_many_requests":
		return http.StatusTooManyRequests
	case "stream_error", "agent_process_exited":
		return http.StatusBadGateway
	case "timeout":
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

// runtimeProblem is the only table from the runtime's errors to problems. Other errors go to the log only. Agents come first: a failed
// installation wraps the exit of npm's process.
func runtimeProblem(err error) Problem {
	for _, part := range []func(error) (Problem, bool){agentProblem, requestProblem, instanceProblem, fileProblem, entryProblem} {
		if p, ok := part(err); ok {
			return p
		}
	}
	return Problem{Type: "stream_error", Detail: internalDetail}
}

// requestProblem covers errors of the request itself, and timeouts.
func requestProblem(err error) (Problem, bool) {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return Problem{Type: refused.kind, Detail: refused.text}, true
	case errors.Is(err, context.DeadlineExceeded):
		return Problem{Type: "timeout", Detail: "the agent has not answered in time"}, true
	case errors.Is(err, context.Canceled): // the caller is gone, or the server is closing
		return Problem{Type: "stream_error", Detail: "the request was cut short"}, true
	default:
		return Problem{}, false
	}
}

func instanceProblem(err error) (Problem, bool) {
	var exit *proxy.ExitError
	switch {
	case errors.As(err, &exit):
		return Problem{
			Type: "agent_process_exited", Detail: err.Error(), Agent: exit.Status.Agent, SessionID: exit.Status.ServerID,
			Details: exitDetails{exit.Status.ExitCode, exit.Status.Signal, exit.Status.StderrTail},
		}, true
	case errors.Is(err, proxy.ErrUnknown):
		return Problem{Type: "invalid_request", Detail: "the server_id is unknown, and there is no agent to start it with"}, true
	case errors.Is(err, proxy.ErrConflict), errors.Is(err, proxy.ErrDuplicateID):
		return Problem{Type: "conflict", Detail: err.Error()}, true
	case errors.Is(err, proxy.ErrInput):
		return Problem{Type: "stream_error", Detail: err.Error(), Details: inputDetails{"input_closed"}}, true
	case errors.Is(err, proxy.ErrSpawn), errors.Is(err, proxy.ErrBacklog), errors.Is(err, proxy.ErrRemoved),
		errors.Is(err, proxy.ErrClosed):
		return Problem{Type: "stream_error", Detail: err.Error()}, true
	default:
		return Problem{}, false
	}
}

func agentProblem(err error) (Problem, bool) {
	var install *agents.InstallError
	switch {
	case errors.As(err, &install):
		return Problem{Type: "install_failed", Detail: err.Error(), Details: installDetails{install.Stderr}}, true
	case errors.Is(err, agents.ErrVersion):
		return Problem{Type: "invalid_request", Detail: err.Error()}, true
	case errors.Is(err, agents.ErrUnknown):
		return Problem{Type: "unsupported_agent", Detail: after(agents.ErrUnknown, err)}, true
	case errors.Is(err, agents.ErrCommand):
		return Problem{Type: "stream_error", Detail: after(agents.ErrNotInstalled, err)}, true
	case errors.Is(err, agents.ErrNotInstalled):
		return Problem{Type: "agent_not_installed", Detail: after(agents.ErrNotInstalled, err)}, true
	case errors.Is(err, agents.ErrNotInstallable):
		return Problem{Type: "invalid_request", Detail: err.Error()}, true
	case errors.Is(err, agents.ErrFile), errors.Is(err, agents.ErrClosed):
		return Problem{Type: "stream_error", Detail: err.Error()}, true
	default:
		return Problem{}, false
	}
}

func fileProblem(err error) (Problem, bool) {
	for _, row := range []struct {
		err  error
		kind string
	}{
		{files.ErrInvalid, "invalid_request"},
		{files.ErrOutside, "permission_denied"},
		{files.ErrPermission, "permission_denied"},
		{files.ErrNotFound, "not_found"},
		{files.ErrExists, "conflict"},
		{files.ErrNotEmpty, "conflict"},
		{files.ErrChanged, "conflict"},
		{files.ErrTooLarge, "payload_too_large"},
		{files.ErrBroken, "invalid_request"},
		{files.ErrFull, "stream_error"},
		{files.ErrFailed, "stream_error"},
	} {
		if errors.Is(err, row.err) {
			return Problem{Type: row.kind, Detail: err.Error()}, true
		}
	}
	return Problem{}, false
}

func entryProblem(err error) (Problem, bool) {
	switch {
	case errors.Is(err, config.ErrInvalid):
		return Problem{Type: "invalid_request", Detail: err.Error()}, true
	case errors.Is(err, config.ErrNotFound):
		return Problem{Type: "not_found", Detail: err.Error()}, true
	case errors.Is(err, config.ErrBroken), errors.Is(err, config.ErrBusy):
		return Problem{Type: "conflict", Detail: err.Error()}, true
	case errors.Is(err, config.ErrTooLarge):
		return Problem{Type: "payload_too_large", Detail: err.Error()}, true
	case errors.Is(err, config.ErrPermission):
		return Problem{Type: "permission_denied", Detail: err.Error()}, true
	default:
		return Problem{}, false
	}
}

// after returns the text of an error after its leading sentinel.
func after(sentinel, err error) string { return strings.TrimPrefix(err.Error(), sentinel.Error()+": ") }

// internalDetail is the only text that a caller gets for an unexpected error.
const internalDetail = "internal error"

// exitDetails says how an agent's process ended.
type exitDetails struct {
	ExitCode   *int   `json:"exitCode,omitempty"`
	Signal     string `json:"signal,omitempty"`
	StderrTail string `json:"stderrTail,omitempty"`
}

// inputDetails says why an agent takes no more messages: after other causes of stream_error the agent may take the next message.
type inputDetails struct {
	Reason string `json:"reason"`
}

// installDetails holds the end of the installer's stderr.
type installDetails struct {
	StderrTail string `json:"stderrTail"`
}

// unsupported returns the problem of an unknown agent.
func unsupported(id string) Problem { return Problem{Type: "unsupported_agent", Detail: id, Agent: id} }

// refusal is an error with its problem type.
type refusal struct{ kind, text string }

func (r *refusal) Error() string { return r.text }

// document is a Problem on the wire.
type document struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Code      string            `json:"code,omitempty"`
	Params    map[string]string `json:"params,omitempty"`
	Agent     string            `json:"agent,omitempty"`
	SessionID string            `json:"sessionId,omitempty"`
	Details   any               `json:"details,omitempty"`
}

func (p Problem) document() document {
	words := strings.ReplaceAll(p.Type, "_", " ")
	d := document{
		Type: "urn:sandbox-agent:error:" + p.Type, Title: strings.ToUpper(words[:1]) + words[1:], Status: p.Status,
		Detail: words, Code: p.Code, Params: p.Params, Agent: p.Agent, SessionID: p.SessionID, Details: p.Details,
	}
	if d.Status == 0 {
		d.Status = statusOf(p.Type)
	}
	if p.Detail != "" {
		d.Detail += ": " + p.Detail
	}
	return d
}

// WriteProblem answers a request with a problem.
func WriteProblem(w http.ResponseWriter, p Problem) {
	d := p.document()
	body, err := json.Marshal(d)
	if err != nil { // Details that cannot be encoded
		d.Details = nil
		body, _ = json.Marshal(d)
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(d.Status)
	_, _ = w.Write(body) // fails only when the caller is gone
}
