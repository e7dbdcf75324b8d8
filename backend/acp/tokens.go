package acp

import "encoding/json"

// Tokens is what a turn took, as an agent tells it in the usage of its answer to session/prompt. A number that was not told is nil. Agents
// differ in whether the tokens of thoughts are a part of the output's: Total alone is a sum.
type Tokens struct {
	Input       *int64
	Output      *int64
	CachedRead  *int64
	CachedWrite *int64
	Thought     *int64
	Total       *int64
}

// ParseTokens decodes the usage of an answer to session/prompt; told is false when the usage has no number of tokens. A negative number
// counts as not told.
func ParseTokens(usage json.RawMessage) (t Tokens, told bool) {
	var u struct {
		Input       Integer `json:"inputTokens"`
		Output      Integer `json:"outputTokens"`
		CachedRead  Integer `json:"cachedReadTokens"`
		CachedWrite Integer `json:"cachedWriteTokens"`
		Thought     Integer `json:"thoughtTokens"`
		Total       Integer `json:"totalTokens"`
	}
	if len(usage) == 0 || lenient(usage, &u) != nil {
		return Tokens{}, false
	}
	for _, f := range []struct {
		to   **int64
		from Integer
	}{{&t.Input, u.Input}, {&t.Output, u.Output}, {&t.CachedRead, u.CachedRead}, {&t.CachedWrite, u.CachedWrite}, {&t.Thought, u.Thought}, {&t.Total, u.Total}} {
		if f.from.Value >= 0 {
			*f.to = f.from.Pointer()
		}
	}
	if t == (Tokens{}) {
		return t, false
	}
	if t.Total == nil {
		t.Total = sum(t.Input, t.Output, t.CachedRead, t.CachedWrite)
	}
	return t, true
}

// sum adds the numbers that are told; nil when none is.
func sum(list ...*int64) (total *int64) {
	for _, n := range list {
		if n != nil {
			if total == nil {
				total = new(int64)
			}
			*total += *n
		}
	}
	return total
}
