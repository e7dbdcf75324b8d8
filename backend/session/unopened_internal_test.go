package session

import (
	"testing"
	"time"
)

func TestAStartThatFailedLongAgoCountsNoMore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	list := []unopened{{"old", Time{now.Add(-61 * time.Minute)}}, {"new", Time{now.Add(-59 * time.Minute)}}, {"none", Time{}}}
	if got := unopenedLately(list, now); len(got) != 1 || got[0].Method != "new" || list[0].Method != "old" {
		t.Errorf("%v, of %v", got, list)
	}
}
