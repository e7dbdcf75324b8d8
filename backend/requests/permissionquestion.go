package requests

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
)

// permissionQuestion is a question that an agent sent as a permission, because it has no other way to ask: Qwen puts its questions into the
// tool call's _meta, and expects the answers beside the outcome. Shown as a permission, the question could be allowed without an answer.
type permissionQuestion struct {
	allow, reject string // ids of options; reject may be absent
}

// ReadAsked makes a question of a permission that holds one.
func (r *Pending) ReadAsked(toolCall json.RawMessage, clean func(string) string) {
	var m struct {
		Meta struct {
			Kind      string            `json:"qwenInteractionKind"`
			Questions []json.RawMessage `json:"qwenQuestions"`
		} `json:"_meta"`
	}
	optionOf := func(kind string) string {
		i := slices.IndexFunc(r.Options, func(o Option) bool { return o.Kind == kind })
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
	if !r.ReadQuestion(record.JSON(map[string]any{"questions": m.Meta.Questions}), clean) {
		r.Request = before
		return
	}
	for i := range r.Questions {
		r.Questions[i].AllowFreeText = true // Qwen's own terminal accepts any text, too
	}
	r.asked, r.Options, r.Choice = q, []Option{}, false
}

// result returns the answer in the form that the agent expects: the chosen labels of each question as one text, under the question's
// number.
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
