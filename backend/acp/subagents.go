package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// The updates of subagents (ACP version 1, Subagents, of 20 November 2026). An agent that delegates work announces a child session on the
// parent session, and sends the child's updates and requests with the child's id.

// Patched is a field of an update that changes a stored record: a missing field leaves the stored value, and null clears it, which is a given
// zero Value. A value of the wrong type counts as missing.
type Patched[T any] struct {
	Value T
	Given bool
}

// UnmarshalJSON never fails.
func (p *Patched[T]) UnmarshalJSON(b []byte) error {
	*p = Patched[T]{} // the field may be repeated
	var v T
	if string(b) == "null" || lenient(b, &v) == nil {
		p.Value, p.Given = v, true
	}
	return nil
}

// The states of the work of a subagent that begin or end a turn. Others, such as unknown, change nothing.
const (
	SubagentRunning = "running"
	SubagentIdle    = "idle"
	SubagentBlocked = "requires_action"
)

// SubagentState is what a child session does now. The other fields are those of idle.
type SubagentState struct {
	State      string          `json:"state"`
	StopReason string          `json:"stopReason"`
	Error      *Error          `json:"error"`
	Message    string          `json:"message"`
	Usage      json.RawMessage `json:"usage"`
}

// Failure returns why the work ended with an error.
func (s SubagentState) Failure() *Error {
	if s.Error != nil {
		return s.Error
	}
	return &Error{Code: CodeInternalError, Message: cmp.Or(s.Message, "the agent did not say why")}
}

// SubagentUpdate announces a child session, or changes what is known of the child.
type SubagentUpdate struct {
	SessionID   string // the child's
	Parent      string // the session that is told; set by SubagentUpdateOf
	Title       Patched[string]
	Description Patched[string]
	Cwd         Patched[string]
	State       Patched[SubagentState]
	Cancel      Patched[bool] // whether the work of the child may be cancelled
}

// ParseSubagentUpdate decodes subagent_update.
func ParseSubagentUpdate(body json.RawMessage) (SubagentUpdate, error) {
	var p struct {
		SessionID    Text                   `json:"sessionId"`
		Title        Patched[string]        `json:"title"`
		Description  Patched[string]        `json:"description"`
		Cwd          Patched[string]        `json:"cwd"`
		State        Patched[SubagentState] `json:"state"`
		Capabilities Patched[struct {
			Cancel optional[struct{}] `json:"cancel"`
		}] `json:"capabilities"`
	}
	if err := lenient(body, &p); err != nil {
		return SubagentUpdate{}, err
	}
	if p.SessionID == "" {
		return SubagentUpdate{}, fmt.Errorf("%w: a subagent without an id", ErrShape)
	}
	return SubagentUpdate{
		SessionID: string(p.SessionID), Title: p.Title, Description: p.Description, Cwd: p.Cwd, State: p.State,
		Cancel: Patched[bool]{Value: p.Capabilities.Value.Cancel.given, Given: p.Capabilities.Given},
	}, nil
}

// SessionMessage is a message from one session to another, or a change of it. Ids of sessions are ACP session ids.
type SessionMessage struct {
	MessageID string
	Sender    Patched[string]
	Recipient Patched[string]
	Content   Patched[[]json.RawMessage] // blocks; they replace all blocks before
}

// ParseSessionMessage decodes session_message.
func ParseSessionMessage(body json.RawMessage) (SessionMessage, error) {
	var p struct {
		MessageID Text                       `json:"messageId"`
		Sender    Patched[string]            `json:"senderSessionId"`
		Recipient Patched[string]            `json:"recipientSessionId"`
		Content   Patched[[]json.RawMessage] `json:"content"`
	}
	if err := lenient(body, &p); err != nil {
		return SessionMessage{}, err
	}
	if p.MessageID == "" {
		return SessionMessage{}, fmt.Errorf("%w: a message between sessions without an id", ErrShape)
	}
	return SessionMessage{MessageID: string(p.MessageID), Sender: p.Sender, Recipient: p.Recipient, Content: p.Content}, nil
}

// SessionOf returns the ACP session id of the session that an agent's message is about, and the id of the child session that the message announces
// or tells of; "" = none. own is the session that most messages are about: a message that names no other session is not decoded.
func SessionOf(message []byte, own string) (session, child string) {
	if u, ok := SubagentUpdateOf(message); ok {
		return u.Parent, u.SessionID
	}
	const key = `"sessionId"`
	_, rest, named := bytes.Cut(message, []byte(key))
	if !named {
		return own, ""
	}
	if bytes.HasPrefix(bytes.TrimLeft(rest, " \t:"), []byte(`"`+own+`"`)) && !bytes.Contains(rest, []byte(key)) {
		return own, ""
	}
	var m struct {
		Params struct {
			SessionID Text `json:"sessionId"`
		}
	}
	if lenient(message, &m) != nil || m.Params.SessionID == "" {
		return own, ""
	}
	return string(m.Params.SessionID), ""
}

// SubagentUpdateOf decodes a whole message that is a subagent_update; ok is false for any other message.
func SubagentUpdateOf(message []byte) (u SubagentUpdate, ok bool) {
	const kind = "subagent_update"
	if !bytes.Contains(message, []byte(kind)) {
		return SubagentUpdate{}, false
	}
	var m struct {
		Method string
		Params json.RawMessage
	}
	if lenient(message, &m) != nil || m.Method != "session/update" {
		return SubagentUpdate{}, false
	}
	update, err := ParseUpdate(m.Params)
	if err != nil || update.Kind != kind {
		return SubagentUpdate{}, false
	}
	u, err = ParseSubagentUpdate(update.Body)
	u.Parent = update.SessionID
	return u, err == nil
}
