package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
)

// A rule allows no text of which only the beginning is shown: a person is asked.
func TestRuleAllowsNothingByBeginningOfText(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	for _, n := range []rulebook.NewRule{
		{Effect: "allow", Kind: "execute", Pattern: "echo **"},
		{Effect: "allow", Kind: "read", Pattern: "**"},
		{Effect: "allow", Kind: "search", Pattern: "**"},
	} {
		d.rule(n)
	}
	id := d.asking()
	long := strings.Repeat("x", 70_000)
	deep := strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000)
	for _, call := range map[string]map[string]any{
		"a command":        commanding("echo " + long + "; id"),
		"an argument":      {"kind": "execute", "rawInput": map[string]any{"command": []string{"echo", long + "; id"}}},
		"a path":           {"kind": "read", "rawInput": map[string]any{"path": "src/" + long + "/../../../secret"}},
		"a search":         {"kind": "search", "rawInput": map[string]any{"path": "src", "pattern": long + "/../../*"}},
		"a directory":      {"kind": "execute", "rawInput": map[string]any{"command": "echo x", "cwd": "src/" + long + "/../.."}},
		"a change, nested": {"kind": "read", "rawInput": map[string]any{"path": "a.txt"}, "content": []any{json.RawMessage(`{"type":"diff","path":"b.txt","newText":"x","more":` + deep + `}`)}},
	} {
		d.begin(id, permit(call))
		d.answer(d.request(id), requests.Answer{OptionID: "reject_once-2"})
		d.idle(id)
	}
}
