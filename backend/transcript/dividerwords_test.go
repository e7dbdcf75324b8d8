package transcript_test

import (
	"os"
	"regexp"
	"testing"

	"deskhand/backend/transcript"
)

// An export and the window have the same words for a change in the life of a conversation.
func TestDividerWordsAreThoseOfTheWindow(t *testing.T) {
	text, err := os.ReadFile("../../frontend/src/strings/en.ts")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`'divider\.([a-z_.]+)':\s+'(.+)',`).FindAllSubmatch(text, -1)
	if len(said) < 10 {
		t.Fatalf("only %d texts were found", len(said))
	}
	const agent = "{agent}" // as it stands there
	for _, s := range said {
		if code, want := string(s[1]), string(s[2]); code != "unknown" {
			if got := (&transcript.Divider{Code: code}).Words(agent); got != want {
				t.Errorf("Words of the divider %s: got %q, want %q as in the window", code, got, want)
			}
		}
	}
	moved := transcript.Divider{Code: "workspace.moved", Params: map[string]string{"from": "/old", "to": "/new"}}
	if got, want := moved.Words("Bot"), "The directory moved from /old to /new"; got != want {
		t.Errorf("Words of a moved workspace: got %q, want %q", got, want)
	}
	if got, want := (&transcript.Divider{Code: "later.known"}).Words("Bot"), "Session change: later.known"; got != want {
		t.Errorf("Words of an unknown divider: got %q, want %q", got, want)
	}
}
