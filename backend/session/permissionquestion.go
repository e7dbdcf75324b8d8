package session

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/lifecycle"
)

// permissionQuestion is a question that came as a request for permission, because its agent knows no other way to ask: Qwen puts its
// questions into the tool call's _meta, and wants the answers beside the outcome. Shown as a permission it could be allowed, and the model
// would hear that nothing was answered.
type permissionQuestion struct {
	allow, reject string // ids of options; reject may be absent
}

// readAsked makes a permission that is such a question one.
func (r *openRequest) readAsked(toolCall json.RawMessage, clean func(string) string) {
	var m struct {
		Meta struct {
			Kind      string            `json:"qwenInteractionKind"`
			Questions []json.RawMessage `json:"qwenQuestions"`
		} `json:"_meta"`
	}
	optionOf := func(kind string) string {
		i := slices.IndexFunc(r.Options, func(o RequestOption) bool { return o.Kind == kind })
		if i < 0 {
			return ""
		}
		return r.Options[i].ID
	}
	q := &permissionQuestion{optionOf("allow_once"), optionOf("reject_once")}
	if json.Unmarshal(toolCall, &m) != nil || m.Meta.Kind != "user_question" || len(m.Meta.Questions) == 0 || q.allow == "" {
		return
	}
	before := r.Request
	if !readQuestion(r, mustJSON(map[string]any{"questions": m.Meta.Questions}), clean) {
		r.Request = before
		return
	}
	for i := range r.Questions {
		r.Questions[i].AllowFreeText = true // its own terminal takes any text, too
	}
	r.asked, r.Options, r.Choice = q, []RequestOption{}, false
}

// result is the answer as the agent wants it: the chosen labels of a question as one text, under its number.
func (q *permissionQuestion) result(status string, answers [][]string) any {
	if status != lifecycle.StatusAnswered {
		if q.reject == "" {
			return permissionCancelled()
		}
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": q.reject}}
	}
	texts := map[string]string{}
	for i, chosen := range answers {
		texts[strconv.Itoa(i)] = strings.Join(chosen, ", ")
	}
	return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": q.allow}, "answers": texts}
}
