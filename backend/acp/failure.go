package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Error is the error member of a response. It is a Go error as well.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (JSON-RPC %d)", e.Sentence(), e.Code)
}

// UnmarshalJSON takes an error in every form that agents give it: a code that is a text or has a fraction, a message that is no text, an
// error that is a text alone, details that stand beside the message rather than in data. It fails on what is no JSON alone.
func (e *Error) UnmarshalJSON(b []byte) error {
	*e = Error{Code: CodeInternalError}
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil {
		var text string
		if json.Unmarshal(b, &text) == nil {
			e.Message = text
			return nil
		}
		e.Data = bytes.Clone(b)
		return nil
	}
	if code := new(Integer); json.Unmarshal(members["code"], code) == nil && code.Given {
		e.Code = int(code.Value)
	}
	if raw := members["message"]; json.Unmarshal(raw, &e.Message) != nil {
		e.Message = details(raw, 0)
	}
	e.Data = notNull(members["data"])
	for _, known := range []string{"code", "message", "data"} {
		delete(members, known)
	}
	if e.Data == nil && len(members) > 0 {
		e.Data, _ = json.Marshal(members) // they were JSON
	}
	return nil
}

// Sentence is the whole error for people: its message, and what its data says beyond that. Many agents, those on the protocol's libraries
// among them, say "Internal error" of everything that they did not expect, and put what went wrong into data.
func (e *Error) Sentence() string {
	message, more := textDetails(e.Message, 0), details(e.Data, 0)
	switch {
	case more == "" && message == "":
		return fmt.Sprintf("error %d", e.Code)
	case more == "" || strings.Contains(message, more):
		return message
	case strings.Contains(more, message): // the empty one is in all
		return more
	}
	return strings.TrimRight(message, ".:; \n") + ": " + more
}

// mostNested is how deep details are looked for: an error in a text in an error is common, and what goes deeper is none.
const mostNested = 8

// telling are the names of members that say what went wrong, in the order in which they are told; without case and underscores.
//
//nolint:gochecknoglobals // a constant in all but name
var telling = []string{
	"title", "message", "msg", "errormessage", "errormsg", "error", "reason", "description", "errordescription", "text", "details", "detail", "cause",
	"errors", "body", "response", "hint", "stderr", "data",
}

// details is what a value says to people; "" where it says nothing. What has no member with a known name is told as it came.
func details(raw json.RawMessage, depth int) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" || depth > mostNested {
		return ""
	}
	switch raw[0] {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text) // the whole was JSON
		return textDetails(text, depth)
	case '{':
		return memberDetails(raw, depth)
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list) // as above
		var all []string
		for _, item := range list {
			all = addDetail(all, details(item, depth+1))
		}
		return strings.Join(all, "; ")
	}
	return string(raw)
}

// textDetails is a text for people; one that is a JSON object or list is read as such.
func textDetails(text string, depth int) string {
	text = strings.TrimSpace(WithoutEscapes(text))
	if text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
		return details(json.RawMessage(text), depth+1)
	}
	return text
}

func memberDetails(raw json.RawMessage, depth int) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || len(members) == 0 {
		return ""
	}
	found := make([]string, len(telling))
	for _, name := range slices.Sorted(maps.Keys(members)) { // of error_message and errorMessage the same one counts each time
		if n := slices.Index(telling, strings.ReplaceAll(strings.ToLower(name), "_", "")); n >= 0 && found[n] == "" {
			found[n] = details(members[name], depth+1)
		}
	}
	var all []string
	for _, text := range found {
		all = addDetail(all, text)
	}
	if len(all) > 0 {
		return strings.Join(all, ": ")
	}
	return string(Compact(nil, raw))
}

// addDetail adds what the others do not say already.
func addDetail(all []string, text string) []string {
	if text == "" || slices.ContainsFunc(all, func(said string) bool { return strings.Contains(said, text) }) {
		return all
	}
	all = slices.DeleteFunc(all, func(said string) bool { return strings.Contains(text, said) })
	return append(all, text)
}

// escapes are the sequences by which programs colour a terminal, set its title and move its cursor; and control characters but for line
// feeds and tabs. An OSC ends with BEL or ST, and at the end of a line where it has neither.
var escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\ufeff]")

// WithoutEscapes is a text without what only a terminal understands.
func WithoutEscapes(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 || r == '\ufeff' }) < 0 {
		return text
	}
	return escapes.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
}
