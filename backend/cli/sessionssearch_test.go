package cli

import (
	"testing"
	"time"
)

// TestSessionsSearchByDays: days are those of the person's time zone, as in the window. The last day counts as a whole, and a day with a clock change
// has its true length.
func TestSessionsSearchByDays(t *testing.T) {
	for zone, want := range map[string][2]string{
		"Pacific/Auckland": {"2026-09-26T12:00:00Z", "2026-09-27T11:00:00Z"}, // the clock goes forward
		"America/New_York": {"2026-09-27T04:00:00Z", "2026-09-28T04:00:00Z"},
		"UTC":              {"2026-09-27T00:00:00Z", "2026-09-28T00:00:00Z"},
	} {
		place, err := time.LoadLocation(zone)
		if err != nil {
			t.Skip("no time zones here: ", err)
		}
		var c sessionsSearch
		for _, d := range []*day{&c.From, &c.To} {
			if err := d.read("2026-09-27", place); err != nil {
				t.Fatal(err)
			}
		}
		v := c.parameters()
		for n, name := range []string{"from", "to"} {
			if at, err := time.Parse(time.RFC3339, v.Get(name)); err != nil || at.UTC().Format(time.RFC3339) != want[n] {
				t.Errorf("%s, %s: %s is not %s, %v", zone, name, v.Get(name), want[n], err)
			}
		}
	}
}
