package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
)

// agentRow is an agent, with the state of its instances.
type agentRow struct {
	agents.Info
	ServerStatus *agentStatus `json:"serverStatus,omitempty" doc:"State of the agent's instances; absent when the agent has none"`
}

// agentStatus summarises an agent's instances of /v1/acp.
type agentStatus struct {
	Status   string `json:"status" enum:"running,stopped"`
	UptimeMs *int64 `json:"uptimeMs,omitempty" doc:"Milliseconds since the start of the agent's oldest instance"`
}

// agentRows is the answer of GET /v1/agents.
type agentRows struct {
	Agents []agentRow `json:"agents"`
}

// agentEndpoints returns the endpoints under /v1/agents.
func (a *API) agentEndpoints(s *spec) []endpoint {
	ask := []*huma.Param{
		flagInQuery("config", "Add version, path and configOptions, from the agent itself when possible. This may start the agent, and take seconds"),
		flagInQuery("no_cache", "Ask the agent again instead of using the cached answer"),
	}
	installed := record[agents.Installed](s, "Installed. With Accept: text/event-stream, events: progress (step, bytes, total, log), then result or error")
	installed.Content["text/event-stream"] = bytesOf("Server-sent events", "text/event-stream")["text/event-stream"]
	return []endpoint{
		{
			pattern: "GET /v1/agents", serve: a.listAgents, id: "listAgents", summary: "List the agents", params: ask,
			answers: map[int]*huma.Response{200: record[agentRows](s, "The agents")}, refuses: []string{"invalid_request"},
		},
		{
			pattern: "GET /v1/agents/{agent}", serve: a.getAgent, id: "getAgent", summary: "Get one agent", params: ask,
			answers: map[int]*huma.Response{200: record[agentRow](s, "The agent")}, refuses: []string{"invalid_request", "unsupported_agent"},
		},
		{
			pattern: "POST /v1/agents/{agent}/install", serve: a.installAgent, id: "installAgent", summary: "Install an agent",
			text:    "The call ends when the agent is installed and has answered initialize. Ending the call cancels the installation, unless other calls wait for it.",
			body:    recordBody[agents.InstallRequest](s, "Version, and whether to replace an installed agent"),
			answers: map[int]*huma.Response{200: installed},
			refuses: []string{"invalid_request", "unsupported_agent", "not_acceptable", "unsupported_media_type", "payload_too_large", "install_failed"},
		},
	}
}

func infoQuery(r *http.Request) (agents.InfoQuery, error) {
	q, err := queryOf(r)
	if err != nil {
		return agents.InfoQuery{}, err
	}
	config, err := q.flag("config")
	if err != nil {
		return agents.InfoQuery{}, err
	}
	fresh, err := q.flag("no_cache")
	return agents.InfoQuery{Config: config, Fresh: fresh}, err
}

func (a *API) listAgents(w http.ResponseWriter, r *http.Request) {
	q, err := infoQuery(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	found, err := a.cfg.Agents.Infos(r.Context(), q)
	if err != nil {
		a.refuse(w, err)
		return
	}
	list := agentRows{make([]agentRow, 0, len(found))}
	running := a.cfg.Runtime.List()
	for _, info := range found {
		list.Agents = append(list.Agents, agentRow{info, statusOfAgent(running, info.ID)})
	}
	a.answer(w, list)
}

func (a *API) getAgent(w http.ResponseWriter, r *http.Request) {
	q, err := infoQuery(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	id := r.PathValue("agent")
	if !a.cfg.Agents.Known(id) {
		WriteProblem(w, unsupported(id))
		return
	}
	info, err := a.cfg.Agents.Info(r.Context(), id, q)
	if err != nil {
		a.refuse(w, err)
		return
	}
	a.answer(w, agentRow{info, statusOfAgent(a.cfg.Runtime.List(), info.ID)})
}

// statusOfAgent summarises the instances of an agent, or returns nil.
func statusOfAgent(list []proxy.Status, id string) *agentStatus {
	var found *agentStatus
	for _, s := range list {
		if s.Agent != id {
			continue
		}
		if found == nil {
			found = &agentStatus{Status: "stopped"}
		}
		if s.Phase != proxy.Running {
			continue
		}
		found.Status = "running"
		if up := time.Since(s.CreatedAt).Milliseconds(); found.UptimeMs == nil || up > *found.UptimeMs {
			found.UptimeMs = &up
		}
	}
	return found
}

func (a *API) installAgent(w http.ResponseWriter, r *http.Request) {
	var q agents.InstallRequest
	if err := readRecord(w, r, &q); err != nil {
		a.refuse(w, err)
		return
	}
	asJSON, asEvents := quality(r, "application/json"), quality(r, "text/event-stream")
	id := r.PathValue("agent")
	switch {
	case asJSON == 0 && asEvents == 0:
		a.refuse(w, &refusal{"not_acceptable", "the answer is application/json or text/event-stream"})
	case !a.cfg.Agents.Known(id): // checked before the first event, while a status code is still possible
		WriteProblem(w, unsupported(id))
	case asEvents > asJSON:
		a.streamInstall(w, r, id, q)
	default:
		done, err := a.cfg.Agents.Installer().Install(r.Context(), id, q, func(agents.Progress) {})
		if err != nil {
			a.refuse(w, err)
			return
		}
		a.answer(w, done)
	}
}

// patience is how long a caller may take for an event of an installation before the installation is cancelled.
const patience = 60 * time.Second

// streamInstall installs an agent and streams the progress. The installer waits until the caller has taken each event; when the caller
// leaves, or takes none for too long, the installation is cancelled.
func (a *API) streamInstall(w http.ResponseWriter, r *http.Request, id string, q agents.InstallRequest) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may serve another request
	send := func(data []byte) {
		_ = out.SetWriteDeadline(time.Now().Add(patience)) // the window's responses have no deadline, and are not streamed
		_, err := w.Write(data)
		if err == nil {
			err = out.Flush()
		}
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			cancel()
		}
	}
	send(nil)
	quiet := time.NewTicker(heartbeatEvery)
	defer quiet.Stop()
	for events := a.install(ctx, id, q); ; {
		select {
		case data, more := <-events:
			if !more { // closed, so nothing of the installer is left when the handler returns
				return
			}
			send(data)
		case <-quiet.C:
			send([]byte(": heartbeat\n\n"))
		}
	}
}

// install starts an installation. Its events end with result or error; then the channel is closed.
func (a *API) install(ctx context.Context, id string, q agents.InstallRequest) <-chan []byte {
	events := make(chan []byte)
	send := func(data []byte) {
		select {
		case events <- data:
		case <-ctx.Done():
		}
	}
	go func() {
		defer close(events)
		done, err := a.cfg.Agents.Installer().Install(ctx, id, q, func(p agents.Progress) { send(event("progress", p)) })
		if err != nil {
			send(event("error", a.problemOf(err).document()))
			return
		}
		send(event("result", done))
	}()
	return events
}

// event encodes a server-sent event.
func event(name string, record any) []byte {
	data, err := json.Marshal(record)
	if err != nil {
		data = []byte("null")
	}
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}
