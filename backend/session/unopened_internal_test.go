package session

import (
	"testing"
	"time"

	"deskhand/backend/transcript"
)

func TestFailedStartsOfLongAgoCountNoMore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	list := []transcript.FailedStart{{Method: "old", At: Time{Time: now.Add(-61 * time.Minute)}}, {Method: "new", At: Time{Time: now.Add(-59 * time.Minute)}}, {Method: "none", At: Time{}}}
	if got := unopenedLately(list, now); len(got) != 1 || got[0].Method != "new" || list[0].Method != "old" {
		t.Errorf("%v, of %v", got, list)
	}
}
