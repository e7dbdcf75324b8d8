package requests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"deskhand/backend/acp"
	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// Pending is a request that waits for an answer. A request that outlived its agent process has no key, and can only be ended.
type Pending struct {
	Request
	Key     acp.Key
	AgentID json.RawMessage // the agent's id, as sent
	Method  string
	asked   *permissionQuestion // set for a question that was sent as a permission
	parts   map[int][]string    // answers to single questions of the request, by number from 1, until all are answered
	partBy  string              // the surface that answered the last of parts
	Ended   chan<- Request      // set for a request of Deskhand's own tools: receives the end of the request in place of the agent
}

// ReadQuestion reads the extension's params: one question, or a list of questions; options as pairs of id and label, or as labels. Texts
// that people read go through clean; ids stay as they are, since the answer consists of ids.
func (r *Pending) ReadQuestion(params json.RawMessage, clean func(string) string) bool {
	type question struct {
		QuestionID    json.RawMessage   `json:"questionId"`
		Prompt        acp.Text          `json:"prompt"`
		Question      acp.Text          `json:"question"`
		Options       []json.RawMessage `json:"options"`
		MultiSelect   acp.Flag          `json:"multiSelect"`
		AllowFreeText acp.Flag          `json:"allowFreeText"`
	}
	var p struct {
		question
		Questions []question `json:"questions"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	r.QuestionID = readQuestionID(p.QuestionID, clean)
	if len(p.Questions) == 0 {
		p.QuestionID = nil // the id belongs to the request
		p.Questions = []question{p.question}
	}
	for _, q := range p.Questions {
		shown := Question{Prompt: string(cmp.Or(q.Prompt, q.Question)), MultiSelect: bool(q.MultiSelect), AllowFreeText: bool(q.AllowFreeText), Options: []form.QuestionOption{}}
		shown.ID, shown.Prompt = readQuestionID(q.QuestionID, clean), clean(shown.Prompt)
		for _, raw := range q.Options {
			if o, ok := readOption(raw); ok {
				o.Label, o.Description = clean(o.Label), clean(o.Description)
				shown.Options = append(shown.Options, o)
			}
		}
		if len(shown.Options) == 0 {
			shown.AllowFreeText = true // without options the only possible answer is text
		}
		r.Questions = append(r.Questions, shown)
	}
	r.Kind, r.Title = KindQuestion, r.Questions[0].Prompt
	return r.Title != ""
}

// readQuestionID returns the agent's own id of a question, a string or a number; "" when a program could not name the question by it.
func readQuestionID(raw json.RawMessage, clean func(string) string) string {
	const longest = 200
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &number) == nil:
		text = number.String()
	}
	if len(text) > longest || strings.ContainsFunc(text, unicode.IsControl) || clean(text) != text {
		return ""
	}
	return text
}

// readOption reads an option of a question: a label, a pair of id and label, or an object.
func readOption(raw json.RawMessage) (form.QuestionOption, bool) {
	var label acp.Text
	_ = label.UnmarshalJSON(raw) // never fails
	var pair []acp.Text
	if label == "" && json.Unmarshal(raw, &pair) == nil && len(pair) > 0 {
		return form.QuestionOption{ID: string(pair[0]), Label: string(pair[len(pair)-1])}, pair[0] != ""
	}
	var o struct{ ID, Label, Description acp.Text }
	if label == "" && json.Unmarshal(raw, &o) != nil {
		return form.QuestionOption{}, false
	}
	id := cmp.Or(o.ID, o.Label, label)
	return form.QuestionOption{ID: string(id), Label: string(cmp.Or(o.Label, id)), Description: string(o.Description)}, id != ""
}

// TooLate returns the refusal of an answer to a request that has ended: who answered, or how the request ended, as found in the database;
// see [Client.first].
func TooLate(found Request) error {
	if found.Status == lifecycle.StatusRequested { // the request has outlived its agent process
		found.Status = lifecycle.StatusExpired
	}
	params := map[string]string{"status": found.Status, "answeredBy": found.AnsweredBy}
	if found.ResolvedAt != nil {
		params["resolvedAt"] = found.ResolvedAt.UTC().Format(record.TimeLayout)
	}
	return &refusal.Error{Code: lifecycle.RefusedNotOpen, Params: params}
}

// Respond checks an answer, and returns the result to send to the agent; a nil result stands for an error response.
func (r *Pending) Respond(a Answer) (status string, result any, err error) {
	switch r.Kind {
	case KindPermission:
		i := slices.IndexFunc(r.Options, func(o Option) bool { return o.ID == a.OptionID })
		if i < 0 {
			return "", nil, refusal.Bad("answer.unknown_option", "optionId", a.OptionID)
		}
		status = lifecycle.StatusAnswered
		if strings.HasPrefix(r.Options[i].Kind, "reject") {
			status = lifecycle.StatusRejected
		}
		return status, r.Selected(a.OptionID), nil
	case KindForm:
		return r.respondForm(a)
	case KindURL:
		return r.respondURL(a)
	case KindQuestion:
		status, result, err = r.respondQuestion(a)
		if err == nil && r.asked != nil {
			result = r.asked.result(status, a.Answers)
		}
		return status, result, err
	}
	if a.Action != "cancel" {
		return "", nil, refusal.Bad("answer.only_cancel")
	}
	switch r.Method {
	case "elicitation/create":
		return lifecycle.StatusRejected, map[string]any{"action": "cancel"}, nil
	case "session/request_permission":
		return lifecycle.StatusRejected, permissionCancelled(), nil
	}
	return lifecycle.StatusRejected, nil, nil
}

// Selected returns the result of a permission that was answered by an option, whose id is written as the agent wrote it.
func (r *Pending) Selected(option string) any {
	var id any = option
	if slices.ContainsFunc(r.Options, func(o Option) bool { return o.ID == option && o.Number }) {
		id = json.Number(option)
	}
	return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": id}}
}

// permissionCancelled returns the result of a permission that was neither given nor refused.
func permissionCancelled() any {
	return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}
}

func (r *Pending) respondForm(a Answer) (string, any, error) {
	switch a.Action {
	case "decline", "cancel":
		return lifecycle.StatusRejected, map[string]any{"action": a.Action}, nil
	case "accept":
	default:
		return "", nil, refusal.Bad("answer.no_action")
	}
	if err := form.Check(r.Schema, a.Content); err != nil {
		return "", nil, refusal.Bad("answer.invalid", "detail", err.Error())
	}
	return lifecycle.StatusAnswered, map[string]any{"action": "accept", "content": a.Content}, nil
}

// respondQuestion checks the answer to each question of a request.
func (r *Pending) respondQuestion(a Answer) (string, any, error) {
	if a.Reject || a.Action == "decline" || a.Action == "cancel" {
		return lifecycle.StatusRejected, map[string]any{"status": "rejected"}, nil
	}
	if len(a.Answers) != len(r.Questions) {
		return "", nil, refusal.Bad("answer.count", "want", fmt.Sprint(len(r.Questions)), "have", fmt.Sprint(len(a.Answers)))
	}
	for i, q := range r.Questions {
		chosen := a.Answers[i]
		if len(chosen) == 0 || len(chosen) > 1 && !q.MultiSelect && !q.AllowFreeText {
			return "", nil, refusal.Bad("answer.choose", "question", q.Prompt)
		}
		for _, id := range chosen {
			known := slices.ContainsFunc(q.Options, func(o form.QuestionOption) bool { return o.ID == id })
			if !known && !q.AllowFreeText {
				return "", nil, refusal.Bad("answer.unknown_option", "optionId", id)
			}
		}
	}
	return lifecycle.StatusAnswered, map[string]any{"status": "answered", "answers": a.Answers}, nil
}

// respondURL responds to an address: accept means that the person agreed to open the address, and carries no content.
func (r *Pending) respondURL(a Answer) (string, any, error) {
	switch a.Action {
	case "accept":
		return lifecycle.StatusAnswered, map[string]any{"action": a.Action}, nil
	case "decline", "cancel":
		return lifecycle.StatusRejected, map[string]any{"action": a.Action}, nil
	}
	return "", nil, refusal.Bad("answer.no_action")
}

// Resume makes a stored request answerable again, from the agent's message that made the request.
func (r *Pending) Resume(raw json.RawMessage, clean func(string) string) bool {
	env, err := acp.Peek(raw)
	if err != nil || env.Kind != acp.Request {
		return false
	}
	r.AgentID, r.Key, r.Method = slices.Clone(env.ID), env.Key(), env.Method()
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	if p, err := acp.ParsePermission(m.Params); r.Method == "session/request_permission" && r.Kind == KindQuestion && err == nil {
		for _, o := range p.Options {
			r.Options = append(r.Options, Option{ID: o.ID, Name: o.Name, Kind: o.Kind})
		}
		r.ReadAsked(p.ToolCall, clean)
	}
	return true
}

// Cancelled returns the result to send to the agent for a request that was cancelled before anybody answered; a nil result stands for an
// error response.
func (r *Pending) Cancelled() any {
	switch {
	case r.Method == "session/request_permission":
		return permissionCancelled()
	case r.Method == "elicitation/create":
		return map[string]any{"action": "cancel"}
	case r.Kind == KindQuestion:
		return map[string]any{"status": "rejected"}
	}
	return nil
}

// Reply makes the answer of lists of option ids or texts; part is the number of the question that the only list is for, or 0 for all questions.
// Reply keeps the list of one question, and returns whole = false, until the last list has come.
func (r *Pending) Reply(part int, answers [][]string, surface string) (a Answer, whole bool, err error) {
	if part == 0 {
		a, err = r.fromLists(answers)
		return a, err == nil, err
	}
	if _, answered := r.parts[part]; answered {
		return a, false, &refusal.Error{Code: lifecycle.RefusedNotOpen, Params: map[string]string{"status": lifecycle.StatusAnswered, "answeredBy": r.partBy}}
	}
	if len(answers) != 1 || len(answers[0]) == 0 {
		return a, false, refusal.Bad("answer.count", "want", "1", "have", strconv.Itoa(len(answers)))
	}
	asks := r.asks()
	all := make([][]string, len(asks))
	for i := range all {
		all[i] = r.parts[i+1]
	}
	all[part-1] = answers[0]
	if slices.ContainsFunc(all, func(list []string) bool { return list == nil }) {
		if err := r.checkPart(asks[part-1], answers[0]); err != nil {
			return a, false, err
		}
		if r.parts == nil {
			r.parts = map[int][]string{}
		}
		r.parts[part], r.partBy = answers[0], surface
		return a, false, nil
	}
	a, err = r.fromLists(all)
	return a, err == nil, err
}
