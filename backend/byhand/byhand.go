// Package byhand hides what editors make of a file that a person writes: the mark that those of Windows begin one with, and in which
// line a slip of the hand stands.
package byhand

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Text is what was written: data without the byte order mark of UTF-8 that it may begin with (RFC 3629, section 6). It shares data's
// memory.
func Text(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// Line finds the line, counted from 1, that an error of [encoding/json] about text means; an error that names no place means the last
// one.
func Line(text []byte, err error) int {
	offset := len(text)
	if fault, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = int(fault.Offset)
	} else if fault, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = int(fault.Offset)
	}
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}
