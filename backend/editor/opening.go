package editor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
)

func badParams(format string, args ...any) *acp.Error {
	return &acp.Error{Code: acp.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// initialize lists the abilities of this agent's sessions. The list of prompt contents exceeds the agent's own, since Deskhand converts every
// kind of file into a form that the agent takes.
func (e *editor) initialize(ctx context.Context, r request) (any, *acp.Error) {
	var p struct {
		Capabilities struct {
			Auth        struct{ Terminal bool }
			Elicitation struct{ Form, URL *struct{} }
			Session     struct {
				ConfigOptions struct{ Boolean *struct{} }
				Notices       *struct{}
				Compaction    *struct{}
			}
			Meta struct {
				Output bool `json:"terminal_output"`
				Login  bool `json:"terminal-auth"`
			} `json:"_meta"`
		} `json:"clientCapabilities"`
	}
	_ = json.Unmarshal(r.params, &p) // an invalid capability counts as absent
	c := p.Capabilities
	e.mu.Lock()
	e.takes = takes{
		notices: c.Session.Notices != nil, compaction: c.Session.Compaction != nil, booleans: c.Session.ConfigOptions.Boolean != nil,
		forms: c.Elicitation.Form != nil, urls: c.Elicitation.URL != nil, terminals: c.Meta.Output, logins: c.Auth.Terminal || c.Meta.Login,
	}
	e.mu.Unlock()
	name, failure := e.agentName(ctx)
	if failure != nil {
		return nil, failure
	}
	sessions := map[string]any{"list": struct{}{}, "resume": struct{}{}, "close": struct{}{}, "delete": struct{}{}}
	if slices.Contains(e.offers(ctx), "directories") {
		sessions["additionalDirectories"] = struct{}{}
	}
	return map[string]any{
		"protocolVersion": 1,
		"agentInfo":       map[string]any{"name": "deskhand", "title": name + " in Deskhand", "version": e.cfg.Version},
		"agentCapabilities": map[string]any{
			"loadSession":         true,
			"promptCapabilities":  map[string]any{"image": true, "audio": true, "embeddedContext": true},
			"mcpCapabilities":     map[string]any{"http": false, "sse": false},
			"sessionCapabilities": sessions,
		},
		"authMethods": e.logins(name),
	}, nil
}

// logins are the login methods: this program at a terminal, for editors with a terminal.
func (e *editor) logins(name string) []any {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.takes.logins || len(e.cfg.Login) == 0 {
		return []any{}
	}
	return []any{map[string]any{
		"id": "deskhand-login", "name": "Sign in to " + name, "description": "deskhand login " + e.cfg.Agent, "type": "terminal", "args": e.cfg.Login,
		"_meta": map[string]any{"terminal-auth": map[string]any{
			"label": "Sign in to " + name, "command": e.cfg.Self, "args": slices.Concat(e.cfg.Args, e.cfg.Login),
		}},
	}}
}

func (e *editor) agentName(ctx context.Context) (string, *acp.Error) {
	var list struct {
		Items   []struct{ ID, Name string }
		Problem string // why agents.json cannot be read
	}
	if err := e.client.call(ctx, http.MethodGet, "agents", nil, &list); err != nil {
		return "", asError(err)
	}
	for _, a := range list.Items {
		if a.ID == e.cfg.Agent {
			return cmp.Or(a.Name, a.ID), nil
		}
	}
	if list.Problem != "" {
		return "", badParams("Deskhand knows no agent %q; %s", e.cfg.Agent, list.Problem)
	}
	return "", badParams("Deskhand knows no agent %q; `deskhand agents --all` lists those that there are", e.cfg.Agent)
}

// offers are the capabilities that the agent reported at its latest start.
func (e *editor) offers(ctx context.Context) []string {
	var page sessionPage
	if e.client.call(ctx, http.MethodGet, "sessions?limit=200", nil, &page) != nil {
		return nil
	}
	for _, s := range page.Items {
		if s.Agent == e.cfg.Agent && len(s.Offers) > 0 {
			return s.Offers
		}
	}
	return nil
}

type sessionPage struct {
	Items []session `json:"items"`
	Next  string    `json:"next"`
}

// workplace holds the directories and MCP servers of a session.
type workplace struct {
	SessionID   string            `json:"sessionId"`
	Cwd         string            `json:"cwd"`
	Directories []string          `json:"additionalDirectories"`
	Servers     []json.RawMessage `json:"mcpServers"`
}

// newSession creates a session. newSession answers when the agent is ready, or earlier when the agent's start needs an approval, since the
// editor has to know the session in order to ask.
func (e *editor) newSession(ctx context.Context, r request) (any, *acp.Error) {
	var p workplace
	if json.Unmarshal(r.params, &p) != nil || !filepath.IsAbs(p.Cwd) {
		return nil, badParams("cwd has to be an absolute path")
	}
	if len(p.Servers) > 0 {
		e.tell("the editor's MCP servers are not given to the agent: those of Deskhand are, see its settings")
	}
	var made session
	in := map[string]any{"agent": e.cfg.Agent, "cwd": p.Cwd}
	if len(p.Directories) > 0 {
		in["directories"] = p.Directories
	}
	if err := e.begin(ctx, in, &made); err != nil {
		return nil, asError(err)
	}
	done := make(chan struct{})
	s := e.open(made.ID, func(result any, failure *acp.Error) {
		if failure == nil {
			e.wire.answer(r.id, result)
		} else {
			e.wire.fail(r.id, failure)
			e.discard(ctx, made.ID)
		}
		close(done)
	}, func(s *shown) {
		s.refresh()
		if s.opened() {
			s.start()
		}
	})
	select {
	case <-done:
	case <-ctx.Done(): // the editor does not want it any more, or is gone
		s.stop()
		<-done
	}
	return nil, nil
}

// begin creates a session. begin also waits for the answer after the editor has gone, since only a caller that knows the session's id can
// discard the session.
func (e *editor) begin(ctx context.Context, in map[string]any, made *session) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostMaking)
	defer cancel()
	return e.client.call(ctx, http.MethodPost, "sessions", in, made)
}

// mostMaking limits the time for creating a session, without the start of its agent.
const mostMaking = 30 * time.Second

// discard deletes a session that the editor did not receive, also after the editor has gone. A session that a person has used meanwhile at
// another surface stays.
func (e *editor) discard(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	err := e.client.call(ctx, http.MethodDelete, "sessions/"+url.PathEscape(id)+"?unused=true", nil, nil)
	if refused, ok := err.(*problem); ok && refused.Code == "session.used" { //nolint:errorlint // client wraps no problem
		return
	}
	if err != nil {
		e.tell("%s", err)
	}
}

// opened answers the request that opens a session, once the session allows an answer.
func (s *shown) opened() bool {
	answer := s.opening
	switch {
	case s.now.Phase == "" || s.ctx.Err() != nil: // unreadable, or nobody waits: reporting an open session would leave the session behind
		return false
	case s.now.Phase == "closed" && s.now.Exit != nil:
		s.opening = nil
		answer(nil, exitError(s.now.Exit))
		s.stop()
		return false
	case (s.now.Phase == "starting" || s.now.Phase == "replaying" || s.now.Phase == "closed") && len(s.inbox()) == 0:
		return false
	}
	s.opening = nil
	answer(s.description(true), nil)
	return true
}

// description is the answer to the opening of a session. Later updates only report changes against this description.
func (s *shown) description(named bool) map[string]any {
	options := s.options()
	s.told.options, s.told.mode = string(encoded(options)), modeOf(s.now.ConfigOptions).Value
	result := map[string]any{"configOptions": options}
	if named {
		result["sessionId"] = s.id
	}
	if modes := modesOf(s.now.ConfigOptions); modes != nil {
		result["modes"] = modes
	}
	return result
}

// start ends the opening: start sends the messages of the meantime, and the waiting requests.
func (s *shown) start() {
	s.catchUp()
	for _, r := range s.inbox() {
		s.requested(r)
	}
}

// exitError explains why an agent did not start.
func exitError(x *exit) *acp.Error {
	text := strings.NewReplacer(".", ": ", "_", " ").Replace(x.Problem)
	if detail := x.Params["detail"]; detail != "" {
		text += ": " + detail
	}
	if x.StderrTail != "" {
		text += "\n" + strings.TrimRight(x.StderrTail, "\n")
	}
	if help := map[string]string{"agent.auth_required": "deskhand login ", "agent.not_installed": "deskhand agents install "}[x.Problem]; help != "" && x.Params["agent"] != "" {
		text += "\nAt a terminal: " + help + x.Params["agent"]
	}
	if x.Problem == "agent.auth_required" {
		return &acp.Error{Code: acp.CodeAuthRequired, Message: text}
	}
	return &acp.Error{Code: acp.CodeInternalError, Message: text}
}

// openSession opens an existing session. session/load repeats the history, session/resume does not. A hibernated agent is woken.
func (e *editor) openSession(ctx context.Context, r request) (any, *acp.Error) {
	var p workplace
	if json.Unmarshal(r.params, &p) != nil || p.SessionID == "" {
		return nil, badParams("there is no sessionId")
	}
	var found session
	err := e.client.call(ctx, http.MethodGet, "sessions/"+url.PathEscape(p.SessionID), nil, &found)
	if refused, ok := err.(*problem); ok && refused.Status == http.StatusNotFound || err == nil && found.Agent != e.cfg.Agent { //nolint:errorlint // client wraps no problem
		return nil, &acp.Error{Code: acp.CodeResourceNotFound, Message: "there is no such session of this agent"}
	}
	if err != nil {
		return nil, asError(err)
	}
	done := make(chan struct{})
	s := e.open(found.ID, func(result any, failure *acp.Error) {
		if failure == nil {
			e.wire.answer(r.id, result)
		} else {
			e.wire.fail(r.id, failure)
		}
		close(done)
	}, func(s *shown) { s.reopen(r.method == "session/load") })
	select {
	case <-done:
	case <-ctx.Done():
		s.stop()
		<-done
	}
	return nil, nil
}

// reopen brings the editor up to date with a session that went on without the editor.
func (s *shown) reopen(replay bool) {
	requests := s.refresh()
	if replay {
		s.at = 0
		s.mirror.merging = true
		s.flush()
		s.mirror.merging = false
	} else {
		if len(s.prompts) == 0 { // else the journal is read from the position up to which the prompts are answered
			s.at = s.newest()
		}
		if s.now.Turn != nil {
			s.mirror.turn = s.now.Turn.ID
		}
	}
	answer := s.opening
	s.opening = nil
	answer(s.description(false), nil)
	if s.now.Phase == "closed" {
		_ = s.call(http.MethodPost, "restart", nil, nil) // the next prompt reports a failed restart
	}
	if !replay {
		s.commands()
	}
	s.catchUp()
	for _, r := range requests {
		s.requested(r)
	}
	s.compare()
}

// newest is the number of the journal's last frame.
func (s *shown) newest() int64 {
	var page framePage
	if err := s.call(http.MethodGet, "frames?limit=1&notes=true&bodies=false", nil, &page); err != nil || len(page.Items) == 0 {
		return 0
	}
	return page.Items[0].Seq
}

// commands sends the agent's latest commands.
func (s *shown) commands() {
	list := []any{}
	for _, c := range s.now.Commands {
		command := map[string]any{"name": c.Name, "description": c.Description}
		if c.Hint != "" {
			command["input"] = map[string]any{"hint": c.Hint}
		}
		list = append(list, command)
	}
	s.update(map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": list})
}

// listSessions lists all sessions of this agent, including those that other surfaces began.
func (e *editor) listSessions(ctx context.Context, r request) (any, *acp.Error) {
	var p struct {
		Cwd    string `json:"cwd"`
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(r.params, &p) // both members are optional
	list := []any{}
	for {
		const most = 100
		q := url.Values{"limit": {fmt.Sprint(most)}, "before": {p.Cursor}}
		var page sessionPage
		if err := e.client.call(ctx, http.MethodGet, "sessions?"+q.Encode(), nil, &page); err != nil {
			return nil, asError(err)
		}
		for _, s := range page.Items {
			if s.Agent == e.cfg.Agent && s.Place == "local" && (p.Cwd == "" || filepath.Clean(p.Cwd) == s.Cwd) {
				list = append(list, s.listed())
			}
		}
		p.Cursor = page.Next
		if page.Next == "" {
			return map[string]any{"sessions": list}, nil
		}
		if len(list) > 0 {
			return map[string]any{"sessions": list, "nextCursor": page.Next}, nil
		}
	}
}

func (s session) listed() map[string]any {
	item := map[string]any{"sessionId": s.ID, "cwd": s.Cwd, "title": s.Title, "updatedAt": s.UpdatedAt}
	if len(s.Directories) > 0 {
		item["additionalDirectories"] = s.Directories
	}
	return item
}

// deleteSession deletes a session. Deskhand can undo the deletion for a moment.
func (e *editor) deleteSession(ctx context.Context, r request) (any, *acp.Error) {
	var p workplace
	if json.Unmarshal(r.params, &p) != nil || p.SessionID == "" {
		return nil, badParams("there is no sessionId")
	}
	err := e.client.call(ctx, http.MethodDelete, "sessions/"+url.PathEscape(p.SessionID), nil, nil)
	if refused, ok := err.(*problem); ok && refused.Status == http.StatusNotFound { //nolint:errorlint // client wraps no problem
		err = nil // the session is deleted already
	}
	if err != nil {
		return nil, asError(err)
	}
	if s := e.find(p.SessionID); s != nil {
		s.stop()
	}
	return struct{}{}, nil
}

// closeIt closes a session in the editor: the running turn is cancelled, and Deskhand keeps the session.
func (s *shown) closeIt(r request) {
	s.cancel()
	s.stop()
	s.e.wire.answer(r.id, nil)
}
