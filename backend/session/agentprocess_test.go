package session

import (
	"testing"
	"time"

	"deskhand/backend/agents"
)

func TestOpenLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		seconds  int
		equipped bool
		want     time.Duration
	}{
		{0, false, time.Minute},
		{120, false, 2 * time.Minute},
		{0, true, 5 * time.Minute},
		{120, true, 5 * time.Minute},
		{600, true, 10 * time.Minute},
		{30, false, 30 * time.Second},
	} {
		if got := openLimit(agents.Quirks{SessionSeconds: tc.seconds}, tc.equipped); got != tc.want {
			t.Errorf("openLimit(%d s, equipped %v) = %v, want %v", tc.seconds, tc.equipped, got, tc.want)
		}
	}
}

func TestUntilNextMinuteWaitsForQuirk(t *testing.T) {
	t.Parallel()
	minute := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return minute.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		begun, now time.Time
		want       time.Duration
	}{
		"same minute":         {at(5), at(20), 41 * time.Second},
		"its last moment":     {at(59.9), at(59.95), 1050 * time.Millisecond},
		"the next one":        {at(5), at(61), 0},
		"just in the next":    {at(59), at(60.2), 800 * time.Millisecond},
		"never":               {time.Time{}, at(5), 0},
		"a clock put back":    {at(500), at(5), 0},
		"long ago, to second": {at(-86400), at(5), 0},
	} {
		if got := untilNextMinute(c.begun, c.now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
