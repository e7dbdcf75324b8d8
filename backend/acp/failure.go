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

// UnmarshalJSON accepts an error in every form that agents send: a code that is a text or has a fraction, a message that is no text, an
// error that is only a text, details beside the message rather than in data. UnmarshalJSON never fails on valid JSON.
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
		e.Data, _ = json.Marshal(members) // the members were JSON
	}
	return nil
}

// Sentence returns the whole error for people: its message, and the details of its data that the message lacks. Many agents, such as
// those on the protocol's own libraries, report every unexpected error as "Internal error", and put the reason into data.
func (e *Error) Sentence() string {
	message, more := textDetails(e.Message, 0), details(e.Data, 0)
	switch {
	case more == "" && message == "":
		return fmt.Sprintf("error %d", e.Code)
	case more == "" || strings.Contains(message, more):
		return message
	case strings.Contains(more, message): // also true for an empty message
		return more
	}
	return strings.TrimRight(message, ".:; \n") + ": " + more
}

// mostNested limits how deep details are searched: an error in a text in an error is common, a deeper error is not.
const mostNested = 8

// telling are the names of members that explain an error, without case and underscores, in the order in which their texts are joined.
//
//nolint:gochecknoglobals // a constant in all but name
var telling = []string{
	"title", "message", "msg", "errormessage", "errormsg", "error", "reason", "description", "errordescription", "text", "details", "detail", "cause",
	"errors", "body", "response", "hint", "stderr", "data",
}

// details returns the text of a value for people, or "". An object without a known member is returned as JSON.
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

// textDetails returns a text for people; a text that is a JSON object or list is decoded.
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
	for _, name := range slices.Sorted(maps.Keys(members)) { // sorted, so that of error_message and errorMessage always the same counts
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

// addDetail adds a text unless another text contains it, and removes the texts that the new text contains.
func addDetail(all []string, text string) []string {
	if text == "" || slices.ContainsFunc(all, func(said string) bool { return strings.Contains(said, text) }) {
		return all
	}
	all = slices.DeleteFunc(all, func(said string) bool { return strings.Contains(text, said) })
	return append(all, text)
}

// escapes matches the sequences by which programs colour a terminal, set its title and move its cursor, and control characters except
// line feeds and tabs. An OSC ends with BEL or ST, or at the end of the line.
var escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]|\x1b[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\ufeff]")

// WithoutEscapes returns a text without the sequences and characters that only a terminal understands.
func WithoutEscapes(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 || r == '\ufeff' }) < 0 {
		return text
	}
	return escapes.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
}
