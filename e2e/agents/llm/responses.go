package llm

import (
	"encoding/json"
	"net/http"
	"strings"
)

type responsesRequest struct {
	Model  string            `json:"model"`
	Stream bool              `json:"stream"`
	System string            `json:"instructions"`
	Input  []json.RawMessage `json:"input"`
	Tools  []responsesTool   `json:"tools"`
}

type responsesTool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters inputOf         `json:"parameters"`
	Tools      []responsesTool `json:"tools"` // of a namespace
}

// inSpace separates the name of a namespace from the name of a tool in the namespace, which are separate in a call.
const inSpace = "\x00"

type responsesItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Name    string          `json:"name"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

// request brings the list of items into the common form: a model's text and the following call are one message.
func (q responsesRequest) request() Request {
	r := Request{API: "responses", Model: q.Model, Stream: q.Stream, freeform: map[string]bool{}}
	for _, tool := range q.Tools {
		r.offer(tool.Name, tool.Parameters)
		r.freeform[tool.Name] = tool.Type == "custom"
		for _, inner := range tool.Tools {
			r.offer(tool.Name+inSpace+inner.Name, inner.Parameters)
		}
	}
	r.Messages = append(r.Messages, Message{Role: "system", Text: q.System})
	for _, raw := range q.Input {
		var item responsesItem
		if json.Unmarshal(raw, &item) != nil {
			continue
		}
		last := &r.Messages[len(r.Messages)-1]
		switch item.Type {
		case "function_call", "custom_tool_call", "local_shell_call":
			if last.Role != "assistant" {
				r.Messages = append(r.Messages, Message{Role: "assistant"})
				last = &r.Messages[len(r.Messages)-1]
			}
			last.Calls = append(last.Calls, item.Name)
		case "function_call_output", "custom_tool_call_output":
			r.Messages = append(r.Messages, Message{Role: "tool", Text: textOf(item.Output)})
		case "message", "":
			m := Message{Role: item.Role, Text: textOf(item.Content)}
			if m.Role == "user" {
				m.Files = filesIn(item.Content)
			}
			r.Messages = append(r.Messages, m)
		}
	}
	return r
}

// responses answers POST /v1/responses, which is asked for streams alone.
func (m *Model) responses(w http.ResponseWriter, r *http.Request) {
	var q responsesRequest
	a, ok := m.read(w, r, &q)
	if !ok {
		return
	}
	out := newStream(w)
	send := func(kind string, more object) {
		more["type"] = kind
		out.send(kind, more)
	}
	send("response.created", object{"response": object{"id": "resp_scripted", "status": "in_progress"}})
	index := 0
	if a.Text != "" {
		message := func(content ...object) object {
			return object{"type": "message", "id": "msg_" + a.ID, "role": "assistant", "content": append([]object{}, content...)}
		}
		send("response.output_item.added", object{"output_index": index, "item": message()})
		for _, piece := range pieces(a.Text) {
			send("response.output_text.delta", object{"output_index": index, "content_index": 0, "item_id": "msg_" + a.ID, "delta": piece})
		}
		if !m.hold(r.Context(), a) {
			return
		}
		send("response.output_item.done", object{"output_index": index, "item": message(object{"type": "output_text", "text": a.Text})})
		index++
	}
	if a.Tool != "" {
		send("response.output_item.done", object{"output_index": index, "item": responsesCall(a)})
	}
	send("response.completed", object{"response": object{"id": "resp_scripted", "status": "completed", "usage": object{
		"input_tokens": 120, "output_tokens": 8, "total_tokens": 128, "input_tokens_details": nil, "output_tokens_details": nil,
	}}})
}

func responsesCall(a answer) object {
	if a.Freeform {
		return object{"type": "custom_tool_call", "id": "ctc_" + a.ID, "call_id": a.ID, "name": a.Tool, "input": a.Input}
	}
	call := object{"type": "function_call", "id": "fc_" + a.ID, "call_id": a.ID, "name": a.Tool, "arguments": a.Input}
	if space, name, inside := strings.Cut(a.Tool, inSpace); inside {
		call["namespace"], call["name"] = space, name
	}
	return call
}
