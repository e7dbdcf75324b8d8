package demoagent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
)

// forkSession creates a session with the history of another session. The history of a running turn is not included.
func (a *agent) forkSession(params json.RawMessage) (any, func(), *agentio.Error) {
	request, err := decodeSession(params, false)
	if err != nil {
		return nil, nil, err
	}
	head, records, err := a.history(request.SessionID)
	if err != nil {
		return nil, nil, err
	}
	s := &session{id: uuid.NewString(), head: head, records: records}
	if request.McpServers != nil {
		s.servers = *request.McpServers
	}
	s.head.SessionID, s.head.Cwd, s.head.CreatedAt = s.id, request.Cwd, time.Now().UTC()
	a.mu.Lock()
	a.sessions[s.id] = s
	a.mu.Unlock()
	a.save(s)
	state := a.state(s)
	state.SessionID = s.id
	return state, func() { a.sendCommands(s.id) }, nil
}

// history is the history of a session, from memory or from its file.
func (a *agent) history(id string) (header, []record, *agentio.Error) {
	a.mu.Lock()
	if s := a.openLocked(id); s != nil {
		defer a.mu.Unlock()
		return s.head, slices.Clone(s.records), nil
	}
	a.mu.Unlock()
	head, records, err := a.store.load(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return head, nil, agentio.Errorf(acp.CodeResourceNotFound, "resource not found: session %q", id)
	case err != nil:
		return head, nil, agentio.Errorf(acp.CodeInternalError, "internal error: %v", err)
	}
	return head, records, nil
}

// deleteSession forgets a session and its history. Deleting an unknown session succeeds.
func (a *agent) deleteSession(id, params json.RawMessage) {
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
	remove := func() {
		if s != nil {
			a.forget(s)
		}
		a.answer(id, struct{}{}, a.store.remove(request.SessionID))
	}
	if running == nil {
		remove()
		return
	}
	running.end()
	a.turns.Go(func() {
		<-running.over
		remove()
	})
}

func (s *store) remove(id string) *agentio.Error {
	path, err := s.path(id)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agentio.Errorf(acp.CodeInternalError, "internal error: %v", err)
	}
	return nil
}
