package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"deskhand/backend/acp"
	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
)

// The kinds of requests that wait for a person. Every request of an agent that is not answered at once has one of these kinds, so that none
// waits unseen.
const (
	kindPermission = "permission" // session/request_permission
	kindForm       = "form"       // elicitation/create, mode form
	kindURL        = "url"        // elicitation/create, mode url
	kindQuestion   = "question"   // _sandboxagent/session/request_question
	kindTrust      = "trust"      // of Deskhand itself: what a directory would start beside the agent
	kindRaw        = "raw"        // an unknown method, or a form that cannot be shown: a person can only dismiss it
)

// openRequest is a request that waits for an answer. A request that outlived its agent process has no key, and can only be ended.
type openRequest struct {
	Request
	key    acp.Key
	id     json.RawMessage // the agent's id, as sent
	method string
	asked  *permissionQuestion // set for a question that was sent as a permission
	parts  map[int][]string    // answers to single questions of the request, by number from 1, until all are answered
	partBy string              // the surface that answered the last of parts
	ended  chan<- Request      // set for a request of Deskhand's own tools: receives the end of the request in place of the agent
}

// refusedAtOnce reports whether a method is refused for all agents, so that the request does not hold up a turn: unknown extensions of the
// protocol, and methods that this client does not advertise. Methods that single agents ask for beyond that are among their quirks.
func refusedAtOnce(method string) bool {
	for _, prefix := range []string{"_", "fs/", "terminal/"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

// metaOf returns the _meta of a tool call.
func metaOf(toolCall json.RawMessage) json.RawMessage {
	var call struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(toolCall, &call) // a tool call of another form has no _meta
	return call.Meta
}

// showable reports whether every property of a form has a control.
func showable(schema json.RawMessage) bool {
	_, ok := form.Read(schema)
	return ok
}

// readQuestion reads the extension's params: one question, or a list of questions; options as pairs of id and label, or as labels. Texts
// that people read go through clean; ids stay as they are, since the answer consists of ids.
func readQuestion(r *openRequest, params json.RawMessage, clean func(string) string) bool {
	type question struct {
		QuestionID    json.RawMessage   `json:"questionId"`
		Prompt        string            `json:"prompt"`
		Question      string            `json:"question"`
		Options       []json.RawMessage `json:"options"`
		MultiSelect   bool              `json:"multiSelect"`
		AllowFreeText bool              `json:"allowFreeText"`
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
		shown := Question{Prompt: q.Prompt, MultiSelect: q.MultiSelect, AllowFreeText: q.AllowFreeText, Options: []form.QuestionOption{}}
		if shown.Prompt == "" {
			shown.Prompt = q.Question
		}
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
	r.Kind, r.Title = kindQuestion, r.Questions[0].Prompt
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
	var label string
	if json.Unmarshal(raw, &label) == nil {
		return form.QuestionOption{ID: label, Label: label}, label != ""
	}
	var pair []string
	if json.Unmarshal(raw, &pair) == nil && len(pair) > 0 {
		return form.QuestionOption{ID: pair[0], Label: pair[len(pair)-1]}, pair[0] != ""
	}
	var o form.QuestionOption
	if json.Unmarshal(raw, &o) != nil {
		return o, false
	}
	if o.ID == "" {
		o.ID = o.Label
	}
	if o.Label == "" {
		o.Label = o.ID
	}
	return o, o.ID != ""
}

// tooLate returns the refusal of an answer to a request that has ended: who answered, or how the request ended, as found in the database;
// see [Client.first].
func tooLate(found Request) error {
	if found.Status == lifecycle.StatusRequested { // the request has outlived its agent process
		found.Status = lifecycle.StatusExpired
	}
	params := map[string]string{"status": found.Status, "answeredBy": found.AnsweredBy}
	if found.ResolvedAt != nil {
		params["resolvedAt"] = found.ResolvedAt.UTC().Format(timeLayout)
	}
	return &RefusedError{Code: lifecycle.RefusedNotOpen, Params: params}
}

// respond checks an answer, and returns the result to send to the agent; a nil result stands for an error response.
func (r *openRequest) respond(a Answer) (status string, result any, err error) {
	switch r.Kind {
	case kindPermission:
		i := slices.IndexFunc(r.Options, func(o RequestOption) bool { return o.ID == a.OptionID })
		if i < 0 {
			return "", nil, bad("answer.unknown_option", "optionId", a.OptionID)
		}
		status = lifecycle.StatusAnswered
		if strings.HasPrefix(r.Options[i].Kind, "reject") {
			status = lifecycle.StatusRejected
		}
		return status, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": a.OptionID}}, nil
	case kindForm:
		return r.respondForm(a)
	case kindURL:
		return r.respondURL(a)
	case kindQuestion:
		status, result, err = r.respondQuestion(a)
		if err == nil && r.asked != nil {
			result = r.asked.result(status, a.Answers)
		}
		return status, result, err
	}
	if a.Action != "cancel" {
		return "", nil, bad("answer.only_cancel")
	}
	switch r.method {
	case "elicitation/create":
		return lifecycle.StatusRejected, map[string]any{"action": "cancel"}, nil
	case "session/request_permission":
		return lifecycle.StatusRejected, permissionCancelled(), nil
	}
	return lifecycle.StatusRejected, nil, nil
}

// permissionCancelled returns the result of a permission that was neither given nor refused.
func permissionCancelled() any {
	return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}
}

func (r *openRequest) respondForm(a Answer) (string, any, error) {
	switch a.Action {
	case "decline", "cancel":
		return lifecycle.StatusRejected, map[string]any{"action": a.Action}, nil
	case "accept":
	default:
		return "", nil, bad("answer.no_action")
	}
	if err := form.Check(r.Schema, a.Content); err != nil {
		return "", nil, bad("answer.invalid", "detail", err.Error())
	}
	return lifecycle.StatusAnswered, map[string]any{"action": "accept", "content": a.Content}, nil
}

// respondQuestion checks the answer to each question of a request.
func (r *openRequest) respondQuestion(a Answer) (string, any, error) {
	if a.Reject || a.Action == "decline" || a.Action == "cancel" {
		return lifecycle.StatusRejected, map[string]any{"status": "rejected"}, nil
	}
	if len(a.Answers) != len(r.Questions) {
		return "", nil, bad("answer.count", "want", fmt.Sprint(len(r.Questions)), "have", fmt.Sprint(len(a.Answers)))
	}
	for i, q := range r.Questions {
		chosen := a.Answers[i]
		if len(chosen) == 0 || len(chosen) > 1 && !q.MultiSelect && !q.AllowFreeText {
			return "", nil, bad("answer.choose", "question", q.Prompt)
		}
		for _, id := range chosen {
			known := slices.ContainsFunc(q.Options, func(o form.QuestionOption) bool { return o.ID == id })
			if !known && !q.AllowFreeText {
				return "", nil, bad("answer.unknown_option", "optionId", id)
			}
		}
	}
	return lifecycle.StatusAnswered, map[string]any{"status": "answered", "answers": a.Answers}, nil
}

// respondURL responds to an address: accept means that the person agreed to open the address, and carries no content.
func (r *openRequest) respondURL(a Answer) (string, any, error) {
	switch a.Action {
	case "accept":
		return lifecycle.StatusAnswered, map[string]any{"action": a.Action}, nil
	case "decline", "cancel":
		return lifecycle.StatusRejected, map[string]any{"action": a.Action}, nil
	}
	return "", nil, bad("answer.no_action")
}
