// Package acp hides the wire format of the Agent Client Protocol.
//
// The lower half of the package knows JSON-RPC alone: [Peek] checks a message and reads its envelope in one pass, [Compact] puts a
// message on one line, and the builders write frames. None of these decodes the content of a message, so a client gets exactly the bytes
// that an agent sends. The upper half holds tolerant types for the content that Deskhand decodes.
//
// The last value of a repeated key in an envelope counts, as in the JSON parsers of every peer (JavaScript's, Go's, Python's). Keys are
// compared exactly, after their escapes; "ID" is not "id".
package acp

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Kind is the kind of a message, judged by its envelope.
type Kind uint8

// The kinds of messages. Other is any other valid JSON: an array, a number, an object with neither a method nor an id and an outcome.
const (
	Other Kind = iota
	Request
	Notification
	Response
)

// Envelope is the part of a message that JSON-RPC defines: everything else in the message is content. Its slices share the message's
// memory.
type Envelope struct {
	Kind Kind
	Raw  []byte // the message without white space around it
	ID   []byte // the id's token as received, nil when missing

	method            []byte // token of the method, whatever its type
	hasMethod, spaced bool
	hasResult         bool
	hasError, failed  bool
}

// ErrEmpty is the error of Peek for white space alone.
var ErrEmpty = errors.New("not JSON: empty")

// Peek reads the envelope of a message. Peek fails only when data is not a single JSON text in UTF-8.
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

// note records a member of the envelope.
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

// Method returns the name of the called method; "" for a response.
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

// HasError reports whether a response carries an error; some libraries write null in a response without an error.
func (e *Envelope) HasError() bool { return e.failed }

// Line returns the message on one line: Raw itself when it has no white space between its tokens, else a compacted copy.
func (e *Envelope) Line() []byte {
	if !e.spaced {
		return e.Raw
	}
	return Compact(make([]byte, 0, len(e.Raw)), e.Raw)
}

// Compact appends src, which must be valid JSON, to dst without the white space between its tokens. Nothing else changes: numbers,
// escapes and the order of keys stay. dst may be src[:0].
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
		if i == start { // a control character: not JSON, kept to avoid an endless loop
			i++
		}
		dst = append(dst, src[start:i]...)
	}
	return dst
}

// stringLen returns the length of the string token at the start of b.
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
