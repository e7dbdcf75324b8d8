package permission_test

import (
	"encoding/json"
	"slices"
	"testing"

	"deskhand/backend/permission"
)

func options(pairs ...string) []permission.Option {
	var list []permission.Option
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, permission.Option{Name: pairs[i], Kind: pairs[i+1]})
	}
	return list
}

func TestIsChoiceNeedsPersonForUnclearOptions(t *testing.T) {
	const (
		once, always   = permission.AllowOnce, permission.AllowAlways
		reject, denied = permission.RejectOnce, permission.RejectAlways
	)
	usual := options("Allow", once, "Always", always, "Reject", reject)
	for name, tc := range map[string]struct {
		permission.Request
		want bool
	}{
		"the usual three":                         {permission.Request{Options: usual}, false},
		"all four kinds":                          {permission.Request{Options: append(options("Never", denied), usual...)}, false},
		"Gemini's two ways to allow for ever":     {permission.Request{Options: append(options("Always allow server", always), usual...)}, false},
		"Codex's and Claude's noes":               {permission.Request{Options: options("Yes, proceed", once, "No, and tell Codex what to do differently", reject, "No, exit", reject)}, false},
		"for ever or not at all":                  {permission.Request{Options: options("Always allow rm", always, "Reject", reject)}, false},
		"one button that allows":                  {permission.Request{Options: options("Yes", once)}, false},
		"one button that rejects":                 {permission.Request{Options: options("No", reject)}, false},
		"four ways to go on":                      {permission.Request{Options: options("Alpha", once, "Bravo", once, "Charlie", once, "Delta", once)}, true},
		"two ways to go on and a no":              {permission.Request{Options: options("Alpha", once, "Bravo", once, "No", reject)}, true},
		"two ways for ever and a no":              {permission.Request{Options: options("Alpha", always, "Bravo", always, "No", reject)}, true},
		"no option that rejects":                  {permission.Request{Options: options("Postgres", once, "SQLite", always)}, true},
		"a kind of the agent's own":               {permission.Request{Options: append(options("Edit it", "amend"), usual...)}, true},
		"a no that allows":                        {permission.Request{Options: options("Reject", once, "Reject", reject)}, true},
		"a no with blanks that are not seen":      {permission.Request{Options: options("\u200bNo, thanks", once, "Stop", reject)}, true},
		"a yes that rejects answers nobody":       {permission.Request{Options: options("Go", once, "Allow", reject)}, false},
		"a name that only looks like a no":        {permission.Request{Options: options("Notify and go on", once, "Node, always", always, "Reject", reject)}, false},
		"a plan by its kind":                      {permission.Request{Options: usual, ToolKind: "switch_mode"}, true},
		"a plan in its input":                     {permission.Request{Options: usual, RawInput: json.RawMessage(`{"plan":"1. think"}`)}, true},
		"questions in its input":                  {permission.Request{Options: usual, RawInput: json.RawMessage(`{"questions":[]}`)}, true},
		"questions beside it":                     {permission.Request{Options: usual, Meta: json.RawMessage(`{"qwenQuestions":[{"question":"?"}]}`)}, true},
		"a question by what its agent calls it":   {permission.Request{Options: usual, Meta: json.RawMessage(`{"qwenInteractionKind":"user_question"}`)}, true},
		"a question and its options in its input": {permission.Request{Options: usual, RawInput: json.RawMessage(`{"question":"Which database?","options":["a","b"]}`)}, true},
		"a question to a search":                  {permission.Request{Options: usual, RawInput: json.RawMessage(`{"question":"Which database?"}`)}, false},
		"an answer of each kind":                  {permission.Request{Options: options("Postgres", once, "SQLite", always, "Neither", reject)}, true},
		"an answer of each kind and a cancel":     {permission.Request{Options: options("Postgres", once, "SQLite", always, "Cancel", reject)}, true},
		"Claude's edits":                          {permission.Request{Options: options("Yes", once, "Yes, allow all edits during this session", always, "No", reject)}, false},
		"leave for a session":                     {permission.Request{Options: options("Run it", once, "During this session", always, "No", reject)}, false},
		"leave in another language":               {permission.Request{Options: options("允许", once, "本次会话", always, "拒绝", reject)}, false},
		"leave for ever without a name":           {permission.Request{Options: options("Allow", once, "", always, "No", reject)}, false},
		"once that is always":                     {permission.Request{Options: options("Always allow", once, "No", reject)}, true},
		"once that asks nobody again":             {permission.Request{Options: options("Yes, and don’t ask again", once, "No", reject)}, true},
		"once in the words of a hallway":          {permission.Request{Options: options("Immerse hallways", once, "No", reject)}, false},
		"another _meta":                           {permission.Request{Options: usual, Meta: json.RawMessage(`{"qwenInteractionKind":"tool"}`), RawInput: json.RawMessage(`"text"`)}, false},
	} {
		if got := permission.IsChoice(tc.Request); got != tc.want {
			t.Errorf("%s: got a choice = %v, want %v: %+v", name, got, tc.want, tc.Request)
		}
	}
}

func TestLabelsNameEffectOfMisleadingOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		options []permission.Option
		want    []string
	}{
		"names that say what they do": {
			options("Allow once", "allow_once", "Yes, and don't ask again", "allow_always", "No, keep planning", "reject_once", "Cancel", "reject_always"),
			[]string{"Allow once", "Yes, and don't ask again", "No, keep planning", "Cancel"},
		},
		"three buttons Reject, of which two allow": {
			options("Reject", "allow_once", "reject ", "allow_always", "Reject", "reject_once"),
			[]string{"Reject (allows once)", "reject (allows always)", "Reject (rejects once)"},
		},
		"two buttons Reject, both allow": {
			options("Reject", "allow_once", "Reject", "allow_once"), []string{"Reject (allows once)", "Reject (allows once)"},
		},
		"a yes that rejects": {options("✅ Allow", "reject_once", "Fine", "allow_once"), []string{"✅ Allow (rejects once)", "Fine"}},
		"alike but for what is not seen": {
			options("Go\u200b", "allow_once", "go", "reject_once"), []string{"Go[U+200B] (allows once)", "go (rejects once)"},
		},
		"no names": {
			options("", "allow_once", " ", "allow_always", "\u200b\u2060", "reject_once", "\u202e", "reject_always", "", "other"),
			[]string{
				"Allow once (no name given by the agent)", "Allow always (no name given by the agent)", "Reject once (no name given by the agent)",
				"Reject always (no name given by the agent)", "No name and no known kind given by the agent",
			},
		},
		"alike, one of a kind of the agent's own": {
			options("Do", "x", "Do", "allow_once"), []string{"Do (of a kind that Deskhand does not know)", "Do (allows once)"},
		},
		"turned round, and a line of its own": {options("\u202etcejeR", "allow_once", "a\x1b[2J", "reject_once"), []string{"[U+202E]tcejeR", "a[U+001B][2J"}},
		"other scripts":                       {options("拒绝", "allow_once", "允许", "reject_once", "Нет, спасибо", "allow_once"), []string{"拒绝 (allows once)", "允许 (rejects once)", "Нет, спасибо (allows once)"}},
	} {
		if got := permission.Labels(tc.options); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestRevealKeepsWhatIsSeen(t *testing.T) {
	for text, want := range map[string]string{
		"a b\tc\nd ❤️ ü": "a b\tc\nd ❤️ ü", "a\u200bb\u202ec\r": "a[U+200B]b[U+202E]c[U+000D]", "\u00a0\u3164\U000e0041": "[U+00A0][U+3164][U+E0041]",
	} {
		if got := permission.Reveal(text); got != want || permission.Hides(text) != (want != text) {
			t.Errorf("Reveal(%q) = %q, Hides = %v, want %q", text, got, permission.Hides(text), want)
		}
	}
}
