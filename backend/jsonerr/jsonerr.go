// Package jsonerr hides the encoding of JSON files that people edit: their byte order mark, and the line of an error.
package jsonerr

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Text is data without a leading UTF-8 byte order mark (RFC 3629, section 6), which some editors of Windows write. Text shares data's
// memory.
func Text(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// Line is the line of text, from 1, to which an error of [encoding/json] refers. An error without a position refers to the last line.
func Line(text []byte, err error) int {
	offset := len(text)
	if fault, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = int(fault.Offset)
	} else if fault, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = int(fault.Offset)
	}
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}
