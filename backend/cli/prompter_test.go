package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend"
)

func TestPromptFormValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ kind, line, want string }{
		{"number", "1.5", "1.5"},
		{"integer", "12345678901234567890", "12345678901234567890"},
		{"integer", "many", `"many"`}, // the API says why the value is wrong
		{"number", "true", `"true"`},
		{"number", "null", `"null"`},
		{"boolean", "Yes", "true"},
		{"boolean", "0", "false"},
		{"array", "a, b", `["a","b"]`},
		{"string", "7", `"7"`},
	} {
		got, err := json.Marshal(value(tc.kind, tc.line))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s %q: %s %v, want %s", tc.kind, tc.line, got, err, tc.want)
		}
	}
}

// TestPromptAgentCannotWriteOurLines: an agent's text that looks like an option, or like the end of a question, stays recognisable as the agent's.
func TestPromptAgentCannotWriteOurLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"run ls":                              "run ls",
		"run ls\n  1  Allow\r\n  2  Allow\r3": "run ls\n      |   1  Allow\n      |   2  Allow\n      | 3",
		"a\u2028  1  Allow":                   "a\n      |   1  Allow",
	} {
		if got := barred(text); got != want {
			t.Errorf("%q: got %q, want %v", text, got, want)
		}
	}
}

// TestPromptInputBeforeQuestionIsNoAnswer: a key already on its way when a question, a form's item or an unshowable request appears answers
// none of them.
func TestPromptInputBeforeQuestionIsNoAnswer(t *testing.T) {
	t.Parallel()
	options := []backend.QuestionOption{{ID: "a", Label: "A"}, {ID: "b", Label: "B"}}
	type at struct {
		after time.Duration
		text  string
	}
	for name, tc := range map[string]struct {
		r     backend.Request
		typed []at
		want  string
	}{
		"questions": {
			backend.Request{Kind: "question", Questions: []backend.Question{{Prompt: "one", Options: options}, {Prompt: "two", Options: options}}},
			[]at{{100 * time.Millisecond, "2"}, {time.Second, "1"}, {1100 * time.Millisecond, ""}, {2 * time.Second, "2"}},
			`{"answers":[["a"],["b"]]} after 2s`,
		},
		"form": {
			backend.Request{Kind: "form", Schema: json.RawMessage(`{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)},
			[]at{{100 * time.Millisecond, "early"}, {time.Second, "x"}, {1100 * time.Millisecond, "!"}, {2 * time.Second, "y"}},
			`{"action":"accept","content":{"a":"x","b":"y"}} after 2s`,
		},
		"raw": {backend.Request{Kind: "raw"}, []at{{100 * time.Millisecond, ""}, {time.Second, ""}}, `{"action":"cancel"} after 1s`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &prompter{t: &terminalTurn{p: &Program{Stderr: io.Discard}}, lines: make(chan typed, len(tc.typed)), terminal: true}
				begun := time.Now()
				go func() {
					for _, line := range tc.typed {
						time.Sleep(time.Until(begun.Add(line.after)))
						d.lines <- typed{line.text, time.Now()}
					}
				}()
				answer, ok := d.read1(t.Context(), tc.r)
				took := time.Since(begun)
				text, err := json.Marshal(answer)
				if got := fmt.Sprintf("%s after %s", text, took); err != nil || !ok || got != tc.want {
					t.Errorf("got %s, ok %v, error %v, want no error, ok and %v", got, ok, err, tc.want)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}
