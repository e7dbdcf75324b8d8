package transcript

import (
	"encoding/json"
	"fmt"
	"testing"

	"deskhand/backend/record"
)

// wantUsage compares the usage as the client API shows it.
func (s *story) wantUsage(want string) {
	s.t.Helper()
	if got := string(record.JSON(s.fold.Facts.Usage)); got != want {
		s.t.Errorf("usage after %d frames:\n got %s\nwant %s", s.n, got, want)
	}
}

// The messages are those of a turn with claude-agent-acp 0.101.0.
func TestLimitsStayUntilTheyAreToldAgain(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.update(`{"sessionUpdate":"usage_update","used":45196,"size":200000,"_meta":{"_claude/model":"claude-opus-5-5"}}`)
	s.wantUsage(`{"used":45196,"size":200000}`)
	s.update(`{"sessionUpdate":"usage_update","used":45196,"size":200000,"_meta":{"_claude/rateLimit":{"status":"allowed_warning","resetsAt":1789552800,` +
		`"rateLimitType":"seven_day","utilization":0.86,"isUsingOverage":false,"surpassedThreshold":0.75,"unifiedWindows":{` +
		`"five_hour":{"utilization":0.85,"resetsAt":1789551600},"seven_day":{"utilization":0.86,"resetsAt":1789552800}}},"_claude/model":"claude-opus-5-5"}}`)
	const week, hours = `{"type":"seven_day","status":"allowed_warning","used":0.86,"resetsAt":"2026-09-16T10:00:00.000Z"}`,
		`{"type":"five_hour","used":0.85,"resetsAt":"2026-09-16T09:40:00.000Z"}`
	s.wantUsage(`{"used":45196,"size":200000,"limits":[` + week + `,` + hours + `]}`)
	s.update(`{"sessionUpdate":"usage_update","used":46000,"size":1000000,"cost":{"amount":0.5,"currency":"USD"},"_meta":{"_claude/origin":{"kind":"human"}}}`)
	s.wantUsage(`{"used":46000,"size":1000000,"cost":{"amount":0.5,"currency":"USD"},"limits":[` + week + `,` + hours + `]}`)

	shown := s.fold.Facts.Usage // as a reader of the facts holds it
	s.update(`{"sessionUpdate":"usage_update","used":47000,"size":1000000,"_meta":{"_claude/rateLimit":{"status":"rejected","resetsAt":1789551600,"rateLimitType":"five_hour"}}}`)
	s.wantUsage(`{"used":47000,"size":1000000,"cost":{"amount":0.5,"currency":"USD"},"limits":[` + week +
		`,{"type":"five_hour","status":"rejected","resetsAt":"2026-09-16T09:40:00.000Z"}]}`)
	if got := shown.Limits[1]; got.Status != "" || got.Used == nil || *got.Used != 0.85 {
		t.Errorf("limit that was read before a newer message: got %+v, want the limit as it was", got)
	}
	s.update(`{"sessionUpdate":"usage_update","used":47001,"size":1000000,"_meta":{"_claude/rateLimit":{"status":true,"rateLimitType":"five_hour","utilization":"much"}}}`)
	s.wantUsage(`{"used":47001,"size":1000000,"cost":{"amount":0.5,"currency":"USD"},"limits":[` + week +
		`,{"type":"five_hour","status":"rejected","resetsAt":"2026-09-16T09:40:00.000Z"}]}`)

	// The facts come back from the session's row as they were.
	var f Facts
	if err := json.Unmarshal(record.JSON(s.fold.Facts), &f); err != nil || string(record.JSON(f.Usage)) != string(record.JSON(s.fold.Facts.Usage)) {
		t.Errorf("usage that was stored and read: got %s, error %v, want %s", record.JSON(f.Usage), err, record.JSON(s.fold.Facts.Usage))
	}
}

func TestAnAgentCannotNameAnyNumberOfLimits(t *testing.T) {
	t.Parallel()
	s := tell(t)
	for n := range maxLimits + 3 {
		s.update(`{"sessionUpdate":"usage_update","used":1,"size":2,"_meta":{"_claude/rateLimit":{"status":"allowed","rateLimitType":"window_%d"}}}`, n)
	}
	list := s.fold.Facts.Usage.Limits
	if want := fmt.Sprintf("window_%d", maxLimits+2); len(list) != maxLimits || list[0].Type != "window_3" || list[maxLimits-1].Type != want {
		t.Errorf("limits of an agent that names %d: got %d, %+v, want the newest %d, window_3 to %s", maxLimits+3, len(list), list, maxLimits, want)
	}
}
