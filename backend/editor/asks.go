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

// A request of an agent waits in Deskhand's inbox, where every surface can answer the request. The editor is asked at the same time; the first
// answer counts, and when another surface was first the editor's dialog is withdrawn. For a request that the editor cannot show, the editor
// gets a permission whose options lead to Deskhand.

// ask is a request that is open in the editor.
type ask struct {
	id    json.RawMessage // the request's id at the editor
	about asking
	tries int
}

// The options of a request that the editor cannot show.
const (
	optionShow    = "deskhand-show"
	optionDecline = "deskhand-decline"
	optionLeave   = "deskhand-leave" // answers nothing
)

// maxTries limits how often the editor is asked again after an invalid answer.
const maxTries = 3

// requested handles a request or the end of a request.
func (s *shown) requested(r asking) {
	switch {
	case r.Status != "requested":
		s.resolved(r.ID)
	case s.asks[r.ID] == nil:
		s.ask(&ask{about: r})
	}
}

// resolved withdraws the dialog of a request that was answered elsewhere.
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

// reader converts the editor's answer into Deskhand's answer. A reader returns nil when the editor gave no answer.
type reader func(result json.RawMessage) map[string]any

func (s *shown) form(r asking) (method string, params map[string]any, read reader) {
	t := s.mirror.takes
	switch {
	case r.Kind == "permission" && r.Clipped:
		call := pointer(r, "This is too long to be shown here: not all of it is shown. Look at it in Deskhand, which shows all of it, or reject it.")
		return "session/request_permission", map[string]any{"toolCall": call, "options": refusalsOf(r.Options)}, s.readTrust(r)
	case r.Kind == "permission" && r.Choice:
		return "session/request_permission", map[string]any{"toolCall": s.toolOf(r), "options": choicesOf(r.Options)}, s.readChosen(r)
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
		offer(optionShow, "Show Deskhand", "allow_once"), offer(optionDecline, "Decline", "reject_once"),
	}}, s.readPointer(r)
}

// about adds the tool call that an elicitation belongs to.
func (s *shown) about(r asking, params map[string]any) map[string]any {
	if r.ToolCallID != "" {
		params["toolCallId"] = r.ToolCallID
	}
	return params
}

// offer is an option of a permission at the editor.
func offer(id, name, kind string) map[string]any {
	return map[string]any{"optionId": id, "name": name, "kind": kind}
}

func optionsOf(list []option) []any {
	out := []any{}
	for _, o := range list {
		kind := o.Kind
		if !slices.Contains([]string{"allow_once", "allow_always", "reject_once", "reject_always"}, kind) {
			kind = "reject_once" // no editor knows the agent's kind; the option's name says its effect
		}
		out = append(out, offer(o.ID, cmp.Or(o.Label, o.Name), kind))
	}
	return out
}

// refusalsOf are the options for a directory's executables: the editor may leave them out, and only Deskhand may approve them. Many editors
// can be set to allow every permission, and such an answer is no judgement about a foreign directory.
func refusalsOf(list []option) []any {
	out := []any{offer(optionShow, "Look at it in Deskhand", "allow_once")}
	return append(out, optionsOf(slices.DeleteFunc(slices.Clone(list), func(o option) bool { return !strings.HasPrefix(o.Kind, "reject") }))...)
}

// readTrust is readOption for requests that the editor may only refuse.
func (s *shown) readTrust(r asking) reader {
	return func(result json.RawMessage) map[string]any {
		id := chosen(result)
		if slices.ContainsFunc(r.Options, func(o option) bool { return o.ID == id && strings.HasPrefix(o.Kind, "reject") }) {
			return map[string]any{"optionId": id}
		}
		return s.readPointer(r)(result)
	}
}

// toolOf is the known part of the tool call that needs permission.
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

// trustOf shows all executables that would start beside the agent, since a person judges by their content.
func trustOf(r asking) map[string]any {
	var text strings.Builder
	for _, x := range r.Executables {
		if !x.Approved {
			fmt.Fprintf(&text, "%s %s\n%s\n\n", x.Kind, x.Name, x.Detail)
		}
	}
	return pointer(r, strings.TrimSpace(r.Detail+"\n\n"+text.String()))
}

// pointer is a tool call in place of a request that belongs to no tool call.
func pointer(r asking, text string) map[string]any {
	return map[string]any{
		"toolCallId": r.ID, "title": r.Title, "kind": "other", "status": "pending",
		"content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": text}}},
	}
}

// field names the form's fields for a question: the choice, and the person's own words. Either name may be empty.
type field struct{ choice, own string }

// questionForm turns questions into a form and its fields. A question that takes own words gets a second field for them, since no choice of a
// form has room for own words.
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

// answer is the answer to a question. Own words are added to several choices, and replace a single choice.
func (m *elicited) answer(f field) []string {
	var one, own string
	var many []string
	if json.Unmarshal(m.Content[f.choice], &many) != nil && json.Unmarshal(m.Content[f.choice], &one) == nil && one != "" {
		many = []string{one}
	}
	_ = json.Unmarshal(m.Content[f.own], &own) // the field may be absent
	switch {
	case own == "":
		return many
	case one != "":
		return []string{own}
	}
	return append(many, own)
}

// readPointer opens Deskhand for the person, or declines the request.
func (s *shown) readPointer(r asking) reader {
	return func(result json.RawMessage) map[string]any {
		switch chosen(result) {
		case optionShow:
			if err := s.e.client.call(s.ctx, http.MethodPost, "activate", nil, nil); err != nil {
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

// answered handles the editor's answer. An empty answer leaves the request to the other surfaces.
func (s *shown) answered(a *ask, read reader, result json.RawMessage, failure *acp.Error) {
	if s.asks[a.about.ID] != a {
		return // another surface was first
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
	err := s.e.client.call(s.ctx, http.MethodPost, "requests/"+url.PathEscape(a.about.ID)+"/answer", answer, nil)
	refused, _ := err.(*problem) //nolint:errorlint // client wraps no problem
	switch {
	case err == nil, s.ctx.Err() != nil, refused != nil && refused.Code == "request.resolved":
	case refused != nil && refused.Status == http.StatusBadRequest && a.tries < maxTries:
		s.e.tell("the answer does not fit: %s", err)
		s.ask(a)
	default:
		s.e.tell("the answer was not taken: %s", err)
	}
}
