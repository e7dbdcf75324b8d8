// Package requests holds what agents ask people: permissions, forms, addresses to open, questions, and the answers to each. The records of a
// request, whether an answer fits a request, and what is sent to the agent for the answer are told by this package alone, as is the older form
// of the API in which a request is a number of questions. The table request belongs to the package.
//
// The package knows no conversation: package session opens requests, ends them and sends the answers.
package requests

import (
	"encoding/json"
	"slices"

	"deskhand/backend/form"
	"deskhand/backend/launch"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/rulebook"
	"deskhand/backend/transcript"
)

// The kinds of requests that wait for a person. Every request of an agent that is not answered at once has one of these kinds, so that none
// waits unseen.
const (
	KindPermission = "permission" // session/request_permission
	KindForm       = "form"       // elicitation/create, mode form
	KindURL        = "url"        // elicitation/create, mode url
	KindQuestion   = "question"   // _sandboxagent/session/request_question
	KindTrust      = "trust"      // of Deskhand itself: what a directory would start beside the agent
	KindRaw        = "raw"        // an unknown method, or a form that cannot be shown: a person can only dismiss it
)

// AcceptURL is the option of a question that opens an address.
const AcceptURL = "accept"

// Request is a request of an agent to a person, and its end.
type Request struct {
	ID          string               `json:"id"`
	Session     string               `json:"session"`
	Turn        string               `json:"turn,omitempty"`
	Generation  int64                `json:"generation"`
	Kind        string               `json:"kind" enum:"permission,form,url,question,raw,trust"`
	Agent       string               `json:"agent" doc:"The agent's name, to be shown"`
	Title       string               `json:"title"`
	Detail      string               `json:"detail,omitempty"`
	ToolCallID  string               `json:"toolCallId,omitempty" doc:"The tool call a permission is for; its entry holds diff and command"`
	Tool        *transcript.ToolCall `json:"tool,omitempty" doc:"That tool call as the request told it"`
	Options     []Option             `json:"options" doc:"Of a permission: exactly what the agent offers, in its order"`
	Clipped     bool                 `json:"clipped,omitempty" doc:"Of a permission: not all of its tool call is in this record; requests/{id}/parts has all of what is decided"`
	Frame       int64                `json:"frame,omitempty" doc:"Of a permission: the number of its message in the session's journal"`
	Told        int64                `json:"told,omitempty" doc:"Of a permission: the number of the message in which its tool call was first told"`
	Choice      bool                 `json:"choice,omitempty" doc:"Of a permission: it asks how to go on, and not whether to, so that only a person answers it: no rule, no flag, and no button that allows without a look at the options"`
	Schema      json.RawMessage      `json:"schema,omitempty" doc:"Of a form: the JSON Schema asked for"`
	Questions   []Question           `json:"questions,omitempty" doc:"Of a question"`
	QuestionID  string               `json:"questionId,omitempty" doc:"Of a question: the agent's own id of it"`
	URL         string               `json:"url,omitempty" doc:"Of an address to open: the whole of it, as a browser gets it"`
	Host        string               `json:"host,omitempty" doc:"Where it leads: the name in ASCII, with its port"`
	HostUnicode string               `json:"hostUnicode,omitempty" doc:"How that name may be shown elsewhere, with punycode"`
	Punycode    bool                 `json:"punycode,omitempty" doc:"Its name is not ASCII, and may look like another one"`
	Raw         json.RawMessage      `json:"raw,omitempty" doc:"Of a raw request: the whole message"`
	Executables []launch.Executable  `json:"executables,omitempty" doc:"Of a trust request: what waits to be approved"`
	Status      string               `json:"status" enum:"requested,answered,rejected,cancelled,expired"`
	Answer      json.RawMessage      `json:"answer,omitempty" doc:"What was answered: {optionId}, {action,content} or {answers}"`
	AnsweredBy  string               `json:"answeredBy,omitempty" doc:"The surface: window, native, browser, cli, editor, discord, api; rule, where nobody was asked; agent, where it said itself that it is done"`
	Rule        *Rule                `json:"rule,omitempty" doc:"The rule that has answered it"`
	CreatedAt   record.Time          `json:"createdAt"`
	ResolvedAt  *record.Time         `json:"resolvedAt,omitempty"`

	ElicitationID string       `json:"elicitationId,omitempty" doc:"Of an address to open: the agent's name for what is to be done there"`
	CompletedAt   *record.Time `json:"completedAt,omitempty" doc:"When the agent said that it is done there"`
}

// Option is an option of a permission.
type Option struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind" doc:"allow_once, allow_always, reject_once, reject_always, or what the agent sent"`

	Number bool `json:"-"` // the agent wrote the id as a number

	Label string `json:"label,omitempty" doc:"The name as people should read it: unseen characters are written by their numbers, a missing name is made of the kind, and what the option does stands beside a name that would mislead about it"`
}

// Question is one question of a request of kind question.
type Question struct {
	ID            string                `json:"id,omitempty" doc:"The agent's own id of this question, where it has asked several at once and gives each one"`
	Prompt        string                `json:"prompt"`
	Options       []form.QuestionOption `json:"options"`
	MultiSelect   bool                  `json:"multiSelect,omitempty"`
	AllowFreeText bool                  `json:"allowFreeText,omitempty"`
}

// Answer is a person's answer to a request. Exactly one field is set: OptionID (permission), Action (form, url; raw: only cancel) or
// Answers (question: one list of option ids or texts for each question), or Reject, which rejects a question.
type Answer struct {
	OptionID string          `json:"optionId,omitempty"`
	Action   string          `json:"action,omitempty" enum:"accept,decline,cancel"`
	Content  json.RawMessage `json:"content,omitempty" doc:"With accept: an object that fits the schema"`
	Answers  [][]string      `json:"answers,omitempty"`
	Reject   bool            `json:"reject,omitempty"`

	Remember *rulebook.Remember `json:"remember,omitempty" doc:"Of a permission: makes a rule of the answer. The agent is answered for once then, where it offers that"`
	Note     string             `json:"note,omitempty" maxLength:"10000" doc:"Of a permission that is rejected: words that the agent gets as a message, within the turn where it takes that, else as the next prompt"`
}

// Rule names the rule that has answered a request.
type Rule struct {
	ID     string `json:"id"`
	Effect string `json:"effect" enum:"allow,deny"`
	Text   string `json:"text"`
}

// AnswerLists returns the lists of option ids or texts that a question was answered with; nil for a question without an answer.
func (r *Request) AnswerLists() [][]string {
	var a Answer
	if r.Status != lifecycle.StatusAnswered || json.Unmarshal(r.Answer, &a) != nil {
		return nil
	}
	return a.Answers
}

// Option returns the id of the first option of a kind, or "".
func (r *Request) Option(kind string) string {
	i := slices.IndexFunc(r.Options, func(o Option) bool { return o.Kind == kind })
	if i < 0 {
		return ""
	}
	return r.Options[i].ID
}
