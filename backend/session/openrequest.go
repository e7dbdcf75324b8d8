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

// What an agent asks of a person, by kind. Every request that is not answered at once is one of these; nothing hangs unseen.
const (
	kindPermission = "permission" // session/request_permission
	kindForm       = "form"       // elicitation/create, mode form
	kindURL        = "url"        // elicitation/create, mode url
	kindQuestion   = "question"   // _sandboxagent/session/request_question
	kindTrust      = "trust"      // ours: what a directory would start beside the agent
	kindRaw        = "raw"        // a method that nobody knows, or a form that cannot be shown: dismissed, never guessed
)

// openRequest is a request that waits. One that outlived its process has no key and is only there to be ended.
type openRequest struct {
	Request
	key    acp.Key
	id     json.RawMessage // the agent's id, as it came
	method string
	asked  *permissionQuestion // of a question that came as a permission
	parts  map[int][]string    // answers to single ones of its questions, by their numbers from 1, while others wait
	partBy string              // who gave the last of them
	ended  chan<- Request      // of one of our own tools: hears what has become of it, in place of the agent
}

// refusedAtOnce are the requests that must not keep a turn waiting, of whatever agent: extensions of the protocol, and what we did not
// advertise. What single agents ask beyond that is among their quirks.
func refusedAtOnce(method string) bool {
	for _, prefix := range []string{"_", "fs/", "terminal/"} {
		if strings.HasPrefix(method, prefix) {
			return true
		}
	}
	return false
}

// metaOf is the _meta of a tool call.
func metaOf(toolCall json.RawMessage) json.RawMessage {
	var call struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(toolCall, &call) // a tool call of another shape has none
	return call.Meta
}

// showable tells whether there is a control for every property of a form.
func showable(schema json.RawMessage) bool {
	_, ok := form.Read(schema)
	return ok
}

// readQuestion reads the extension: one question, or several at once; options as pairs of id and label, or as labels. What people
// read goes through clean; ids stay as they are, since they are the answer.
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
		p.QuestionID = nil // it is the request's
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
			shown.AllowFreeText = true // else nobody could answer
		}
		r.Questions = append(r.Questions, shown)
	}
	r.Kind, r.Title = kindQuestion, r.Questions[0].Prompt
	return r.Title != ""
}

// readQuestionID is the agent's own id of a question, a text or a number; "" where a program could not name the question by it.
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

// tooLate tells who was first, or what became of a request, as it was found; see [Client.first].
func tooLate(found Request) error {
	if found.Status == lifecycle.StatusRequested { // it has outlived its process
		found.Status = lifecycle.StatusExpired
	}
	params := map[string]string{"status": found.Status, "answeredBy": found.AnsweredBy}
	if found.ResolvedAt != nil {
		params["resolvedAt"] = found.ResolvedAt.UTC().Format(timeLayout)
	}
	return &RefusedError{Code: lifecycle.RefusedNotOpen, Params: params}
}

// respond checks an answer and gives what it means to the agent; a nil result is an error response.
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

// permissionCancelled is the answer to a permission that nobody has given or turned down.
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

// respondURL: to accept is to have agreed that the address is opened, and carries no content.
func (r *openRequest) respondURL(a Answer) (string, any, error) {
	switch a.Action {
	case "accept":
		return lifecycle.StatusAnswered, map[string]any{"action": a.Action}, nil
	case "decline", "cancel":
		return lifecycle.StatusRejected, map[string]any{"action": a.Action}, nil
	}
	return "", nil, bad("answer.no_action")
}
