package transcript_test

import (
	"strings"
	"testing"

	"deskhand/backend/transcript"
)

func TestStopNotice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason          string
		answered, files bool
		want            string // a part of the notice
	}{
		"done":                        {"end_turn", true, false, ""},
		"stopped by a person":         {"cancelled", true, false, ""},
		"an answer that is cut off":   {"max_tokens", true, true, "The answer is cut off"},
		"a message that is too long":  {"max_tokens", false, false, "Send less of it"},
		"files that are too large":    {"max_tokens", false, true, "Send smaller files"},
		"too many steps":              {"max_turn_requests", true, false, "as often as it may"},
		"a refusal":                   {"refusal", false, false, "Nova refuses"},
		"a reason that nobody knows":  {"of_tomorrow", false, false, ""},
		"the end of the agent itself": {"agent_exited", false, false, ""},
	} {
		n := transcript.StopNotice(c.reason, "Nova", c.answered, c.files)
		if (n != nil) != (c.want != "") || n != nil && !strings.Contains(n.Title+": "+n.Description, c.want) {
			t.Errorf("%s: got %+v, want %q in it", name, n, c.want)
		}
	}
}
