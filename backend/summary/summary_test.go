package summary

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"deskhand/backend/form"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
)

func user(text string) transcript.Entry  { return transcript.Entry{Kind: "user", Text: text} }
func agent(text string) transcript.Entry { return transcript.Entry{Kind: "agent", Text: text} }
func edit(status, path string) transcript.Entry {
	return transcript.Entry{Kind: "tool", Tool: &transcript.ToolCall{Kind: "edit", Status: status, Content: []json.RawMessage{record.JSON(map[string]string{"type": "diff", "path": path, "newText": "x"})}}}
}

// ended is how the last turn of a conversation ended.
type ended struct {
	state, reason string
	failure       *transcript.TurnError
}

func TestSummaryFitsADraft(t *testing.T) {
	huge := strings.Repeat("All work and no play makes Jack a dull boy.\n", 10_000)
	arabic := strings.Repeat("أصلح الخطأ في المُحَلِّل من فضلك. ", 400)
	thousand := make([]transcript.Entry, 0, 3000)
	for i := range 1000 {
		thousand = append(thousand, user(fmt.Sprintf("message %d", i+1)), edit("completed", fmt.Sprintf("/work/src/file%d.go", i)), agent(fmt.Sprintf("answer %d", i+1)))
	}
	question := requests.Request{Kind: requests.KindQuestion, Status: lifecycle.StatusAnswered, Title: "Which colour?", Questions: []requests.Question{{Prompt: "Which colour?", Options: []form.QuestionOption{{ID: "b", Label: "Blue"}}}}, Answer: record.JSON(requests.Answer{Answers: [][]string{{"b"}}})}
	permission := requests.Request{Kind: requests.KindPermission, Status: lifecycle.StatusRejected, Title: "rm -rf build", Options: []requests.Option{{ID: "no", Kind: "reject_once"}}, Answer: record.JSON(requests.Answer{OptionID: "no"})}
	once := requests.Request{Kind: requests.KindPermission, Status: lifecycle.StatusAnswered, Title: "ls", Options: []requests.Option{{ID: "yes", Kind: "allow_once"}}, Answer: record.JSON(requests.Answer{OptionID: "yes"})}

	for name, tc := range map[string]struct {
		entries  []transcript.Entry
		requests []requests.Request
		turn     *ended
		want     []string
		not      []string
	}{
		"empty": {want: []string{"Nothing was said"}, not: []string{"##"}},
		"one turn": {
			entries: []transcript.Entry{
				user("Mend the parser\nand its test"),
				{Kind: "thought", Text: "hm, a secret thought"},
				{Kind: "plan", Plan: []transcript.PlanItem{{Content: "Look", Status: "completed"}, {Content: "Mend", Status: "in_progress"}, {Content: "Test", Status: "pending"}}},
				edit("completed", "/work/src/parser.go"), edit("failed", "/work/src/never.go"), edit("completed", "/elsewhere/a`b.go"),
				{Kind: "file", File: &transcript.FileChange{Path: "/work/new.go"}},
				agent("I looked."), agent("**Done.**\n\nAll tests pass."),
			},
			requests: []requests.Request{question, permission, once},
			turn:     &ended{"done", lifecycle.StopCancelled, nil},
			want: []string{
				"with Claude Code in `/work`, “Parser”", "> Mend the parser\n> and its test\n", "- Which colour? → Blue\n- rm -rf build → refused\n",
				"- [x] Look\n- [ ] (in progress) Mend\n- [ ] Test\n", "- `src/parser.go`\n- `/elsewhere/a'b.go`\n- `new.go`\n",
				"## Last answer\n\n> **Done.**\n>\n> All tests pass.\n", "was stopped",
			},
			not: []string{"secret thought", "never.go", "I looked", "- ls"},
		},
		"1,000 turns": {
			entries: thousand,
			want:    []string{"> message 1\n", "> message 1000\n", "> message 989\n", "(987 more messages)", "`src/file999.go`", "more)", "> answer 1000\n"},
			not:     []string{"> message 2\n", "`src/file0.go`"},
		},
		"huge messages": {
			entries: []transcript.Entry{user(huge), agent(huge), user("then\x00 " + huge), user(huge), user("and go on"), agent(strings.Repeat("x", 300_000))},
			want:    []string{"> All work", "> and go on\n", "…"},
		},
		"right to left": {
			entries: []transcript.Entry{user(arabic), agent(arabic), user("ثم اختبره")},
			want:    []string{"> أصلح", "> ثم اختبره\n"},
		},
		"huge lists": {
			entries: []transcript.Entry{
				user("go"),
				{Kind: "plan", Plan: append(many(200, "completed"), many(200, "pending")...)},
				edit("completed", "/work/"+strings.Repeat("d/", 5000)+"x"),
			},
			requests: manyRequests(question, 500),
			turn:     &ended{"done", lifecycle.StopError, &transcript.TurnError{Message: strings.Repeat("bad ", 9000)}},
			want:     []string{"- [x] … (200 more)", "more)\n- Which colour? → Blue\n", "ended with an error: bad"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := New("Claude Code", "Parser", "/work")
			for i := range tc.entries {
				h.Add(&tc.entries[i])
			}
			for i := range tc.requests {
				h.Decide(&tc.requests[i])
			}
			if tc.turn != nil {
				h.End(tc.turn.state, tc.turn.reason, tc.turn.failure)
			}
			got := h.Markdown()
			if len(got) > Limit || !utf8.ValidString(got) {
				t.Errorf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(got, not) {
					t.Errorf("%q is there", not)
				}
			}
			if t.Failed() {
				t.Log(got)
			}
		})
	}
}

func many(n int, status string) (plan []transcript.PlanItem) {
	for i := range n {
		plan = append(plan, transcript.PlanItem{Content: fmt.Sprintf("step %d", i), Status: status})
	}
	return plan
}

func manyRequests(r requests.Request, n int) (list []requests.Request) {
	for range n {
		list = append(list, r)
	}
	return list
}

func TestSummaryCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short":                  "short",
		"exactly ten":            "exactly…",
		"abcdefe\u0301\u0301xyz": "abcdef…", // combining marks stay with their character
		"äöüäöüäöü":              "äöü…",
		"eins zwei drei":         "eins zw…",
	} {
		if got := cut(text, 10); got != want || len(got) > 10 {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}
