// Package history recognises the end of a history that an agent gives back. session/load demands the whole history before the answer, and
// Gemini CLI continues the history after the answer. No update on the wire marks the end of a history, so the package compares the updates
// with the end of the stored conversation.
package history

import (
	"slices"
	"strings"

	"deskhand/backend/acp"
)

// Kinds of stored messages.
const (
	User  = "user"
	Agent = "agent"
	Tool  = "tool"
)

// Said is a message or a tool call of a conversation.
type Said struct {
	Kind string
	Text string // of a message
	ID   string // of a tool call
}

// Bounds of the comparison. People say "go on" again and again, so that a single message does not identify a place.
const (
	mostPrompts = 20
	mostEnd     = 256      // bytes at the end of an answer
	mostPrompt  = 4 << 10  // bytes at the beginning of a stored message
	mostCame    = 64 << 10 // bytes of a message that comes
)

// Replay is the part of a history that has arrived. The zero value has no end to compare with, and is never whole.
type Replay struct {
	prompts []string // the last stored prompts
	last    Said     // the last stored message

	came   bool
	asked  []string // the last user messages that came
	newest Said     // the message that goes on, or the call that came last
}

// Expect returns a replay that is whole when it ends as stored ends. stored is in the order of the conversation.
func Expect(stored []Said) *Replay {
	r := &Replay{}
	for _, s := range stored {
		if s.Kind == User {
			r.prompts = append(r.prompts, plain(strings.ToValidUTF8(s.Text[:min(len(s.Text), mostPrompt)], "")))
		}
	}
	r.prompts = r.prompts[max(0, len(r.prompts)-mostPrompts):]
	if len(stored) > 0 {
		r.last = stored[len(stored)-1]
	}
	return r
}

// Take adds an update, and reports whether the update can be part of a history.
func (r *Replay) Take(u acp.Update) bool {
	switch u.Kind {
	case "user_message_chunk":
		r.message(User, u)
	case "agent_message_chunk":
		r.message(Agent, u)
	case "tool_call", "tool_call_update":
		if call, err := acp.ParseToolCall(u.Body); err == nil {
			r.newest = Said{Kind: Tool, ID: call.ToolCallID}
		}
	case "agent_thought_chunk", "plan":
	default:
		return false
	}
	r.came = true
	return true
}

func (r *Replay) message(kind string, u acp.Update) {
	c, err := acp.ParseChunk(u.Body)
	if err != nil || c.Block != nil {
		return
	}
	if r.newest.Kind != kind {
		r.newest = Said{Kind: kind}
		if kind == User {
			r.asked = append(r.asked, "")
			r.asked = r.asked[max(0, len(r.asked)-mostPrompts):]
		}
	}
	text := r.newest.Text + c.Text
	if over := len(text) - mostCame; over > 0 && kind == User {
		text = r.newest.Text // the beginning of a text is enough
	} else if over > 0 {
		text = text[len(text)-mostCame/2:]
	}
	r.newest.Text = text
	if kind == User {
		r.asked[len(r.asked)-1] = text
	}
}

// Began tells whether anything of a history came.
func (r *Replay) Began() bool { return r.came }

// Whole reports whether the received history ends as the stored history does.
func (r *Replay) Whole() bool {
	if !r.came || r.last.Kind == "" || r.newest.Kind != r.last.Kind || len(r.asked) < len(r.prompts) {
		return false
	}
	// An agent may add words of its own to a message, such as the names of files.
	if !slices.EqualFunc(r.asked[len(r.asked)-len(r.prompts):], r.prompts, func(came, stored string) bool { return strings.Contains(plain(came), stored) }) {
		return false
	}
	switch r.last.Kind {
	case Agent:
		end := plain(r.last.Text)
		return end != "" && strings.HasSuffix(plain(r.newest.Text), end[max(0, len(end)-mostEnd):])
	case Tool:
		return r.newest.ID == r.last.ID
	}
	return true
}

// plain returns a text without its white space, which agents change when they store a text.
func plain(text string) string { return strings.Join(strings.Fields(text), "") }
