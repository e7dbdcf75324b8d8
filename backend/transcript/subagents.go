package transcript

import (
	"cmp"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
)

// BegunSubagent is a child session that an agent has begun for a part of its work.
type BegunSubagent struct {
	Session     string `json:"session" doc:"Id of the session of the subagent"`
	Title       string `json:"title,omitempty" doc:"What the agent calls the subagent"`
	Description string `json:"description,omitempty" doc:"What the subagent is for, as the agent says"`
}

// SessionMessage is a message from one session to another.
type SessionMessage struct {
	From string `json:"from,omitempty" doc:"ACP session id of the sender; absent where the agent does not say"`
	To   string `json:"to,omitempty" doc:"ACP session id of the recipient; absent where the agent does not say"`
}

// Words returns the name and the purpose of a subagent.
func (s *BegunSubagent) Words() string {
	switch {
	case s.Title == "":
		return cmp.Or(s.Description, "without a name")
	case s.Description == "":
		return s.Title
	}
	return s.Title + ": " + s.Description
}

// Words returns what a message is to the session whose ACP session id is own.
func (m *SessionMessage) Words(own string) string {
	switch {
	case m != nil && own != "" && m.To == own:
		return "Message from another session"
	case m != nil && own != "" && m.From == own:
		return "Message to another session"
	}
	return "Message between sessions"
}

// ReasonSubagent is the reason of a NoteTurnBegan when no person began the turn: the agent has set a subagent to work.
const ReasonSubagent = "subagent"

// RestoredSubagent is the reason of a NoteReady of a session that lives in the process of its parent's agent.
const RestoredSubagent = "subagent"

// mostMessages is how many messages between sessions are remembered at a time. A change of a forgotten message shows as another message.
const mostMessages = 256

// delegated holds what later updates of subagents change: entries of child sessions by their ACP session ids, and messages by their ids.
type delegated struct {
	children map[string]*Entry
	messages map[string]*Entry
}

func newDelegated() delegated {
	return delegated{children: map[string]*Entry{}, messages: map[string]*Entry{}}
}

// apply folds an update of subagents.
func (d delegated) apply(t *Fold, f journal.Frame, u acp.Update) error {
	switch u.Kind {
	case "subagent_update":
		return d.update(t, u.Body)
	case "session_message":
		return d.said(t, f, u.Body)
	}
	return d.chunk(t, f, u.Body)
}

// announced shows a child session where it first became known. Later updates of the process change the entry.
func (d delegated) announced(t *Fold, f journal.Frame, n Note) {
	e := t.add(f, "subagent")
	e.Subagent = &BegunSubagent{Session: n.To}
	d.children[n.Session] = e
}

// update folds a subagent_update. A session gets the updates of its children, and those that its parent gets about the session itself, which
// its turns show.
func (d delegated) update(t *Fold, body []byte) error {
	u, err := acp.ParseSubagentUpdate(body)
	e := d.children[u.SessionID]
	if err != nil || e == nil {
		return err
	}
	if u.Title.Given {
		e.Subagent.Title = Clip(u.Title.Value, maxLabel)
	}
	if u.Description.Given {
		e.Subagent.Description = ClipText(u.Description.Value)
	}
	t.Touch(e)
	return nil
}

// message returns the entry of a message between sessions, or begins the entry.
func (d delegated) message(t *Fold, f journal.Frame, id string) *Entry {
	e := d.messages[id]
	if e == nil {
		if len(d.messages) >= mostMessages {
			clear(d.messages)
		}
		e = t.add(f, "message")
		e.Message = &SessionMessage{}
		d.messages[id] = e
	}
	return e
}

// said folds session_message: fields that the update does not name stay.
func (d delegated) said(t *Fold, f journal.Frame, body []byte) error {
	m, err := acp.ParseSessionMessage(body)
	if err != nil {
		return err
	}
	e := d.message(t, f, m.MessageID)
	if m.Sender.Given {
		e.Message.From = Clip(m.Sender.Value, maxLabel)
	}
	if m.Recipient.Given {
		e.Message.To = Clip(m.Recipient.Value, maxLabel)
	}
	if m.Content.Given {
		delete(t.texts.growing, e)
		delete(t.texts.begun, e)
		e.Text, e.Blocks, e.Clipped = "", nil, 0
		for _, raw := range m.Content.Value {
			if c, err := acp.ParseBlock(raw); err == nil {
				d.extend(t, e, c)
			}
		}
	}
	t.Touch(e)
	return nil
}

// chunk folds session_message_chunk.
func (d delegated) chunk(t *Fold, f journal.Frame, body []byte) error {
	c, err := acp.ParseChunk(body)
	if err != nil {
		return err
	}
	d.extend(t, d.message(t, f, c.MessageID), c)
	return nil
}

// extend adds a piece to a message. Blocks beyond the room of the entry are left out.
func (delegated) extend(t *Fold, e *Entry, c acp.Chunk) {
	if c.Block == nil {
		t.extend(e, t.texts.joined(e, c.Cut))
		return
	}
	if block := ClipRaw(c.Block); e.hasRoom(block) {
		e.Blocks = append(e.Blocks, block)
		t.Touch(e)
	}
}
