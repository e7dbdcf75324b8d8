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

// initialize says what a session of this agent can do. What a prompt may hold is more than the agent takes: Deskhand gives every kind of
// file to every agent in a way that it understands.
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
	_ = json.Unmarshal(r.params, &p) // what it says wrongly it does not take
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

// logins is how to sign in: by ourselves at a terminal, for editors that have one.
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
		Problem string // of agents.json
	}
	if err := e.desk.call(ctx, http.MethodGet, "agents", nil, &list); err != nil {
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

// offers is what the agent said of itself when it was last started.
func (e *editor) offers(ctx context.Context) []string {
	var page sessionPage
	if e.desk.call(ctx, http.MethodGet, "sessions?limit=200", nil, &page) != nil {
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

// workplace is where the editor wants to work, and with what.
type workplace struct {
	SessionID   string            `json:"sessionId"`
	Cwd         string            `json:"cwd"`
	Directories []string          `json:"additionalDirectories"`
	Servers     []json.RawMessage `json:"mcpServers"`
}

// newSession makes a session and answers when its agent is ready, or asks a person before it starts: then the editor has to know the
// session to be able to ask.
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

// begin makes a session. It hears its answer also when the editor goes meanwhile: whoever does not know the session cannot take it away.
func (e *editor) begin(ctx context.Context, in map[string]any, made *session) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostMaking)
	defer cancel()
	return e.desk.call(ctx, http.MethodPost, "sessions", in, made)
}

// mostMaking is how long Deskhand has to make a session, whose agent it does not wait for.
const mostMaking = 30 * time.Second

// discard takes away a session that the editor could not have, also when the editor is gone; not one in which somebody has begun something
// at the window meanwhile.
func (e *editor) discard(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	err := e.desk.call(ctx, http.MethodDelete, "sessions/"+url.PathEscape(id)+"?unused=true", nil, nil)
	if refused, ok := err.(*problem); ok && refused.Code == "session.used" { //nolint:errorlint // desk wraps none
		return
	}
	if err != nil {
		e.tell("%s", err)
	}
}

// opened answers the request that opens a session, once that can be done.
func (s *shown) opened() bool {
	answer := s.opening
	switch {
	case s.now.Phase == "" || s.ctx.Err() != nil: // it could not be read, or nobody wants it any more: said to be open, it would be left behind
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

// description is what an editor hears when a session is open; it counts as told from then on.
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

// start is the rest of the opening: what was said meanwhile, and what waits for a person.
func (s *shown) start() {
	s.catchUp()
	for _, r := range s.inbox() {
		s.requested(r)
	}
}

// exitError tells why an agent did not start.
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

// openSession opens a session that is there: load tells what was said in it, resume does not. An agent that sleeps is woken.
func (e *editor) openSession(ctx context.Context, r request) (any, *acp.Error) {
	var p workplace
	if json.Unmarshal(r.params, &p) != nil || p.SessionID == "" {
		return nil, badParams("there is no sessionId")
	}
	var found session
	err := e.desk.call(ctx, http.MethodGet, "sessions/"+url.PathEscape(p.SessionID), nil, &found)
	if refused, ok := err.(*problem); ok && refused.Status == http.StatusNotFound || err == nil && found.Agent != e.cfg.Agent { //nolint:errorlint // desk wraps none
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

// reopen brings the editor to where a session is that has been going on without it.
func (s *shown) reopen(replay bool) {
	requests := s.refresh()
	if replay {
		s.at = 0
		s.mirror.merging = true
		s.flush()
		s.mirror.merging = false
	} else {
		if len(s.prompts) == 0 { // else it goes on from where these are answered up to
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
		_ = s.call(http.MethodPost, "restart", nil, nil) // what keeps it from that is told by the next prompt
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

// newest is the number of the last frame of the journal.
func (s *shown) newest() int64 {
	var page framePage
	if err := s.call(http.MethodGet, "frames?limit=1&notes=true&bodies=false", nil, &page); err != nil || len(page.Items) == 0 {
		return 0
	}
	return page.Items[0].Seq
}

// commands tells of the agent's commands, as they were told last.
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

// listSessions lists the sessions of this agent, whoever began them.
func (e *editor) listSessions(ctx context.Context, r request) (any, *acp.Error) {
	var p struct {
		Cwd    string `json:"cwd"`
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(r.params, &p) // both may be missing
	list := []any{}
	for {
		const most = 100
		q := url.Values{"limit": {fmt.Sprint(most)}, "before": {p.Cursor}}
		var page sessionPage
		if err := e.desk.call(ctx, http.MethodGet, "sessions?"+q.Encode(), nil, &page); err != nil {
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

// deleteSession deletes a session: for a moment that can be taken back in Deskhand.
func (e *editor) deleteSession(ctx context.Context, r request) (any, *acp.Error) {
	var p workplace
	if json.Unmarshal(r.params, &p) != nil || p.SessionID == "" {
		return nil, badParams("there is no sessionId")
	}
	err := e.desk.call(ctx, http.MethodDelete, "sessions/"+url.PathEscape(p.SessionID), nil, nil)
	if refused, ok := err.(*problem); ok && refused.Status == http.StatusNotFound { //nolint:errorlint // desk wraps none
		err = nil // it is deleted already
	}
	if err != nil {
		return nil, asError(err)
	}
	if s := e.find(p.SessionID); s != nil {
		s.stop()
	}
	return struct{}{}, nil
}

// closeIt lets go of a session: what runs in it is stopped, and Deskhand keeps it.
func (s *shown) closeIt(r request) {
	s.cancel()
	s.stop()
	s.e.wire.answer(r.id, nil)
}
