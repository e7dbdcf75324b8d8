//go:build e2e

package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// rawAgent is an agent driven by plain ACP through /v1/acp, as a script does. Every permission that the agent asks for is allowed once.
type rawAgent struct {
	s      *server
	path   string
	token  string
	lastID int
	ended  chan struct{} // closed when the stream has ended
	can    json.RawMessage

	mu      sync.Mutex // protects the fields below
	asked   []json.RawMessage
	updates []json.RawMessage
	failure error // of the stream
}

// startRaw starts an agent, and follows its messages until close.
func startRaw(s *server, p place, agent string) *rawAgent {
	s.t.Helper()
	token, err := os.ReadFile(filepath.Join(p.lookup("XDG_DATA_HOME"), "deskhand", "token"))
	if err != nil {
		s.t.Fatal(err)
	}
	a := &rawAgent{s: s, path: "/v1/acp/raw-" + agent, token: strings.TrimSpace(string(token)), ended: make(chan struct{})}
	a.can = a.mustCall("initialize", map[string]any{
		"protocolVersion": 1, "clientInfo": map[string]string{"name": "script", "version": "1"},
		"clientCapabilities": map[string]any{"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}},
	}, "?agent="+agent+"&cwd="+p.work)
	go a.follow()
	return a
}

// call sends a request and returns its answer.
func (a *rawAgent) call(method string, params any, query string) (json.RawMessage, *rpcError) {
	a.s.t.Helper()
	a.lastID++
	status, body := a.s.send(a.token, "POST", a.path+query, map[string]any{"jsonrpc": "2.0", "id": a.lastID, "method": method, "params": params})
	if status != http.StatusOK {
		a.s.t.Fatalf("%s: got %d %s, want 200", method, status, body)
	}
	var answer struct {
		Result json.RawMessage
		Error  *rpcError
	}
	decode(a.s.t, body, &answer)
	return answer.Result, answer.Error
}

type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func (a *rawAgent) mustCall(method string, params any, query string) json.RawMessage {
	a.s.t.Helper()
	result, failure := a.call(method, params, query)
	if failure != nil {
		a.s.t.Fatalf("%s: got failure %+v, want a result", method, failure)
	}
	return result
}

// follow reads the stream to its end, which comes with the instance's.
func (a *rawAgent) follow() {
	defer close(a.ended)
	err := a.read()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = err
}

func (a *rawAgent) read() error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, a.s.base+a.path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the stream answers %s", response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var message rpc
		if err := json.Unmarshal(data, &message); err != nil {
			return err
		}
		if err := a.take(message); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (a *rawAgent) take(message rpc) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case message.Method == "session/update":
		a.updates = append(a.updates, message.Params)
		return nil
	case message.Method == "" || message.ID == nil:
		return nil
	}
	a.asked = append(a.asked, message.Params)
	answer := map[string]any{"jsonrpc": "2.0", "id": message.ID}
	if option, ok := allowing(message); ok {
		answer["result"] = map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": option}}
	} else {
		answer["error"] = map[string]any{"code": -32601, "message": "Method not found"}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, a.s.base+a.path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// allowing is the option of a permission that allows once.
func allowing(message rpc) (string, bool) {
	var params struct {
		Options []struct{ OptionID, Kind string }
	}
	if message.Method != "session/request_permission" || json.Unmarshal(message.Params, &params) != nil {
		return "", false
	}
	for _, option := range params.Options {
		if option.Kind == "allow_once" {
			return option.OptionID, true
		}
	}
	return "", false
}

// newSession begins a session and returns its id. In Claude's mode auto a model judges each call, which the scripted model cannot: such a
// session is set to the mode that asks.
func (a *rawAgent) newSession(p place, servers ...any) string {
	a.s.t.Helper()
	var session struct {
		SessionID string
		Modes     struct{ CurrentModeID string }
	}
	decode(a.s.t, a.mustCall("session/new", map[string]any{"cwd": p.work, "mcpServers": append([]any{}, servers...)}, ""), &session)
	if session.Modes.CurrentModeID == "auto" {
		a.mustCall("session/set_mode", map[string]any{"sessionId": session.SessionID, "modeId": "default"}, "")
	}
	return session.SessionID
}

// prompt sends content blocks and waits for the turn's end.
func (a *rawAgent) prompt(session string, blocks ...any) {
	a.s.t.Helper()
	var end struct{ StopReason string }
	decode(a.s.t, a.mustCall("session/prompt", map[string]any{"sessionId": session, "prompt": blocks}, ""), &end)
	if end.StopReason != "end_turn" {
		a.s.t.Errorf("stop reason %q", end.StopReason)
	}
}

// close deletes the instance, and waits for the end of its stream.
func (a *rawAgent) close() {
	a.s.t.Helper()
	if status, body := a.s.send(a.token, "DELETE", a.path, nil); status != http.StatusNoContent {
		a.s.t.Errorf("DELETE: %d %s", status, body)
	}
	<-a.ended
	if a.failure != nil {
		a.s.t.Errorf("the stream: %v", a.failure)
	}
}
