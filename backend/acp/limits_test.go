package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// told writes limits as a text: type, status, part used, time of the reset.
func told(list []AccountLimit) string {
	var b strings.Builder
	for _, l := range list {
		used, resets := "?", "?"
		if l.Used != nil {
			used = fmt.Sprint(*l.Used)
		}
		if !l.ResetsAt.IsZero() {
			resets = l.ResetsAt.Format(time.RFC3339)
		}
		fmt.Fprintf(&b, "%s/%s/%s/%s;", l.Type, l.Status, used, resets)
	}
	return b.String()
}

func TestLimitsOfAnAccountAreRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ meta, want string }{
		"no limits":           {`{"_claude/model":"claude-opus-5-5"}`, ""},
		"the SDK, no warning": {`{"_claude/rateLimit":{"status":"allowed","resetsAt":1788290400,"rateLimitType":"five_hour","overageStatus":"rejected","overageDisabledReason":"out_of_credits","isUsingOverage":false}}`, "five_hour/allowed/?/2026-09-01T19:20:00Z;"},
		"the SDK, a warning":  {`{"_claude/rateLimit":{"status":"allowed_warning","resetsAt":1788290400,"rateLimitType":"five_hour","utilization":0.91,"isUsingOverage":false,"surpassedThreshold":0.9}}`, "five_hour/allowed_warning/0.91/2026-09-01T19:20:00Z;"},
		"both windows": {
			`{"_claude/rateLimit":{"status":"allowed_warning","resetsAt":1789552800,"rateLimitType":"seven_day","utilization":0.86,"surpassedThreshold":0.75,"unifiedWindows":{"seven_day":{"utilization":0.86,"resetsAt":1789552800},"five_hour":{"utilization":0.85,"resetsAt":1789551600}}},"_claude/model":"m"}`,
			"seven_day/allowed_warning/0.86/2026-09-16T10:00:00Z;five_hour//0.85/2026-09-16T09:40:00Z;",
		},
		"a number in the window alone": {`{"_claude/rateLimit":{"status":"allowed","rateLimitType":"five_hour","unifiedWindows":{"five_hour":{"utilization":0.12,"resetsAt":1788290400}}}}`, "five_hour/allowed/0.12/2026-09-01T19:20:00Z;"},
		"refused":                      {`{"_claude/rateLimit":{"status":"rejected","resetsAt":1788290400,"rateLimitType":"seven_day_opus","utilization":1.04}}`, "seven_day_opus/rejected/1/2026-09-01T19:20:00Z;"},
		"no name":                      {`{"_claude/rateLimit":{"status":"allowed","utilization":0}}`, "/allowed/0/?;"},
		"numbers as texts":             {`{"_claude/rateLimit":{"rateLimitType":"five_hour","utilization":"0.5","resetsAt":"1788290400"}}`, "five_hour//0.5/2026-09-01T19:20:00Z;"},
		"an unknown status":            {`{"_claude/rateLimit":{"rateLimitType":"five_hour","status":"perhaps","utilization":0.5}}`, "five_hour//0.5/?;"},
		"a percentage":                 {`{"_claude/rateLimit":{"rateLimitType":"five_hour","status":"allowed","utilization":86}}`, "five_hour/allowed/?/?;"},
		"less than nothing":            {`{"_claude/rateLimit":{"rateLimitType":"five_hour","status":"allowed","utilization":-0.1,"resetsAt":-7}}`, "five_hour/allowed/?/?;"},
		"after all years":              {`{"_claude/rateLimit":{"rateLimitType":"five_hour","status":"allowed","resetsAt":253402300800}}`, "five_hour/allowed/?/?;"},
		"wrong types":                  {`{"_claude/rateLimit":{"rateLimitType":["five_hour"],"status":7,"utilization":{},"resetsAt":[],"unifiedWindows":{"a":7,"b":null,"c":{"utilization":0.2,"resetsAt":"soon"},"d":{}}}}`, "c//0.2/?;"},
		"windows in a list":            {`{"_claude/rateLimit":{"rateLimitType":"five_hour","status":"allowed","unifiedWindows":[1]}}`, "five_hour/allowed/?/?;"},
		"nothing that counts":          {`{"_claude/rateLimit":{"rateLimitType":"five_hour","resetsAt":1788290400}}`, ""},
		"a limit as a text":            {`{"_claude/rateLimit":"five_hour"}`, ""},
		"a limit of null":              {`{"_claude/rateLimit":null}`, ""},
		"_meta is a text":              {`"x"`, ""},
		"_meta is null":                {`null`, ""},
		"another's quota":              {`{"quota":{"token_count":{"totalTokens":7},"model_usage":[]}}`, ""},
	} {
		u, err := ParseUsage(json.RawMessage(`{"sessionUpdate":"usage_update","used":45196,"_meta":` + test.meta + `,"size":200000}`))
		if got := told(u.Limits); err != nil || got != test.want || u.Used != 45196 || u.Size != 200_000 {
			t.Errorf("%s, ParseUsage with the _meta %s: got %d of %d, limits %q, error %v, want 45196 of 200000, limits %q", name, test.meta, u.Used, u.Size, got, err, test.want)
		}
	}
}
