package requests

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// Requests that ask for a choice or a text are also questions, in the form that they had before this API: events, a list and two routes
// (the seed questions.md). A question has the agent's own id, if the agent gives one, and an id of Deskhand's. Deskhand's id is the
// request's id; with several questions, the request's id, a dot, and the question's number from 1. The agent's id of a request is numbered
// likewise where the questions have none of their own. A reply finds a question by either id; a reply by the request's id, Deskhand's or
// the agent's, answers all its questions at once. When an agent uses an id again, the id names the question that waits. Replies to single
// questions are kept in memory until the last has come, and then go to the agent together; an answer to the whole request before that wins.
// A rejection of a question rejects its request.

// QuestionEvent is the data of question.requested and question.resolved, which are sent only to readers that name these types.
type QuestionEvent struct {
	QuestionID string                `json:"question_id" doc:"The agent's own questionId, or else the request_id; where the request has several questions that have none of their own, with a dot and the number of this one, from 1"`
	RequestID  string                `json:"request_id" doc:"Our id of the question, which no other one has"`
	Prompt     string                `json:"prompt"`
	Options    []string              `json:"options" doc:"What a reply chooses from; empty where it is in one's own words"`
	Choices    []form.QuestionOption `json:"choices" doc:"The options, with what people read"`
	Response   *string               `json:"response" doc:"null until it is answered, then the first answer"`
	Status     string                `json:"status" enum:"requested,answered,rejected"`
	Reason     string                `json:"reason,omitempty" enum:"cancelled,expired" doc:"Why it is rejected, where no person did it: the agent took it back or its turn ended, or the agent ended"`
}

// WaitingQuestion is a waiting question in the inbox.
type WaitingQuestion struct {
	SessionID   string                `json:"session_id"`
	QuestionID  string                `json:"question_id"`
	RequestID   string                `json:"request_id"`
	Prompt      string                `json:"prompt"`
	Options     []string              `json:"options"`
	Choices     []form.QuestionOption `json:"choices"`
	MultiSelect bool                  `json:"multi_select,omitempty" doc:"Several options may be chosen"`
	FreeText    bool                  `json:"free_text,omitempty" doc:"Words that are no option are taken as well"`
	Kind        string                `json:"kind" enum:"permission,form,url,question" doc:"Of its request"`
	Agent       string                `json:"agent"`
	CreatedAt   record.Time           `json:"created_at"`
}

// asksOne is one question of a request.
type asksOne struct {
	Question

	field string // the form's field that the question fills
}

// asks returns the questions of a request; none for an approval, a trust request and a raw request.
func (r *Request) asks() []asksOne {
	switch r.Kind {
	case KindQuestion:
		list := make([]asksOne, len(r.Questions))
		for i, q := range r.Questions {
			list[i].Question = q
		}
		return list
	case KindForm:
		return r.formAsks()
	case KindURL:
		return []asksOne{{Question: Question{
			Prompt: stacked(r.Title, r.URL), Options: []form.QuestionOption{{ID: AcceptURL, Label: "Open " + r.Host, Description: r.URL}},
		}}}
	case KindPermission:
		if !r.IsChoice() {
			return nil
		}
		q := Question{Prompt: r.Title, Options: make([]form.QuestionOption, len(r.Options))}
		for i, o := range r.Options {
			q.Options[i] = form.QuestionOption{ID: o.ID, Label: o.Shown()}
		}
		return []asksOne{{Question: q}}
	}
	return nil
}

// formAsks returns one question for each field of a form.
func (r *Request) formAsks() []asksOne {
	fields, ok := form.Read(r.Schema)
	if !ok {
		return nil
	}
	var list []asksOne
	for _, f := range fields {
		if f.Beside != "" {
			continue
		}
		q := Question{
			Prompt: stacked(r.Title, f.Label(), f.Description), Options: f.Choices, MultiSelect: f.Kind == "array",
			AllowFreeText: f.Choices == nil && f.Kind != "boolean" || fields.Companion(f.Name) != "",
		}
		if f.Kind == "boolean" {
			q.Options = []form.QuestionOption{{ID: "true", Label: "true"}, {ID: "false", Label: "false"}}
		}
		list = append(list, asksOne{q, f.Name})
	}
	if len(list) == 0 { // a form without fields asks for consent
		list = []asksOne{{Question: Question{Prompt: r.Title, Options: []form.QuestionOption{{ID: "accept", Label: "accept"}}}}}
	}
	return list
}

// stacked joins texts by line breaks, each text once.
func stacked(texts ...string) string {
	var list []string
	for _, text := range texts {
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, "\n")
}

// questionID returns Deskhand's id of question i of so many.
func (r *Request) questionID(i, of int) string { return numbered(r.ID, i, of) }

// agentQuestionID returns the agent's own id of question i, or else Deskhand's.
func (r *Request) agentQuestionID(i, of int) string {
	if i < len(r.Questions) && r.Questions[i].ID != "" {
		return r.Questions[i].ID
	}
	return numbered(cmp.Or(r.QuestionID, r.ID), i, of)
}

func numbered(id string, i, of int) string {
	if of == 1 {
		return id
	}
	return id + "." + strconv.Itoa(i+1)
}

// part returns the number of the question that an id names, Deskhand's or the agent's; 0 is the whole request.
func (r *Request) part(id string) (part int, ok bool) {
	of := len(r.asks())
	if of == 0 || id == "" {
		return 0, false
	}
	if id == r.ID || id == r.QuestionID {
		return 0, true
	}
	for i := range of {
		if id == r.questionID(i, of) || id == r.agentQuestionID(i, of) {
			if of == 1 {
				return 0, true
			}
			return i + 1, true
		}
	}
	return 0, false
}

// QuestionEvents returns the events of a request as questions: that they wait, or how they ended.
func (r *Request) QuestionEvents() []QuestionEvent {
	asks := r.asks()
	events := make([]QuestionEvent, len(asks))
	for i, q := range asks {
		e := QuestionEvent{QuestionID: r.agentQuestionID(i, len(asks)), RequestID: r.questionID(i, len(asks)), Prompt: q.Prompt, Options: q.ids(), Choices: q.choices(), Status: r.Status}
		switch r.Status {
		case lifecycle.StatusCancelled, lifecycle.StatusExpired:
			e.Status, e.Reason = lifecycle.StatusRejected, r.Status
		case lifecycle.StatusAnswered:
			e.Response = r.response(i, q.field)
		}
		events[i] = e
	}
	return events
}

func (q Question) ids() []string {
	ids := make([]string, len(q.Options))
	for i, o := range q.Options {
		ids[i] = o.ID
	}
	return ids
}

// choices returns the options, never null.
func (q Question) choices() []form.QuestionOption {
	if q.Options == nil {
		return []form.QuestionOption{}
	}
	return q.Options
}

// response returns the first answer to a question; nil when the question was left out.
func (r *Request) response(i int, field string) *string {
	var a Answer
	if json.Unmarshal(r.Answer, &a) != nil {
		return nil
	}
	var given []string
	switch r.Kind {
	case KindQuestion:
		if i < len(a.Answers) {
			given = a.Answers[i]
		}
	case KindForm:
		given = r.filled(a.Content, field)
	case KindURL:
		given = []string{AcceptURL}
	default:
		given = []string{a.OptionID}
	}
	if len(given) == 0 {
		return nil
	}
	return &given[0]
}

// filled returns the value of a form's field, or else of the text field beside it.
func (r *Request) filled(content json.RawMessage, field string) []string {
	var values map[string]json.RawMessage
	if json.Unmarshal(content, &values) != nil {
		return nil
	}
	if field == "" {
		return []string{"accept"}
	}
	raw, ok := values[field]
	if fields, _ := form.Read(r.Schema); !ok {
		raw, ok = values[fields.Companion(field)]
	}
	var list []string
	var text string
	switch {
	case !ok:
	case json.Unmarshal(raw, &list) == nil:
	case json.Unmarshal(raw, &text) == nil:
		list = []string{text}
	default:
		list = []string{string(raw)} // a number, true or false
	}
	return list
}

// QuestionsOf returns the questions of requests, in order.
func QuestionsOf(requests []Request) []WaitingQuestion {
	list := []WaitingQuestion{}
	for i := range requests {
		r := &requests[i]
		asks := r.asks()
		for n, q := range asks {
			list = append(list, WaitingQuestion{
				SessionID: r.Session, QuestionID: r.agentQuestionID(n, len(asks)), RequestID: r.questionID(n, len(asks)), Prompt: q.Prompt, Options: q.ids(), Choices: q.choices(),
				MultiSelect: q.MultiSelect, FreeText: q.AllowFreeText, Kind: r.Kind, Agent: r.Agent, CreatedAt: r.CreatedAt,
			})
		}
	}
	return list
}

// checkPart checks an answer to one of several questions.
func (r *Pending) checkPart(q asksOne, given []string) error {
	if r.Kind == KindForm {
		fields, _ := form.Read(r.Schema)
		return fields.CheckAnswer(q.field, given)
	}
	one := Pending{Request: Request{Questions: []Question{q.Question}}}
	_, _, err := one.respondQuestion(Answer{Answers: [][]string{given}})
	return err
}

// fromLists returns the answer that lists of option ids or texts give to a request.
func (r *Pending) fromLists(answers [][]string) (Answer, error) {
	first := ""
	if len(answers) > 0 && len(answers[0]) > 0 {
		first = answers[0][0]
	}
	switch r.Kind {
	case KindQuestion:
		return Answer{Answers: answers}, nil
	case KindForm:
		fields, _ := form.Read(r.Schema)
		if len(fields) > 0 {
			content, err := fields.Content(answers)
			return Answer{Action: "accept", Content: content}, err
		}
		if first == "accept" {
			return Answer{Action: first, Content: json.RawMessage(`{}`)}, nil
		}
	case KindURL:
		if first == AcceptURL {
			return Answer{Action: first}, nil
		}
	case KindPermission:
		if i := form.Choice(r.asks()[0].Options, first); i >= 0 {
			return Answer{OptionID: r.Options[i].ID}, nil
		}
	}
	return Answer{}, refusal.Bad("answer.unknown_option", "optionId", first)
}

// Rejection returns the answer that rejects a request; for a permission without an option to reject, an answer with an unknown option.
func (r *Request) Rejection() Answer {
	switch r.Kind {
	case KindQuestion:
		return Answer{Reject: true}
	case KindForm, KindURL:
		return Answer{Action: "decline"}
	}
	a := Answer{}
	for _, kind := range []string{"reject_always", "reject_once"} { // the last one found counts
		if i := slices.IndexFunc(r.Options, func(o Option) bool { return o.Kind == kind }); i >= 0 {
			a.OptionID = r.Options[i].ID
		}
	}
	return a
}

// Labels returns the labels of chosen options.
func (q *Question) Labels(chosen []string) []string {
	out := slices.Clone(chosen)
	for i, id := range out {
		for _, o := range q.Options {
			if o.ID == id {
				out[i] = o.Label
			}
		}
	}
	return out
}
