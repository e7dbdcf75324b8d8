package llm

import (
	"encoding/json"
	"net/http"
	"strings"
)

type geminiRequest struct {
	System   geminiContent   `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name   string  `json:"name"`
			Input  inputOf `json:"parametersJsonSchema"`
			Legacy inputOf `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`

	model  string // these two are in the address
	stream bool
}

type geminiContent struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

// request brings Google's conversation into the common form. In that API a function's response is in a user's content; other texts in such
// a content are the agent's, and count as system.
func (q geminiRequest) request() Request {
	r := Request{API: "gemini", Model: q.model, Stream: q.stream}
	for _, tool := range q.Tools {
		for _, function := range tool.Functions {
			input := function.Input
			if input.Properties == nil {
				input = function.Legacy
			}
			r.offer(function.Name, input)
		}
	}
	r.Messages = q.System.messages("system")
	for _, content := range q.Contents {
		r.Messages = append(r.Messages, content.messages(content.Role)...)
	}
	return r
}

type geminiPart struct {
	Text string `json:"text"`
	Call struct {
		Name string `json:"name"`
	} `json:"functionCall"`
	Answer json.RawMessage `json:"functionResponse"`
}

// messages splits one of Google's contents.
func (c geminiContent) messages(role string) []Message {
	var list []Message
	m := Message{Role: role}
	if role == "model" {
		m.Role = "assistant"
	}
	for _, raw := range c.Parts {
		var part geminiPart
		if json.Unmarshal(raw, &part) != nil {
			continue
		}
		if part.Text != "" {
			m.Text += part.Text + "\n"
		}
		if part.Call.Name != "" {
			m.Calls = append(m.Calls, part.Call.Name)
		}
		if part.Answer != nil {
			m.Role = "system"
			list = append(list, Message{Role: "tool", Text: string(part.Answer)})
		}
		m.Files = append(m.Files, filesIn(raw)...)
	}
	if m.Text != "" || m.Files != nil || m.Role == "assistant" {
		list = append(list, m)
	}
	return list
}

// generate answers POST /v1beta/models/{model}:{method}.
func (m *Model) generate(w http.ResponseWriter, r *http.Request) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	if method == "countTokens" {
		writeJSON(w, object{"totalTokens": 120})
		return
	}
	q := geminiRequest{model: model, stream: method == "streamGenerateContent"}
	a, ok := m.read(w, r, &q)
	if !ok {
		return
	}
	if !q.stream {
		if m.hold(r.Context(), a) {
			writeJSON(w, geminiAnswer(model, "STOP", geminiParts(a)...))
		}
		return
	}
	out := newStream(w)
	for _, piece := range pieces(a.Text) {
		if piece != "" {
			out.send("", geminiAnswer(model, nil, object{"text": piece}))
		}
	}
	if m.hold(r.Context(), a) {
		a.Text = ""
		out.send("", geminiAnswer(model, "STOP", geminiParts(a)...))
	}
}

func geminiParts(a answer) []object {
	parts := []object{}
	if a.Text != "" {
		parts = append(parts, object{"text": a.Text})
	}
	if a.Tool != "" {
		parts = append(parts, object{"functionCall": object{"id": a.ID, "name": a.Tool, "args": json.RawMessage(a.Input)}})
	}
	return parts
}

func geminiAnswer(model string, finish any, parts ...object) object {
	if parts == nil {
		parts = []object{}
	}
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	if finish != nil {
		candidate["finishReason"] = finish
	}
	return object{
		"candidates": []object{candidate}, "modelVersion": model, "responseId": "scripted",
		"usageMetadata": object{"promptTokenCount": 120, "candidatesTokenCount": 8, "totalTokenCount": 128},
	}
}
