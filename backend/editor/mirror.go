package editor

import (
	"encoding/json"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/acp"
)

// takes are the optional abilities of the editor.
type takes struct {
	notices    bool
	compaction bool
	booleans   bool // boolean settings
	forms      bool
	urls       bool
	terminals  bool // output of programs in _meta of tool calls
	logins     bool // login at a terminal
}

// mirror turns a session's journal into the editor's updates. The agent's updates pass unchanged, except for those that this editor cannot
// read. mirror is a fold: the same frames give the same updates.
type mirror struct {
	takes takes
	out   func(update any)                            // receives each update, in order
	pass  func(method string, params json.RawMessage) // receives other messages
	ours  func(turn string) bool                      // reports whether the editor began a turn
	ended func(ending)                                // receives the end of each turn

	peer    string // the agent's id of the session, once known
	history bool   // the agent repeats the journal's history
	turn    string
	prompt  string          // id of the agent's running prompt
	result  json.RawMessage // the prompt's result
	refused *acp.Error      // or the prompt's error
	setting string          // id of the latest change of a setting

	open    map[string]bool       // ids of unanswered requests
	answers map[string]*acp.Error // the errors of changes of settings, by id; nil without a failure

	calls    map[string]*call
	programs map[string]*program
	dirty    []*call // calls whose output has grown

	merging bool // joins the pieces of a message, as for history
	held    *piece
}

// ending is the end of a turn.
type ending struct {
	turn    string
	result  any // result of the prompt
	failure *acp.Error
}

// call is a tool call with the programs that it shows.
type call struct {
	id       string
	content  []json.RawMessage
	programs []string
	dirty    bool
}

// program is a program that the agent has run, or claims to have run.
type program struct {
	id, cwd   string
	ours      bool // Deskhand runs the program, which the editor does not know
	announced bool
	text      string
	skipped   bool
	ended     bool
	code      *int
	signal    string
}

func newMirror(t takes) *mirror {
	return &mirror{takes: t, calls: map[string]*call{}, programs: map[string]*program{}, answers: map[string]*acp.Error{}, open: map[string]bool{}}
}

// apply applies a frame.
func (m *mirror) apply(f frame) {
	switch f.Dir {
	case "note":
		m.note(f.Body)
	case "in":
		m.inward(f.Body)
	case "out":
		var b struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(f.Body, &b) // a message without an id is none of these
		switch f.Method {
		case "session/prompt":
			m.prompt, m.result, m.refused = idOf(b.ID), nil, nil
		case "session/set_config_option", "session/set_mode", "session/set_model":
			m.setting = idOf(b.ID)
			m.open[m.setting] = true
		}
	}
}

// settle sends the pending output: the last piece of a message, and the growth of programs' output. The caller calls settle when no more
// frames are available.
func (m *mirror) settle() {
	m.flush()
	for _, c := range m.dirty {
		c.dirty = false
		m.out(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": c.id, "content": m.rendered(c)})
	}
	m.dirty = nil
}

// note is an entry of the journal that is no message of the wire.
type note struct {
	Note    string            `json:"note"`
	Turn    string            `json:"turn"`
	Prompt  []json.RawMessage `json:"prompt"`
	Reason  string            `json:"reason"`
	Session string            `json:"session"`
	Notice  *notice           `json:"notice"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`

	Terminal    *terminal    `json:"terminal"`
	Text        string       `json:"text"`
	Attachments []attachment `json:"attachments"`
}

type notice struct {
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

type terminal struct {
	ID       string `json:"terminalId"`
	Cwd      string `json:"cwd"`
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exitCode"`
	Signal   string `json:"signal"`
	Skipped  int64  `json:"skipped"`
}

func (m *mirror) note(body json.RawMessage) {
	var n note
	if json.Unmarshal(body, &n) != nil {
		return
	}
	switch n.Note {
	case "agent.starting":
		m.peer, m.history, m.prompt, m.setting = "", false, "", "" // another life: its ids count anew
		clear(m.answers)
		clear(m.open)
	case "session.replaying":
		m.history = true
	case "session.ready":
		m.peer, m.history = n.Session, false
	case "turn.began":
		m.turn = n.Turn
		m.forget()
		m.said(n)
	case "turn.steered":
		m.said(n)
	case "turn.ended":
		m.end(n)
	case "attachment.given":
		m.files("agent_message_chunk", n.Attachments)
	case "notice":
		if n.Notice != nil && m.takes.notices {
			m.send(map[string]any{"sessionUpdate": "notice", "severity": n.Notice.Severity, "title": n.Notice.Title, "description": n.Notice.Description})
		}
	case "terminal":
		if n.Terminal != nil {
			m.ran(*n.Terminal, n.Text)
		}
	}
}

// forget drops the tool calls of the previous turn.
func (m *mirror) forget() {
	m.settle()
	clear(m.calls)
	maps.DeleteFunc(m.programs, func(_ string, p *program) bool { return p.ended })
}

// said shows a person's message from another surface.
func (m *mirror) said(n note) {
	if m.ours(n.Turn) && n.Note == "turn.began" && !m.merging { // a replayed history is shown whole
		return
	}
	for _, block := range n.Prompt {
		var text struct{ Type, Text string }
		if json.Unmarshal(block, &text) == nil && text.Type == "text" && text.Text == "" {
			continue
		}
		m.send(map[string]any{"sessionUpdate": "user_message_chunk", "content": block})
	}
	m.files("user_message_chunk", n.Attachments)
}

// files shows files as links, or by name when there is no address.
func (m *mirror) files(kind string, files []attachment) {
	for _, a := range files {
		uri := a.URI
		if a.Path != "" {
			uri = fileURL(filepath.ToSlash(a.Path))
		}
		content := map[string]any{"type": "resource_link", "uri": uri, "name": a.Filename, "mimeType": a.MimeType, "size": a.Size}
		if uri == "" {
			content = map[string]any{"type": "text", "text": "[" + a.Filename + "]"}
		}
		m.send(map[string]any{"sessionUpdate": kind, "content": content})
	}
}

// fileURL puts a slash before a Windows drive, which would else read as a host.
func fileURL(slashed string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(slashed, "/")}).String()
}

func (m *mirror) send(update any) {
	m.flush()
	m.out(update)
}

// isStopReason reports whether a turn's end has a reason of ACP.
func isStopReason(reason string) bool {
	return slices.Contains([]string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}, reason)
}

func (m *mirror) end(n note) {
	m.settle()
	e := ending{turn: n.Turn}
	var answered struct {
		StopReason string `json:"stopReason"`
	}
	switch {
	case m.result != nil && json.Unmarshal(m.result, &answered) == nil && answered.StopReason == n.Reason && isStopReason(n.Reason):
		e.result = m.result
	case isStopReason(n.Reason):
		e.result = map[string]any{"stopReason": n.Reason}
	case n.Error != nil && m.refused != nil && m.refused.Code == n.Error.Code:
		e.failure = m.refused // includes the error's data, which editors show
	case n.Error != nil:
		e.failure = &acp.Error{Code: n.Error.Code, Message: n.Error.Message}
	default:
		e.failure = &acp.Error{Code: acp.CodeInternalError, Message: endWords(n.Reason)}
	}
	m.turn, m.prompt, m.result, m.refused = "", "", nil, nil
	m.ended(e)
}

func endWords(reason string) string {
	switch reason {
	case "agent_exited":
		return "the agent has ended in the middle of the turn; the next message starts it again"
	case "interrupted":
		return "Deskhand has ended in the middle of the turn; the next message goes on"
	}
	return "the turn ended early: " + reason
}

// idOf is the id of a request or an answer, in the form in which Deskhand sent the id.
func idOf(id json.RawMessage) string {
	key := (&acp.Envelope{ID: id}).Key()
	if twin := key.Twin(); strings.HasPrefix(string(key), `"`) && twin != "" {
		key = twin
	}
	return string(key)
}

func (m *mirror) inward(body json.RawMessage) {
	var b struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  *acp.Error      `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil {
		return // Deskhand shows the request
	}
	switch {
	case b.Method == "session/update":
		m.update(b.Params)
	case b.Method == "elicitation/complete" && m.takes.urls:
		m.pass(b.Method, b.Params)
	case b.Method != "" || b.ID == nil:
	case idOf(b.ID) == m.prompt:
		m.result, m.refused = b.Result, b.Error
	case m.open[idOf(b.ID)]:
		delete(m.open, idOf(b.ID))
		m.answers[idOf(b.ID)] = b.Error
	}
}

// update passes an update on, unless the editor knows the update's content or cannot read the update.
func (m *mirror) update(params json.RawMessage) {
	u, err := acp.ParseUpdate(params)
	if err != nil || m.peer != "" && u.SessionID != "" && u.SessionID != m.peer {
		return
	}
	switch u.Kind {
	case "config_option_update", "current_mode_update":
		return // the session's record reports settings, including changes of other surfaces
	case "available_commands_update", "session_info_update", "usage_update":
		m.send(u.Body)
		return
	}
	if m.history {
		return
	}
	switch u.Kind {
	case "agent_message_chunk", "agent_thought_chunk":
		m.chunk(u)
	case "user_message_chunk":
		if m.turn == "" { // during a turn, the chunk is an echo of the prompt
			m.chunk(u)
		}
	case "tool_call", "tool_call_update":
		m.flush()
		m.toolCall(u.Body)
	case "notice":
		m.notice(u.Body)
	case "compaction_update", "compaction_summary_chunk":
		if m.takes.compaction {
			m.send(u.Body)
		}
	default:
		m.send(u.Body)
	}
}

// notice shows a notice as text when the editor knows no notices, since a notice may explain why nothing happens.
func (m *mirror) notice(body json.RawMessage) {
	n, err := acp.ParseNotice(body)
	if m.takes.notices || err != nil {
		m.send(body)
		return
	}
	text := "\n\n> " + n.Title
	if n.Description != "" {
		text += ": " + n.Description
	}
	m.send(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text + "\n\n"}})
}

// piece is text of a message that waits for the following pieces.
type piece struct{ kind, id, text string }

func (m *mirror) chunk(u acp.Update) {
	p, plain := plainPiece(u)
	if !m.merging || !plain {
		m.send(u.Body)
		return
	}
	if m.held != nil && m.held.kind == p.kind && m.held.id == p.id {
		m.held.text += p.text
		return
	}
	m.flush()
	m.held = &p
}

// plainPiece is the text of a chunk without other content.
func plainPiece(u acp.Update) (piece, bool) {
	var fields map[string]json.RawMessage
	var content map[string]json.RawMessage
	if json.Unmarshal(u.Body, &fields) != nil || json.Unmarshal(fields["content"], &content) != nil || fields["_meta"] != nil || len(content) != 2 {
		return piece{}, false
	}
	c, err := acp.ParseChunk(u.Body)
	return piece{u.Kind, c.MessageID, c.Text}, err == nil && c.Block == nil && c.IsWhole()
}

func (m *mirror) flush() {
	p := m.held
	if p == nil {
		return
	}
	m.held = nil
	update := map[string]any{"sessionUpdate": p.kind, "content": map[string]any{"type": "text", "text": p.text}}
	if p.id != "" {
		update["messageId"] = p.id
	}
	m.out(update)
}
