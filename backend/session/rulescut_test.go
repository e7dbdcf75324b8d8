package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/session"
)

// A text of which only the beginning is shown is not what would be done: nothing is allowed by it.
func TestNothingIsAllowedByTheBeginningOfAText(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	for _, n := range []session.NewRule{
		{Effect: "allow", Kind: "execute", Pattern: "echo **"},
		{Effect: "allow", Kind: "read", Pattern: "**"},
		{Effect: "allow", Kind: "search", Pattern: "**"},
		{Effect: "allow", Kind: "edit", Pattern: "**"},
		{Effect: "allow", Kind: "fetch", Pattern: "x.example"},
	} {
		d.rule(n)
	}
	id := d.asking()
	long := strings.Repeat("x", 70_000)
	deep := strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000)
	for name, call := range map[string]map[string]any{
		"a command":        commanding("echo " + long + "; id"),
		"an argument":      {"kind": "execute", "rawInput": map[string]any{"command": []string{"echo", long + "; id"}}},
		"a path":           {"kind": "read", "rawInput": map[string]any{"path": "src/" + long + "/../../../secret"}},
		"a search":         {"kind": "search", "rawInput": map[string]any{"path": "src", "pattern": long + "/../../*"}},
		"an address":       {"kind": "fetch", "rawInput": map[string]any{"url": "https://x.example/" + long}},
		"a directory":      {"kind": "execute", "rawInput": map[string]any{"command": "echo x", "cwd": "src/" + long + "/../.."}},
		"a change, nested": {"kind": "read", "rawInput": map[string]any{"path": "a.txt"}, "content": []any{json.RawMessage(`{"type":"diff","path":"b.txt","newText":"x","more":` + deep + `}`)}},
	} {
		d.begin(id, permit(call))
		r := d.request(id)
		if list, err := d.SuggestRules(t.Context(), r.ID); err != nil || len(list.Suggestions) > 0 {
			t.Errorf("%s: got the suggestions %+v (%v), want none", name, list.Suggestions, err)
		}
		d.answer(r, session.Answer{OptionID: "reject_once-2"})
		d.idle(id)
	}
}
