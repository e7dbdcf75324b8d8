package cli

import (
	"testing"
	"time"
)

func TestInboxTellsWhoWasFirst(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 12, 30, 5, 0, time.Local)
	for want, params := range map[string]map[string]string{
		"too late: it was answered in Discord, at 2026-11-28 12:30:05": {"status": "answered", "answeredBy": "discord", "resolvedAt": at.UTC().Format(time.RFC3339Nano)},
		"too late: it was answered in the window":                      {"status": "answered", "answeredBy": "window"},
		"too late: it was rejected in a dialog of the system":          {"status": "rejected", "answeredBy": "native"},
		"too late: it was answered by a rule":                          {"status": "answered", "answeredBy": "rule"},
		"too late: it was answered":                                    {"status": "answered"},
		"too late: the agent took it back":                             {"status": "cancelled"},
		"too late: its agent has ended":                                {"status": "expired"},
	} {
		if got := resolved(params); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
