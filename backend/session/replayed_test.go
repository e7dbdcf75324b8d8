package session_test

import (
	"strings"
	"testing"

	"deskhand/backend/session"
)

// A history that comes after the answer to session/load is neither shown nor searched, and is not taken for the answer to a waiting prompt.
func TestHistoryAfterTheAnswerToLoad(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"load late", "load late otherwise"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			forgetfulAgent(t, dir, words)
			d := open(t, dir)
			s, err := d.Create(t.Context(), session.New{Agent: "forgetful", Cwd: d.work})
			if err != nil {
				t.Fatal(err)
			}
			asked := []string{"the first kelpfern", "the second"}
			for _, text := range asked {
				d.prompt(s.ID, text)
				d.idle(s.ID)
			}
			for _, text := range []string{"after a restart", "after another"} {
				d.close()
				d = open(t, dir)
				asked = append(asked, text)
				d.prompt(s.ID, text)
				d.idle(s.ID)
			}
			var told []string
			answers := 0
			for _, e := range d.transcript(s.ID).Items {
				switch e.Kind {
				case "user":
					told = append(told, e.Text)
				case "agent":
					answers++
				}
			}
			if got, want := strings.Join(told, "; "), strings.Join(asked, "; "); got != want || answers != len(asked) {
				t.Errorf("got the messages %q and %d answers, want %q and %d", got, answers, want, len(asked))
			}
			mustComeBeforeThePrompt(t, d, s.ID)
			if found := d.found("kelpfern"); len(found.Items) != 1 {
				t.Errorf("Find(kelpfern): got %q, want the message once", hits(found))
			}
			d.sameAsRebuilt(s.ID)
		})
	}
}

// mustComeBeforeThePrompt fails the test when a person's message came from the agent after a prompt of the same start was sent.
func mustComeBeforeThePrompt(t *testing.T, d *desk, id string) {
	t.Helper()
	prompted, came := false, 0
	d.frames(id, func(dir string, data []byte) {
		switch text := string(data); {
		case dir == "out" && strings.Contains(text, `"session/load"`):
			prompted = false
		case dir == "out" && strings.Contains(text, `"session/prompt"`):
			prompted = true
		case dir == "in" && strings.Contains(text, "user_message_chunk"):
			came++
			if prompted {
				t.Errorf("%s came after the prompt", text)
			}
		}
	})
	if came == 0 {
		t.Error("no history came")
	}
}

// Messages that an agent sends by itself after it has loaded a session without replaying it are shown.
func TestWordsAfterALoadWithoutHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "load wakes silent")
	d := open(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "forgetful", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "one")
	d.idle(s.ID)
	d.close()
	d = open(t, dir)
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.until("the words", func() bool { return strings.Contains(textOf(d.transcript(s.ID), "agent"), "slept well") })
	d.prompt(s.ID, "two")
	d.sameAsRebuilt(s.ID)
}
