package llm

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
)

type anthropicRequest struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name  string  `json:"name"`
		Input inputOf `json:"input_schema"`
	} `json:"tools"`
}

// request brings Anthropic's conversation into the common form: a tool's result, which is a block of a user message in that API, becomes a
// message of its own. Other texts in such a message are the agent's reminders, which may repeat the prompt, and count as system.
func (q anthropicRequest) request() Request {
	r := Request{API: "anthropic", Model: q.Model, Stream: q.Stream}
	for _, tool := range q.Tools {
		r.offer(tool.Name, tool.Input)
	}
	if system := textOf(q.System); system != "" {
		r.Messages = append(r.Messages, Message{Role: "system", Text: system})
	}
	for _, message := range q.Messages {
		r.Messages = append(r.Messages, anthropicMessages(message.Role, message.Content)...)
	}
	return r
}

// anthropicMessages splits one of Anthropic's messages.
func anthropicMessages(role string, content json.RawMessage) []Message {
	var blocks []struct {
		Type    string          `json:"type"`
		Name    string          `json:"name"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(content, &blocks) // a text has no blocks
	var list []Message
	m := Message{Role: role, Text: textOf(content)}
	for _, block := range blocks {
		switch block.Type {
		case "tool_result":
			m.Role = "system"
			list = append(list, Message{Role: "tool", Text: textOf(block.Content)})
		case "tool_use":
			m.Calls = append(m.Calls, block.Name)
		}
	}
	if m.Role == "user" {
		m.Files = filesIn(content)
	}
	if m.Text != "" || m.Files != nil || m.Role == "assistant" {
		list = append(list, m)
	}
	return list
}

// messages answers POST /v1/messages.
func (m *Model) messages(w http.ResponseWriter, r *http.Request) {
	var q anthropicRequest
	a, ok := m.read(w, r, &q)
	if !ok {
		return
	}
	if !q.Stream {
		if m.hold(r.Context(), a) {
			writeJSON(w, anthropicMessage(q.Model, a))
		}
		return
	}
	out := newStream(w)
	opening := anthropicMessage(q.Model, answer{})
	opening["stop_reason"] = nil
	out.send("message_start", object{"type": "message_start", "message": opening})
	index := 0
	if a.Text != "" {
		deltas := make([]object, 0, len(a.Text))
		for _, piece := range pieces(a.Text) {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
		if !m.block(r, out, index, object{"type": "text", "text": ""}, deltas, a) {
			return
		}
		index++
	}
	if a.Tool != "" {
		opening := object{"type": "tool_use", "id": "toolu_" + a.ID, "name": a.Tool, "input": object{}}
		m.block(r, out, index, opening, []object{{"type": "input_json_delta", "partial_json": a.Input}}, answer{})
	}
	out.send("message_delta", object{
		"type": "message_delta", "usage": object{"output_tokens": 8},
		"delta": object{"stop_reason": anthropicStop(a), "stop_sequence": nil},
	})
	out.send("message_stop", object{"type": "message_stop"})
}

// block streams a content block; false means that the agent went away while the block was held.
func (m *Model) block(r *http.Request, out *stream, index int, opening object, deltas []object, a answer) bool {
	out.send("content_block_start", object{"type": "content_block_start", "index": index, "content_block": opening})
	for _, delta := range deltas {
		out.send("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": delta})
	}
	if !m.hold(r.Context(), a) {
		return false
	}
	out.send("content_block_stop", object{"type": "content_block_stop", "index": index})
	return true
}

// countTokens answers POST /v1/messages/count_tokens.
func (m *Model) countTokens(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, object{"input_tokens": 120})
}

func anthropicMessage(model string, a answer) object {
	content := []object{}
	if a.Text != "" {
		content = append(content, object{"type": "text", "text": a.Text})
	}
	if a.Tool != "" {
		content = append(content, object{"type": "tool_use", "id": "toolu_" + a.ID, "name": a.Tool, "input": json.RawMessage(a.Input)})
	}
	return object{
		"id":   "msg_" + rand.Text(), // unique: Claude joins messages with the same id
		"type": "message", "role": "assistant", "model": model, "content": content,
		"stop_reason": anthropicStop(a), "stop_sequence": nil, "usage": object{"input_tokens": 120, "output_tokens": 8},
	}
}

func anthropicStop(a answer) string {
	if a.Tool != "" {
		return "tool_use"
	}
	return "end_turn"
}
