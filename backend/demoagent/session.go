package demoagent

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// pageSize of session/list.
const pageSize = 50

// session is an open session. agent.mu protects all fields but id.
type session struct {
	id      string
	servers []mcpServer
	head    header
	records []record
	turn    *turn // the running turn, or nil
	closing bool  // session/close waits for the turn
}

func (a *agent) newSession(params json.RawMessage) (any, func(), *agentio.Error) {
	request, err := decodeSession(params, true)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now().UTC()
	s := &session{id: uuid.NewString(), servers: *request.McpServers}
	s.head = header{SessionID: s.id, Cwd: request.Cwd, CreatedAt: now, UpdatedAt: now, Settings: defaultSettings()}
	a.mu.Lock()
	a.sessions[s.id] = s
	a.mu.Unlock()
	a.save(s)
	state := a.state(s)
	state.SessionID = s.id
	return state, func() { a.sendCommands(s.id) }, nil
}

// loadSession replays the whole history before its answer.
func (a *agent) loadSession(params json.RawMessage) (any, func(), *agentio.Error) {
	s, err := a.reopen(params, true)
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	head, records := s.head, s.records
	a.mu.Unlock()
	for _, r := range records {
		a.update(s.id, r.Update)
	}
	if head.Title != "" {
		a.update(s.id, titleUpdate(head))
	}
	if head.Used > 0 {
		a.update(s.id, contextUpdate(head))
	}
	return a.state(s), func() { a.sendCommands(s.id) }, nil
}

func (a *agent) resumeSession(params json.RawMessage) (any, func(), *agentio.Error) {
	s, err := a.reopen(params, false)
	if err != nil {
		return nil, nil, err
	}
	return a.state(s), func() { a.sendCommands(s.id) }, nil
}

// reopen finds a session in memory or in its file, and sets its directory and servers from the request.
func (a *agent) reopen(params json.RawMessage, serversRequired bool) (*session, *agentio.Error) {
	request, invalid := decodeSession(params, serversRequired)
	if invalid != nil {
		return nil, invalid
	}
	a.mu.Lock()
	s := a.sessions[request.SessionID]
	a.mu.Unlock()
	if s == nil {
		head, records, err := a.store.load(request.SessionID)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, agentio.Errorf(acp.CodeResourceNotFound, "resource not found: session %q", request.SessionID)
		}
		if err != nil {
			return nil, agentio.Errorf(acp.CodeInternalError, "internal error: %v", err)
		}
		s = &session{id: request.SessionID, head: head, records: records}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.turn != nil || s.closing {
		return nil, agentio.Errorf(acp.CodeInvalidRequest, "invalid request: a prompt is running in this session")
	}
	s.head.Cwd, s.servers = request.Cwd, nil
	if request.McpServers != nil {
		s.servers = *request.McpServers
	}
	a.sessions[s.id] = s
	return s, nil
}

// decodeSession decodes and checks the parameters shared by session/new, load and resume.
func decodeSession(params json.RawMessage, serversRequired bool) (sessionRequest, *agentio.Error) {
	request, err := decode[sessionRequest](params)
	if err != nil {
		return request, err
	}
	if !filepath.IsAbs(request.Cwd) {
		return request, agentio.Errorf(acp.CodeInvalidParams, "invalid params: cwd must be an absolute path")
	}
	if request.McpServers == nil {
		if serversRequired {
			return request, agentio.Errorf(acp.CodeInvalidParams, "invalid params: mcpServers is missing")
		}
		return request, nil
	}
	for _, server := range *request.McpServers {
		if err := server.check(); err != nil {
			return request, err
		}
	}
	return request, nil
}

// check is as strict as the strictest real agents: a stdio server must have no type.
func (s mcpServer) check() *agentio.Error {
	switch {
	case s.Name == "":
		return agentio.Errorf(acp.CodeInvalidParams, "invalid params: an MCP server has no name")
	case s.Type == "" && s.Command == "":
		return agentio.Errorf(acp.CodeInvalidParams, "invalid params: MCP server %q has no command", s.Name)
	case s.Type == "http" && s.URL == "", s.Type == "sse" && s.URL == "":
		return agentio.Errorf(acp.CodeInvalidParams, "invalid params: MCP server %q has no url", s.Name)
	case s.Type != "" && s.Type != "http" && s.Type != "sse":
		return agentio.Errorf(acp.CodeInvalidParams, "invalid params: MCP server %q has the unknown type %q", s.Name, s.Type)
	}
	return nil
}

func (a *agent) listSessions(params json.RawMessage) (any, *agentio.Error) {
	var request struct {
		Cwd    string `json:"cwd"`
		Cursor string `json:"cursor"`
	}
	if given(params) {
		if err := json.Unmarshal(params, &request); err != nil {
			return nil, agentio.Errorf(acp.CodeInvalidParams, "invalid params: %v", err)
		}
	}
	heads, err := a.store.list()
	if err != nil {
		return nil, agentio.Errorf(acp.CodeInternalError, "internal error: %v", err)
	}
	after, err := base64.RawURLEncoding.DecodeString(request.Cursor)
	if err != nil {
		return nil, agentio.Errorf(acp.CodeInvalidParams, "invalid params: a cursor that is not ours")
	}
	response := listResponse{Sessions: []sessionInfo{}}
	for _, head := range heads {
		if request.Cwd != "" && head.Cwd != request.Cwd || position(head) <= string(after) && len(after) > 0 {
			continue
		}
		if len(response.Sessions) == pageSize {
			last := response.Sessions[pageSize-1]
			response.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(last.cursor))
			break
		}
		response.Sessions = append(response.Sessions, sessionInfo{
			SessionID: head.SessionID, Cwd: head.Cwd, Title: head.Title,
			UpdatedAt: stamp(head.UpdatedAt), cursor: position(head),
		})
	}
	return response, nil
}

// position orders sessions as store.list does, so that a page can continue after a session that has since vanished.
func position(head header) string {
	return fmt.Sprintf("%020d %s", int64(1)<<62-head.UpdatedAt.UnixNano(), head.SessionID)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// closeSession forgets the session, ends its turn, and answers when the turn is over. The session's file stays.
func (a *agent) closeSession(id json.RawMessage, params json.RawMessage) {
	request, err := decode[sessionRequest](params)
	if err != nil {
		a.answer(id, nil, err)
		return
	}
	a.mu.Lock()
	s := a.openLocked(request.SessionID)
	var running *turn
	if s != nil {
		s.closing = true
		running = s.turn
	}
	a.mu.Unlock()
	if s == nil {
		a.answer(id, nil, unknownSession(request.SessionID))
		return
	}
	if running == nil {
		a.forget(s)
		a.answer(id, struct{}{}, nil)
		return
	}
	running.end()
	a.turns.Go(func() {
		<-running.over
		a.forget(s)
		a.answer(id, struct{}{}, nil)
	})
}

// openLocked finds an open session. openLocked returns nil for an unknown or closing session.
func (a *agent) openLocked(id string) *session {
	if s := a.sessions[id]; s != nil && !s.closing {
		return s
	}
	return nil
}

func (a *agent) forget(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, s.id)
}

// cancelSession cancels the running turn of a session, if any.
func (a *agent) cancelSession(sessionID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[sessionID]; s != nil && s.turn != nil {
		s.turn.cancel()
	}
}

// cancelRequest cancels the prompt with the given request id. Other requests are answered too quickly to be cancelled.
func (a *agent) cancelRequest(id json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		if s.turn != nil && string(s.turn.request) == string(id) {
			s.turn.cancel()
		}
	}
}

func (a *agent) setMode(params json.RawMessage) (any, *agentio.Error) {
	request, err := decode[struct {
		SessionID string          `json:"sessionId"`
		ModeID    json.RawMessage `json:"modeId"`
	}](params)
	if err != nil {
		return nil, err
	}
	if _, err := a.change(request.SessionID, optionMode, request.ModeID); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

func (a *agent) setConfigOption(params json.RawMessage) (any, *agentio.Error) {
	request, err := decode[struct {
		SessionID string          `json:"sessionId"`
		ConfigID  string          `json:"configId"`
		Value     json.RawMessage `json:"value"`
	}](params)
	if err != nil {
		return nil, err
	}
	s, err := a.change(request.SessionID, request.ConfigID, request.Value)
	if err != nil {
		return nil, err
	}
	return struct {
		ConfigOptions []configOption `json:"configOptions"`
	}{a.state(s).ConfigOptions}, nil
}

// change sets an option. change reports a new mode in both of ACP's forms, since a client may know only one.
func (a *agent) change(sessionID, option string, value json.RawMessage) (*session, *agentio.Error) {
	a.mu.Lock()
	s := a.openLocked(sessionID)
	if s == nil {
		a.mu.Unlock()
		return nil, unknownSession(sessionID)
	}
	changed, err := s.head.Settings.with(option, value)
	if err != nil {
		a.mu.Unlock()
		return nil, err
	}
	s.head.Settings = changed
	a.mu.Unlock()
	a.save(s)
	if option == optionMode {
		a.sendMode(s)
	}
	return s, nil
}

func (a *agent) sendMode(s *session) {
	state := a.state(s)
	a.update(s.id, modeUpdate{SessionUpdate: "current_mode_update", CurrentModeID: state.Modes.CurrentModeID})
	a.update(s.id, configUpdate{SessionUpdate: "config_option_update", ConfigOptions: state.ConfigOptions})
}

func unknownSession(id string) *agentio.Error {
	return agentio.Errorf(acp.CodeResourceNotFound, "resource not found: session %q is not open", id)
}

// state is the common result of session/new, load and resume.
func (a *agent) state(s *session) sessionState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return sessionState{
		Modes:         modeState{CurrentModeID: s.head.Settings.Mode, AvailableModes: modes()},
		ConfigOptions: s.head.Settings.options(given(a.caps.Session.ConfigOptions.Boolean)),
	}
}

// headOf is a copy of the session's header.
func (a *agent) headOf(s *session) header {
	a.mu.Lock()
	defer a.mu.Unlock()
	return s.head
}

// save writes the session's history. A failure is only logged, since the demo works without a state directory.
func (a *agent) save(s *session) {
	err := a.store.save(s.id, func() (header, []record) {
		a.mu.Lock()
		defer a.mu.Unlock()
		return s.head, s.records
	})
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "demo-agent: %v\n", err)
	}
}

func (a *agent) sendCommands(sessionID string) {
	update := commandsUpdate{SessionUpdate: "available_commands_update"}
	for _, w := range a.words {
		if w.fault {
			continue
		}
		command := availableCommand{Name: w.command(), Description: w.does}
		if w.takes != "" {
			command.Input = &commandInput{Hint: w.takes}
		}
		update.AvailableCommands = append(update.AvailableCommands, command)
	}
	a.update(sessionID, update)
}

func titleUpdate(head header) infoUpdate {
	return infoUpdate{SessionUpdate: "session_info_update", Title: head.Title, UpdatedAt: stamp(head.UpdatedAt)}
}

// contextUpdate reports the used part of the context, and a cost of zero.
func contextUpdate(head header) usageUpdate {
	size := head.Settings.contextSize()
	return usageUpdate{
		SessionUpdate: "usage_update", Used: min(head.Used, size), Size: size,
		Cost: cost{Amount: 0, Currency: "USD"},
	}
}
