package session_test

import (
	"slices"
	"testing"

	"deskhand/backend/rulebook"
)

// A permission that asks for a choice waits for a person, whatever the rules allow, and the labels of its options do not mislead.
func TestChoiceIsAnsweredByNoRule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ask    step
		choice bool
		labels []string
	}{
		"four ways to go on": {
			asksPermission(commanding("git status"), option("a", "Alpha", "allow_once"), option("b", "Bravo", "allow_once"), option("c", "Charlie", "allow_once"), option("d", "Delta", "allow_once")),
			true,
			[]string{"Alpha", "Bravo", "Charlie", "Delta"},
		},
		"no way to say no": {
			asksPermission(commanding("git status"), option("a", "Postgres", "allow_once"), option("b", "SQLite", "allow_always")),
			true,
			[]string{"Postgres", "SQLite"},
		},
		"three buttons Reject": {
			asksPermission(commanding("git status"), option("a", "Reject", "allow_once"), option("b", "Reject", "allow_always"), option("c", "Reject", "reject_once")),
			true,
			[]string{"Reject (allows once)", "Reject (allows always)", "Reject (rejects once)"},
		},
		"questions that cannot be shown as such": {
			asksPermission(object{"rawInput": object{"command": "git status"}, "_meta": object{"qwenInteractionKind": "user_question", "qwenQuestions": []object{}}},
				option("a", "\u200b", "allow_once"), option("c", "Can\u202ecel", "reject_once")),
			true,
			[]string{"Allow once (no name given by the agent)", "Can[U+202E]cel"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := askingDesk(t, t.TempDir())
			id := d.asking()
			d.rule(rulebook.NewRule{Effect: "allow", Pattern: "git status"})
			tc.ask.Params["toolCall"].(object)["kind"] = "execute"
			d.begin(id, tc.ask)
			r := d.request(id)
			var got []string
			for _, o := range r.Options {
				got = append(got, o.Label)
			}
			if r.Choice != tc.choice || r.Status != "requested" || !slices.Equal(got, tc.labels) {
				t.Errorf("got a choice = %v, status %s, labels %q; want %v, requested, %q", r.Choice, r.Status, got, tc.choice, tc.labels)
			}
			if err := d.ReplyQuestion(t.Context(), id, r.ID, [][]string{{"a"}}, "api"); err != nil {
				t.Errorf("ReplyQuestion(%q) = %v, want nil: a choice is a question to programs", "a", err)
			}
			if heard := d.heard(id); chosen(heard[0]) != "a" {
				t.Errorf("the agent got %s, want the option a", heard[0].Result)
			}
		})
	}
}
