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

// takes is what the editor can show beside what every editor can.
type takes struct {
	notices    bool
	compaction bool
	booleans   bool // settings that are on or off
	forms      bool
	urls       bool
	terminals  bool // output of programs in _meta of tool calls
	logins     bool // signing in at a terminal
}

// mirror turns the journal of a session into what its editor is shown. The agent's updates go on as they came; changed is only what
// this editor cannot read. It is a fold: the same frames give the same updates.
type mirror struct {
	takes takes
	out   func(update any)                            // hears each update, in order
	pass  func(method string, params json.RawMessage) // hears what is no update
	ours  func(turn string) bool                      // tells whether the editor itself began a turn
	ended func(ending)                                // hears of the end of each turn

	peer    string // the agent's id of the session, once it is known
	history bool   // the agent tells again what the journal has
	turn    string
	prompt  string          // id of the prompt that the agent works on
	result  json.RawMessage // its answer
	refused *acp.Error      // or its error
	setting string          // id of the newest change of a setting

	open    map[string]bool       // ids of those that are not answered
	answers map[string]*acp.Error // to changes of settings, by their ids; nil where there was no failure

	calls    map[string]*call
	programs map[string]*program
	dirty    []*call // whose output has grown

	merging bool // pieces of one message are put together: of history nobody wants each by itself
	held    *piece
}

// ending is how a turn has ended.
type ending struct {
	turn    string
	result  any // of the prompt
	failure *acp.Error
}

// call is a tool call, as far as programs in it are concerned.
type call struct {
	id       string
	content  []json.RawMessage
	programs []string
	dirty    bool
}

// program is one that the agent has run, or says that it has.
type program struct {
	id, cwd   string
	ours      bool // Deskhand runs it: the editor knows nothing of it
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

// apply folds one frame in.
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
		_ = json.Unmarshal(f.Body, &b) // without an id it is none of these
		switch f.Method {
		case "session/prompt":
			m.prompt, m.result, m.refused = idOf(b.ID), nil, nil
		case "session/set_config_option", "session/set_mode", "session/set_model":
			m.setting = idOf(b.ID)
			m.open[m.setting] = true
		}
	}
}

// settle sends what has gathered: the last of a message, and what programs have written. It is called when there are no more frames
// for now.
func (m *mirror) settle() {
	m.flush()
	for _, c := range m.dirty {
		c.dirty = false
		m.out(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": c.id, "content": m.rendered(c)})
	}
	m.dirty = nil
}

// note is what the journal says beside the wire.
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

// forget lets go of the tool calls of the turn before.
func (m *mirror) forget() {
	m.settle()
	clear(m.calls)
	maps.DeleteFunc(m.programs, func(_ string, p *program) bool { return p.ended })
}

// said shows what a person has said elsewhere.
func (m *mirror) said(n note) {
	if m.ours(n.Turn) && n.Note == "turn.began" && !m.merging { // what is told again is told whole
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

// files shows files as links, or where there is nothing to link to by their names.
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

// fileURL has a slash before a drive of Windows, which would be taken for a host.
func fileURL(slashed string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(slashed, "/")}).String()
}

func (m *mirror) send(update any) {
	m.flush()
	m.out(update)
}

// The reasons of a turn's end that are ACP's own.
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
		e.failure = m.refused // with its data, which the editor knows how to show
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

// idOf is the id of a request of Deskhand's, or of the answer to one, in whatever form an agent has sent it back.
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
		return // Deskhand shows it
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

// update passes an update on, unless it tells again what is known, or what the editor cannot take.
func (m *mirror) update(params json.RawMessage) {
	u, err := acp.ParseUpdate(params)
	if err != nil || m.peer != "" && u.SessionID != "" && u.SessionID != m.peer {
		return
	}
	switch u.Kind {
	case "config_option_update", "current_mode_update":
		return // the session's record tells, which knows what people change elsewhere as well
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
		if m.turn == "" { // else it is an echo of the prompt
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

// notice shows a notice of the agent's as its words where the editor knows no notices: it may be why nothing happens.
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

// piece is text of one message that is held to be put together with what follows.
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

// plainPiece is the text of a chunk that holds nothing else.
func plainPiece(u acp.Update) (piece, bool) {
	var fields map[string]json.RawMessage
	var content map[string]json.RawMessage
	if json.Unmarshal(u.Body, &fields) != nil || json.Unmarshal(fields["content"], &content) != nil || fields["_meta"] != nil || len(content) != 2 {
		return piece{}, false
	}
	c, err := acp.ParseChunk(u.Body)
	return piece{u.Kind, c.MessageID, c.Text}, err == nil && c.Block == nil && c.Low == 0 && c.High == 0
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
