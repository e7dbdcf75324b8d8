// Package acp hides what the Agent Client Protocol looks like on the wire.
//
// Its lower half knows JSON-RPC alone: [Peek] checks a message and reads its envelope in one pass, [Compact] brings it on one
// line, and the builders write frames. Nothing of a message's content is decoded for that, so that what an agent sends is what a
// client gets. Its upper half holds tolerant types for what we do decode.
//
// A key that stands twice in an envelope counts with its last value, as in the JSON parsers of every peer (JavaScript's, Go's,
// Python's). Keys are compared exactly, after their escapes; "ID" is not "id".
package acp

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Kind is what a message is by its envelope.
type Kind uint8

// The kinds of messages. Other is valid JSON that is none of the three: an array, a number, an object with neither a method nor
// an id and an outcome.
const (
	Other Kind = iota
	Request
	Notification
	Response
)

// Envelope is what JSON-RPC looks at: everything else in the message is content. Its slices share the message's memory.
type Envelope struct {
	Kind Kind
	Raw  []byte // the message without white space around it
	ID   []byte // the id's token as it came, nil when there is none

	method            []byte // token of the method, whatever its type
	hasMethod, spaced bool
	hasResult         bool
	hasError, failed  bool
}

// ErrEmpty is Peek's answer to nothing but white space.
var ErrEmpty = errors.New("not JSON: empty")

// Peek reads the envelope of one message. It fails when data is not one JSON text in UTF-8, and on nothing else.
func Peek(data []byte) (Envelope, error) {
	s := scanner{data: data}
	s.space()
	if s.pos == len(data) {
		return Envelope{}, ErrEmpty
	}
	start := s.pos
	s.spaced = false
	var e Envelope
	var ok bool
	if s.peek() == '{' {
		ok = s.object(1, &e)
	} else {
		ok = s.value(0)
	}
	if !ok {
		return Envelope{}, s.err
	}
	e.Raw, e.spaced = data[start:s.pos:s.pos], s.spaced
	if s.space(); s.pos < len(data) {
		s.fail("more than one value")
		return Envelope{}, s.err
	}
	e.Kind = e.kind()
	return e, nil
}

// note keeps the members of the envelope.
func (e *Envelope) note(key, value []byte) {
	if bytes.IndexByte(key, '\\') >= 0 {
		var plain string
		if json.Unmarshal(key, &plain) != nil {
			return
		}
		key = []byte(`"` + plain + `"`)
	}
	switch string(key) {
	case `"id"`:
		e.ID = value
	case `"method"`:
		e.method, e.hasMethod = value, value[0] == '"'
	case `"result"`:
		e.hasResult = true
	case `"error"`:
		e.hasError, e.failed = true, value[0] != 'n'
	}
}

func (e *Envelope) kind() Kind {
	switch {
	case e.hasMethod && e.ID != nil:
		return Request
	case e.hasMethod:
		return Notification
	case e.ID != nil && (e.hasResult || e.hasError):
		return Response
	default:
		return Other
	}
}

// Method is the name that is called; empty in a response.
func (e *Envelope) Method() string {
	if !e.hasMethod {
		return ""
	}
	if bytes.IndexByte(e.method, '\\') < 0 {
		return string(e.method[1 : len(e.method)-1])
	}
	var name string
	_ = json.Unmarshal(e.method, &name) // Peek has checked the token
	return name
}

// HasError reports whether a response carries an error; some libraries write null where there is none.
func (e *Envelope) HasError() bool { return e.failed }

// Line is the message on one line: Raw itself when it has no white space between its tokens, else a compacted copy.
func (e *Envelope) Line() []byte {
	if !e.spaced {
		return e.Raw
	}
	return Compact(make([]byte, 0, len(e.Raw)), e.Raw)
}

// Compact appends src, which must be valid JSON, to dst without the white space between its tokens. Nothing else changes:
// numbers, escapes and the order of keys stay. dst may be src[:0].
func Compact(dst, src []byte) []byte {
	for i := 0; i < len(src); {
		switch src[i] {
		case ' ', '\t', '\n', '\r':
			i++
			continue
		case '"':
			end := i + stringLen(src[i:])
			dst = append(dst, src[i:end]...)
			i = end
			continue
		}
		start := i
		for i < len(src) && src[i] > ' ' && src[i] != '"' {
			i++
		}
		if i == start { // a control character: not JSON, kept as it is rather than looped over
			i++
		}
		dst = append(dst, src[start:i]...)
	}
	return dst
}

// stringLen is the length of the string token at the start of b.
func stringLen(b []byte) int {
	for i := 1; i < len(b); {
		i += plainPrefix(b[i:])
		switch {
		case i >= len(b):
		case b[i] == '"':
			return i + 1
		case b[i] == '\\':
			i += 2
		default:
			i++
		}
	}
	return len(b)
}
