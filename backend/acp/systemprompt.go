package acp

import "strings"

// The modes of a system prompt.
const (
	PromptAppend   = "append"   // added to the agent's own instructions
	PromptOverride = "override" // in place of the agent's own instructions
)

// SystemPrompt is a client's instructions in the requests that open a session: session/new, session/load, session/resume and session/fork (ACP
// version 1, Client system prompt, of 6 November 2026). A client sends the instructions in each of these requests, and only to an agent that
// takes the mode, see Initialized.
type SystemPrompt struct {
	Mode    string       `json:"mode"`
	Content []promptText `json:"content"`
}

// promptText is a content block of the only type that agents have to take.
type promptText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// NewSystemPrompt returns a system prompt of one text.
func NewSystemPrompt(mode, text string) SystemPrompt {
	return SystemPrompt{Mode: mode, Content: []promptText{{Type: "text", Text: text}}}
}

// Text returns the texts of a system prompt, one below the other.
func (p SystemPrompt) Text() string {
	var all []string
	for _, c := range p.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}
