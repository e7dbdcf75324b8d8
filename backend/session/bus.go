package session

import (
	"encoding/base64"
	"strings"

	"deskhand/backend/feed"
	"deskhand/backend/transcript"
)

// The bus reports conversations in the terms of surfaces such as a chat (the seed attachments-bus-agent-discord.md): a message was created,
// a request began, an agent produced output. Each event is derived from a stored step, and follows the step's other events in the feed;
// only readers that name its type get it. Several files are several events, in order. Inside the process an event names the blob of a file;
// the bytes are added when an event leaves the process, see [Client.Leaving].

// BusEvent is the data of the events of the bus. Each type has these fields:
//
//	evt.adapter.message.created        messageId, requestId, text, attachments: a message of a person
//	cmd.request.message                requestId, text, attachments: the prompt of a turn that begins
//	evt.request.lifecycle.changed      requestId, state, stopReason
//	evt.agent.output.delta.text        requestId, messageId, delta
//	evt.agent.output.delta.reasoning   the same
//	evt.agent.output.response.text     requestId, finalText: the agent's whole text of the turn
//	evt.agent.output.response.binary   requestId, messageId, mimeType, filename, dataBase64 or else blob
//	evt.agent.output.toolcall          requestId, messageId, toolCallId, title, kind, status
//	evt.surface.output.message.created requestId, messageId: a message of the agent begins
type BusEvent struct {
	RequestID   string                  `json:"requestId,omitempty" doc:"The turn"`
	MessageID   string                  `json:"messageId,omitempty" doc:"The entry"`
	Text        string                  `json:"text,omitempty"`
	Attachments []transcript.Attachment `json:"attachments,omitempty"`
	Delta       string                  `json:"delta,omitempty"`
	FinalText   *string                 `json:"finalText,omitempty"`
	State       string                  `json:"state,omitempty" enum:"running,requires_action,done"`
	StopReason  string                  `json:"stopReason,omitempty"`
	MimeType    string                  `json:"mimeType,omitempty"`
	Filename    string                  `json:"filename,omitempty"`
	DataBase64  *string                 `json:"dataBase64,omitempty"`
	Blob        *BlobName               `json:"blob,omitempty" doc:"Where its bytes cannot be put in"`
	ToolCallID  string                  `json:"toolCallId,omitempty"`
	Title       string                  `json:"title,omitempty"`
	Kind        string                  `json:"kind,omitempty"`
	Status      string                  `json:"status,omitempty"`
}

// BlobName names the bytes of a file.
type BlobName struct {
	SHA256 string `json:"sha256"`
}

const (
	busMessage   = "evt.adapter.message.created"
	busRequest   = "cmd.request.message"
	busLifecycle = "evt.request.lifecycle.changed"
	busText      = "evt.agent.output.delta.text"
	busReasoning = "evt.agent.output.delta.reasoning"
	busAnswer    = "evt.agent.output.response.text"
	busBinary    = "evt.agent.output.response.binary"
	busTool      = "evt.agent.output.toolcall"
	busShown     = "evt.surface.output.message.created"
)

// answering records what the bus has reported of a conversation. answering belongs to the conversation's goroutine.
type answering struct {
	last  int64          // seq of the newest reported entry
	said  map[string]int // reported bytes of each message's text, by entry
	tools map[string]string
	turns map[string]string // reported states, by turn
	final strings.Builder   // the agent's text in the turn
	of    string            // the last message in final
}

func newAnswering(frames int64) answering {
	return answering{last: (frames + 1) * transcript.PerFrame, said: map[string]int{}, tools: map[string]string{}, turns: map[string]string{}}
}

// events returns the bus events of a step.
func (b *answering) events(session string, turns map[string]*Turn, entries []transcript.Change, imported bool) (events []feed.Event) {
	tell := func(kind string, e BusEvent) {
		events = append(events, feed.Event{Session: session, Type: kind, Data: mustJSON(e)})
	}
	newest := b.last
	for _, ch := range entries {
		newest = max(newest, ch.Entry.Seq)
		if !imported { // an imported history is not reported
			b.entry(ch, tell)
		}
	}
	b.last = newest
	for id, t := range turns {
		if t.State == "done" {
			b.ended(id, t, tell)
		}
	}
	for id, t := range turns {
		if t.State != "done" {
			b.runs(id, t, tell)
		}
	}
	for i, e := range events {
		if e.Type == busBinary {
			events[i].Weight = binaryWeight(entries)
		}
	}
	return events
}

// entry reports a changed entry.
func (b *answering) entry(ch transcript.Change, tell func(string, BusEvent)) {
	e := ch.Entry
	fresh := e.Seq > b.last
	base := BusEvent{RequestID: e.Turn, MessageID: e.ID}
	switch e.Kind {
	case "user":
		if fresh {
			base.Text, base.Attachments = e.Text, e.Attachments
			tell(busMessage, base)
		}
	case "agent", "thought":
		b.message(ch, fresh, tell)
	case "attachment":
		for _, a := range e.Attachments {
			if fresh {
				base.MimeType, base.Filename, base.Blob = a.MimeType, a.Filename, &BlobName{a.SHA256}
				tell(busBinary, base)
			}
		}
	case "tool":
		state := e.Tool.Status + "\x00" + e.Tool.Title
		if b.tools[e.ID] != state {
			b.tools[e.ID] = state
			base.ToolCallID, base.Title, base.Kind, base.Status = e.Tool.ToolCallID, e.Tool.Title, e.Tool.Kind, e.Tool.Status
			tell(busTool, base)
		}
	}
}

// message reports the text that was added to a message since its last report.
func (b *answering) message(ch transcript.Change, fresh bool, tell func(string, BusEvent)) {
	e := ch.Entry
	from, known := b.said[e.ID]
	if !known && !fresh { // the message began before this run of the program
		from = len(e.Text)
		if ch.Append != nil {
			from -= len(ch.Append.Text)
		}
	}
	base := BusEvent{RequestID: e.Turn, MessageID: e.ID}
	if !known && e.Kind == "agent" {
		tell(busShown, base)
	}
	b.said[e.ID] = len(e.Text)
	delta := e.Text[min(from, len(e.Text)):]
	if delta == "" {
		return
	}
	base.Delta = delta
	if e.Kind == "thought" {
		tell(busReasoning, base)
		return
	}
	tell(busText, base)
	if b.of != "" && b.of != e.ID {
		delta = "\n\n" + delta
	}
	if b.of = e.ID; b.final.Len()+len(delta) <= transcript.MaxText {
		b.final.WriteString(delta)
	}
}

// runs reports the state of a running turn.
func (b *answering) runs(id string, t *Turn, tell func(string, BusEvent)) {
	before, known := b.turns[id]
	if before == t.State {
		return
	}
	b.turns[id] = t.State
	if !known {
		tell(busRequest, BusEvent{RequestID: id, Text: transcript.PromptText(t.prompt), Attachments: t.attachments})
	}
	tell(busLifecycle, BusEvent{RequestID: id, State: t.State})
}

// ended reports the end of a turn, with the agent's text.
func (b *answering) ended(id string, t *Turn, tell func(string, BusEvent)) {
	if _, known := b.turns[id]; !known && len(t.prompt) > 0 { // the turn began and ended in one step
		tell(busRequest, BusEvent{RequestID: id, Text: transcript.PromptText(t.prompt), Attachments: t.attachments})
	}
	final := b.final.String()
	tell(busAnswer, BusEvent{RequestID: id, FinalText: &final})
	tell(busLifecycle, BusEvent{RequestID: id, State: t.State, StopReason: t.StopReason})
	b.final.Reset()
	b.of = ""
	clear(b.said)
	clear(b.tools)
	clear(b.turns)
}

// binaryWeight returns the size of the largest file in a step, as base64.
func binaryWeight(entries []transcript.Change) (n int) {
	for _, ch := range entries {
		if ch.Entry.Kind == "attachment" {
			for _, a := range ch.Entry.Attachments {
				n = max(n, base64.StdEncoding.EncodedLen(int(a.Size)))
			}
		}
	}
	return n
}
