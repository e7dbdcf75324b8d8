package acp

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// AccountLimit is a limit of the account that an agent works with, as Claude's adapter tells one in the _meta of a usage_update. Type is the
// provider's word for the limit, such as five_hour or seven_day, and may be empty. Status is one of the Limit constants, or empty. Used is
// the part that is used, from 0 to 1, and nil when not given. ResetsAt is the zero time when not given.
type AccountLimit struct {
	Type     string
	Status   string
	Used     *float64
	ResetsAt time.Time
}

// The statuses of a limit: requests go through, they go through though little is left, or they are refused.
const (
	LimitAllowed  = "allowed"
	LimitWarning  = "allowed_warning"
	LimitRejected = "rejected"
)

// limitMeta is the part of a usage_update's _meta that tells of limits. Source: SDKRateLimitInfo of @anthropic-ai/claude-agent-sdk 0.3.318,
// which claude-agent-acp 0.101.0 passes on as it is, and the member unifiedWindows, which Claude Code sends since 2.1.263 and the SDK's types
// do not have.
type limitMeta struct {
	Claude optional[struct {
		Type    Text                                 `json:"rateLimitType"`
		Status  string                               `json:"status"`
		Used    Float                                `json:"utilization"`
		Resets  Integer                              `json:"resetsAt"`
		Windows optional[map[string]json.RawMessage] `json:"unifiedWindows"`
	}] `json:"_claude/rateLimit"`
}

type limitWindow struct {
	Status string  `json:"status"`
	Used   Float   `json:"utilization"`
	Resets Integer `json:"resetsAt"`
}

// limits returns the limit that the message is about, and then every other limit of the account that the message mentions, by name. What the
// message does not say of its own limit, the window of that limit says: Claude Code tells no utilization beside the status allowed.
func (m limitMeta) limits() []AccountLimit {
	var list []AccountLimit
	add := func(w limitWindow, name string) {
		if l, ok := w.limit(name); ok {
			list = append(list, l)
		}
	}
	told := m.Claude.value
	windows := map[string]limitWindow{}
	for name, raw := range told.Windows.value {
		var w limitWindow
		if lenient(raw, &w) == nil {
			windows[name] = w
		}
	}
	own := limitWindow{told.Status, told.Used, told.Resets}
	name := string(told.Type)
	if !own.Used.Given {
		own.Used = windows[name].Used
	}
	if !own.Resets.Given {
		own.Resets = windows[name].Resets
	}
	add(own, name)
	delete(windows, name)
	for _, other := range slices.Sorted(maps.Keys(windows)) {
		add(windows[other], other)
	}
	return list
}

// limit reports false for a window that says neither how the limit stands nor how much of the limit is used. A part of more than the whole
// is the whole, as some requests go beyond a limit; a number above 2 is no part, but a percentage or something else.
func (w limitWindow) limit(name string) (l AccountLimit, ok bool) {
	l.Type = name
	if slices.Contains([]string{LimitAllowed, LimitWarning, LimitRejected}, w.Status) {
		l.Status = w.Status
	}
	if w.Used.Given && w.Used.Value >= 0 && w.Used.Value <= 2 {
		used := min(w.Used.Value, 1)
		l.Used = &used
	}
	const endOfYears = 253_402_300_800 // seconds until the year 10000, which a time in JSON cannot have
	if w.Resets.Value > 0 && w.Resets.Value < endOfYears {
		l.ResetsAt = time.Unix(w.Resets.Value, 0).UTC()
	}
	return l, l.Status != "" || l.Used != nil
}
