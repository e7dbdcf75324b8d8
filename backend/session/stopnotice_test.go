package session_test

import (
	"strings"
	"testing"

	"deskhand/backend/session"
)

// The transcript tells why an agent ended a turn before it was finished.
func TestTurnThatEndsEarlySaysWhy(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string]string{
		"limit":     "cut off",
		"refuse":    "refuses to go on",
		"echo done": "",
	} {
		turn := d.prompt(s.ID, prompt)
		got := ""
		for _, e := range d.idle(s.ID).Items {
			if e.Kind == "notice" && e.Turn == turn.ID {
				got += e.Notice.Title
			}
		}
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got the notice %q, want %q in it", prompt, got, want)
		}
	}
	d.sameAsRebuilt(s.ID)
}
