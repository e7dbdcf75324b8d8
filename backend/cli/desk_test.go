package cli

import (
	"encoding/json"
	"testing"
)

func TestValuesOfAForm(t *testing.T) {
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
