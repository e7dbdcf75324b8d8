package editor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/acp"
)

// What an agent asks of a person waits in Deskhand's inbox, where every surface can answer it. The editor is one more: it is asked at the
// same time, the first answer counts, and where that is not the editor's its dialog is taken away again. What it cannot show it is told of,
// by a permission whose answers lead to Deskhand.

// ask is a request that the editor is asked.
type ask struct {
	id    json.RawMessage // at the editor
	about asking
	tries int
}

// The answers to what the editor cannot show.
const (
	optionShow    = "deskhand-show"
	optionDecline = "deskhand-decline"
)

// maxTries is how often the editor is asked anew after an answer that did not fit.
const maxTries = 3

// requested takes a request, or its end.
func (s *shown) requested(r asking) {
	switch {
	case r.Status != "requested":
		s.resolved(r.ID)
	case s.asks[r.ID] == nil:
		s.ask(&ask{about: r})
	}
}

// resolved takes the dialog of a request away that was answered elsewhere.
func (s *shown) resolved(id string) {
	if a := s.asks[id]; a != nil {
		delete(s.asks, id)
		s.e.wire.withdraw(a.id)
	}
}

func (s *shown) ask(a *ask) {
	method, params, read := s.form(a.about)
	params["sessionId"] = s.id
	s.asks[a.about.ID] = a
	a.tries++
	a.id = s.e.wire.ask(method, params, func(result json.RawMessage, failure *acp.Error) {
		s.do(func() { s.answered(a, read, result, failure) })
	})
}

// reader makes the editor's answer one of Deskhand's; nil is none.
type reader func(result json.RawMessage) map[string]any

func (s *shown) form(r asking) (method string, params map[string]any, read reader) {
	t := s.mirror.takes
	switch {
	case r.Kind == "permission" && r.Clipped:
		call := pointer(r, "This is too long to be shown here: not all of it is shown. Look at it in Deskhand, which shows all of it, or reject it.")
		return "session/request_permission", map[string]any{"toolCall": call, "options": refusalsOf(r.Options)}, s.readTrust(r)
	case r.Kind == "permission":
		return "session/request_permission", map[string]any{"toolCall": s.toolOf(r), "options": optionsOf(r.Options)}, readOption
	case r.Kind == "trust":
		return "session/request_permission", map[string]any{"toolCall": trustOf(r), "options": refusalsOf(r.Options)}, s.readTrust(r)
	case r.Kind == "form" && t.forms:
		return "elicitation/create", s.about(r, map[string]any{"mode": "form", "message": r.Title, "requestedSchema": r.Schema}), readAction
	case r.Kind == "url" && t.urls:
		return "elicitation/create", s.about(r, map[string]any{"mode": "url", "message": r.Title, "url": r.URL, "elicitationId": r.ElicitationID}), readAction
	case r.Kind == "question" && t.forms:
		schema, fields := questionForm(r.Questions)
		return "elicitation/create", s.about(r, map[string]any{"mode": "form", "message": r.Title, "requestedSchema": schema}),
			func(result json.RawMessage) map[string]any { return readAnswers(result, fields) }
	}
	if c, ok := choiceOf(r); ok {
		return "session/request_permission", map[string]any{"toolCall": pointer(r, c.prompt), "options": c.options()}, s.readChoice(r, c)
	}
	return "session/request_permission", map[string]any{"toolCall": pointer(r, "Answer it in Deskhand."), "options": []any{
		map[string]any{"optionId": optionShow, "name": "Show Deskhand", "kind": "allow_once"},
		map[string]any{"optionId": optionDecline, "name": "Decline", "kind": "reject_once"},
	}}, s.readPointer(r)
}

// about adds the tool call that an elicitation belongs to.
func (s *shown) about(r asking, params map[string]any) map[string]any {
	if r.ToolCallID != "" {
		params["toolCallId"] = r.ToolCallID
	}
	return params
}

func optionsOf(list []option) []any {
	out := []any{}
	for _, o := range list {
		kind := o.Kind
		if !slices.Contains([]string{"allow_once", "allow_always", "reject_once", "reject_always"}, kind) {
			kind = "reject_once" // a word of an agent's that no editor takes; what it says is in its name
		}
		out = append(out, map[string]any{"optionId": o.ID, "name": cmp.Or(o.Label, o.Name), "kind": kind})
	}
	return out
}

// refusalsOf are the answers to what a directory would start: it may be left out in the editor, and is approved in Deskhand. Many editors can
// be told to allow whatever they are asked, which says nothing about a directory that somebody else has made.
func refusalsOf(list []option) []any {
	out := []any{map[string]any{"optionId": optionShow, "name": "Look at it in Deskhand", "kind": "allow_once"}}
	return append(out, optionsOf(slices.DeleteFunc(slices.Clone(list), func(o option) bool { return !strings.HasPrefix(o.Kind, "reject") }))...)
}

// readTrust is readOption for what may only be refused.
func (s *shown) readTrust(r asking) reader {
	return func(result json.RawMessage) map[string]any {
		id := chosen(result)
		if slices.ContainsFunc(r.Options, func(o option) bool { return o.ID == id && strings.HasPrefix(o.Kind, "reject") }) {
			return map[string]any{"optionId": id}
		}
		return s.readPointer(r)(result)
	}
}

// toolOf is the tool call that leave is asked for, as far as it is known.
func (s *shown) toolOf(r asking) map[string]any {
	shown := map[string]any{"toolCallId": r.ToolCallID, "title": r.Title}
	t := r.Tool
	if r.ToolCallID == "" {
		shown["toolCallId"] = r.ID
	}
	if t == nil {
		return shown
	}
	shown["kind"] = t.Kind
	if slices.Contains([]string{"pending", "in_progress", "completed", "failed"}, t.Status) {
		shown["status"] = t.Status
	}
	if len(t.Content) > 0 {
		shown["content"] = t.Content
		if programs := terminalsIn(t.Content); len(programs) > 0 && !s.mirror.takes.terminals {
			shown["content"] = s.mirror.rendered(&call{id: t.ToolCallID, content: t.Content, programs: programs})
		}
	}
	for name, raw := range map[string]json.RawMessage{"locations": t.Locations, "rawInput": t.RawInput, "rawOutput": t.RawOutput} {
		if len(raw) > 0 && string(raw) != "null" {
			shown[name] = raw
		}
	}
	return shown
}

// trustOf shows what would start beside the agent: all of it, since that is what a person judges by.
func trustOf(r asking) map[string]any {
	var text strings.Builder
	for _, x := range r.Executables {
		if !x.Approved {
			fmt.Fprintf(&text, "%s %s\n%s\n\n", x.Kind, x.Name, x.Detail)
		}
	}
	return pointer(r, strings.TrimSpace(r.Detail+"\n\n"+text.String()))
}

// pointer is a tool call that stands for a request which is about none.
func pointer(r asking, text string) map[string]any {
	return map[string]any{
		"toolCallId": r.ID, "title": r.Title, "kind": "other", "status": "pending",
		"content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": text}}},
	}
}

// field is the names of what a form asks for one question: a choice, and words of the person's own. One of them may be "".
type field struct{ choice, own string }

// questionForm is questions as a form, and its fields. Where a question takes other words than its options, these have a field beside the
// choice, since no form has a choice with room for them.
func questionForm(list []question) (schema any, fields []field) {
	properties, required := map[string]any{}, []string{}
	for i, q := range list {
		name := "answer" + strconv.Itoa(i+1)
		choices := []any{}
		for _, o := range q.Options {
			choice := map[string]any{"const": o.ID, "title": o.Label}
			if o.Description != "" {
				choice["description"] = o.Description
			}
			choices = append(choices, choice)
		}
		f := field{choice: name}
		switch {
		case len(choices) == 0:
			f = field{own: name}
			properties[name] = map[string]any{"type": "string", "title": q.Prompt, "minLength": 1}
		case q.MultiSelect:
			properties[name] = map[string]any{"type": "array", "title": q.Prompt, "items": map[string]any{"anyOf": choices}}
		default:
			properties[name] = map[string]any{"type": "string", "title": q.Prompt, "oneOf": choices}
		}
		switch {
		case len(choices) > 0 && q.AllowFreeText:
			f.own = name + "_own"
			properties[f.own] = map[string]any{"type": "string", "title": "Or in your own words", "description": q.Prompt}
		case len(choices) > 0 && q.MultiSelect:
			properties[name].(map[string]any)["minItems"] = 1
			required = append(required, name)
		default:
			required = append(required, name)
		}
		fields = append(fields, f)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}, fields
}

func chosen(result json.RawMessage) string {
	var m struct {
		Outcome struct{ Outcome, OptionID string }
	}
	if json.Unmarshal(result, &m) != nil || m.Outcome.Outcome != "selected" {
		return ""
	}
	return m.Outcome.OptionID
}

func readOption(result json.RawMessage) map[string]any {
	if id := chosen(result); id != "" {
		return map[string]any{"optionId": id}
	}
	return nil
}

type elicited struct {
	Action  string                     `json:"action"`
	Content map[string]json.RawMessage `json:"content"`
}

func readAction(result json.RawMessage) map[string]any {
	var m elicited
	if json.Unmarshal(result, &m) != nil || m.Action == "" {
		return nil
	}
	answer := map[string]any{"action": m.Action}
	if m.Action == "accept" && m.Content != nil {
		answer["content"] = m.Content
	}
	return answer
}

func readAnswers(result json.RawMessage, fields []field) map[string]any {
	var m elicited
	switch {
	case json.Unmarshal(result, &m) != nil || m.Action == "":
		return nil
	case m.Action != "accept":
		return map[string]any{"reject": true}
	}
	answers := [][]string{}
	for _, f := range fields {
		answers = append(answers, m.answer(f))
	}
	return map[string]any{"answers": answers}
}

// answer is what was answered to one question. Words of the person's own go beside several choices, and before a single one.
func (m *elicited) answer(f field) []string {
	var one, own string
	var many []string
	if json.Unmarshal(m.Content[f.choice], &many) != nil && json.Unmarshal(m.Content[f.choice], &one) == nil && one != "" {
		many = []string{one}
	}
	_ = json.Unmarshal(m.Content[f.own], &own) // there may be none
	switch {
	case own == "":
		return many
	case one != "":
		return []string{own}
	}
	return append(many, own)
}

// readPointer sends the person to Deskhand, or declines.
func (s *shown) readPointer(r asking) reader {
	return func(result json.RawMessage) map[string]any {
		switch chosen(result) {
		case optionShow:
			if err := s.e.desk.call(s.ctx, http.MethodPost, "activate", nil, nil); err != nil {
				s.e.tell("Deskhand has no window to be shown: open it, or see deskhand inbox")
			}
		case optionDecline:
			switch r.Kind {
			case "question":
				return map[string]any{"reject": true}
			case "form", "url":
				return map[string]any{"action": "decline"}
			}
			return map[string]any{"action": "cancel"}
		}
		return nil
	}
}

// answered takes the editor's answer. One that says nothing leaves the request to the others.
func (s *shown) answered(a *ask, read reader, result json.RawMessage, failure *acp.Error) {
	if s.asks[a.about.ID] != a {
		return // somebody else was first
	}
	if failure != nil {
		s.e.tell("the editor does not take the request %q: it waits in Deskhand (%s)", a.about.Title, failure.Sentence())
		return
	}
	answer := read(result)
	if answer == nil {
		return
	}
	delete(s.asks, a.about.ID)
	err := s.e.desk.call(s.ctx, http.MethodPost, "requests/"+url.PathEscape(a.about.ID)+"/answer", answer, nil)
	refused, _ := err.(*problem) //nolint:errorlint // desk wraps none
	switch {
	case err == nil, s.ctx.Err() != nil, refused != nil && refused.Code == "request.resolved":
	case refused != nil && refused.Status == http.StatusBadRequest && a.tries < maxTries:
		s.e.tell("the answer does not fit: %s", err)
		s.ask(a)
	default:
		s.e.tell("the answer was not taken: %s", err)
	}
}
