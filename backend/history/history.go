// Package history tells when an agent has given back all of a conversation's history. session/load wants the whole history before the answer,
// and Gemini CLI goes on with it after the answer. Nothing on the wire says which update is the last one of a history, so that it is known by the
// end of what is stored of the conversation.
package history

import (
	"slices"
	"strings"

	"deskhand/backend/acp"
)

// Kinds of what was said.
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

// Bounds of what is compared. People say "go on" again and again, so that one message is not enough to know a place by.
const (
	mostPrompts = 20
	mostEnd     = 256      // bytes at the end of an answer
	mostPrompt  = 4 << 10  // bytes at the beginning of a stored message
	mostCame    = 64 << 10 // bytes of a message that comes
)

// Replay is the history that an agent gives back, as far as it came. The zero value has no end to compare with, and is never whole.
type Replay struct {
	prompts []string // the last ones that are stored
	last    Said     // the last of what is stored

	came   bool
	asked  []string // the last user messages that came
	newest Said     // the message that goes on, or the call that came last
}

// Expect is a replay that is whole when it ends as stored does, of which the order is the conversation's.
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

// Take takes an update in, and tells whether it can be part of a history.
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
		text = r.newest.Text // its beginning is enough
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

// Whole tells whether the history that came ends as the stored one does.
func (r *Replay) Whole() bool {
	if !r.came || r.last.Kind == "" || r.newest.Kind != r.last.Kind || len(r.asked) < len(r.prompts) {
		return false
	}
	// An agent may put its own words around a message, such as the names of files.
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

// plain is a text without its white space, in which agents change what they store.
func plain(text string) string { return strings.Join(strings.Fields(text), "") }
