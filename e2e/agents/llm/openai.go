package llm

import (
	"encoding/json"
	"net/http"
)

type object = map[string]any

type openAIRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name       string  `json:"name"`
			Parameters inputOf `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

func (q openAIRequest) request() Request {
	r := Request{API: "openai", Model: q.Model, Stream: q.Stream}
	for _, tool := range q.Tools {
		r.offer(tool.Function.Name, tool.Function.Parameters)
	}
	for _, message := range q.Messages {
		m := Message{Role: message.Role, Text: textOf(message.Content), Files: filesIn(message.Content)}
		for _, call := range message.ToolCalls {
			m.Calls = append(m.Calls, call.Function.Name)
		}
		r.Messages = append(r.Messages, m)
	}
	return r
}

// chatCompletions answers POST /v1/chat/completions.
func (m *Model) chatCompletions(w http.ResponseWriter, r *http.Request) {
	var q openAIRequest
	a, ok := m.read(w, r, &q)
	if !ok {
		return
	}
	if !q.Stream {
		if m.hold(r.Context(), a) {
			writeJSON(w, completion(q.Model, a))
		}
		return
	}
	out := newStream(w)
	chunk := func(delta object, finish any) {
		out.send("", object{
			"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": q.Model,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(a.Text) {
		chunk(object{"content": piece}, nil)
	}
	if !m.hold(r.Context(), a) {
		return
	}
	if a.Tool != "" {
		chunk(object{"tool_calls": []object{openAICall(a)}}, nil)
	}
	chunk(object{}, openAIFinish(a))
	out.send("", object{
		"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": q.Model,
		"choices": []object{}, "usage": openAIUsage(),
	})
	out.send("", "[DONE]")
}

func completion(model string, a answer) object {
	message := object{"role": "assistant", "content": a.Text}
	if a.Tool != "" {
		message["tool_calls"] = []object{openAICall(a)}
	}
	return object{
		"id": "chatcmpl-scripted", "object": "chat.completion", "created": 1, "model": model, "usage": openAIUsage(),
		"choices": []object{{"index": 0, "message": message, "finish_reason": openAIFinish(a)}},
	}
}

func openAICall(a answer) object {
	return object{"index": 0, "id": a.ID, "type": "function", "function": object{"name": a.Tool, "arguments": a.Input}}
}

func openAIFinish(a answer) string {
	if a.Tool != "" {
		return "tool_calls"
	}
	return "stop"
}

func openAIUsage() object {
	return object{"prompt_tokens": 120, "completion_tokens": 8, "total_tokens": 128}
}
