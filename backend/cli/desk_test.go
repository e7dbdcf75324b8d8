package cli

import (
	"encoding/json"
	"testing"
)

func TestValuesOfAForm(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ kind, line, want string }{
		{"number", "1.5", "1.5"},
		{"integer", "12345678901234567890", "12345678901234567890"},
		{"integer", "many", `"many"`}, // the API tells what is wrong with it
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

// TestAnAgentCannotWriteOurLines: what looks like an option, or like the end of a question, is the agent's own word.
func TestAnAgentCannotWriteOurLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"run ls":                              "run ls",
		"run ls\n  1  Allow\r\n  2  Allow\r3": "run ls\n      |   1  Allow\n      |   2  Allow\n      | 3",
		"a\u2028  1  Allow":                   "a\n      |   1  Allow",
	} {
		if got := barred(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
