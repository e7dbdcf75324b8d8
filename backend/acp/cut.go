package acp

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
)

// cutText is a text that may begin or end within a character.
type cutText struct {
	optional[string]
	low, high rune
}

// UnmarshalJSON never fails. JSON may write a character beyond U+FFFF as two escapes; encoding/json decodes one of the two alone as
// U+FFFD.
func (c *cutText) UnmarshalJSON(b []byte) error {
	*c = cutText{}
	_ = c.optional.UnmarshalJSON(b) // never fails
	const lost, escape = "\ufffd", len(`\uD83D`)
	if !c.given || len(b) < escape+2 {
		return nil
	}
	if strings.HasPrefix(c.value, lost) {
		if r := escaped(b[1 : 1+escape]); 0xdc00 <= r && r < 0xe000 {
			c.low = r
		}
	}
	if before := b[1 : len(b)-1-escape]; strings.HasSuffix(c.value, lost) && (len(before)-len(bytes.TrimRight(before, `\`)))%2 == 0 {
		if r := escaped(b[len(b)-1-escape : len(b)-1]); 0xd800 <= r && r < 0xdc00 {
			c.high = r
		}
	}
	return nil
}

// escaped returns the UTF-16 unit of an escape, or 0 when b is no escape.
func escaped(b []byte) rune {
	text, isEscape := strings.CutPrefix(string(b), `\u`)
	n, err := strconv.ParseUint(text, 16, 16)
	if !isEscape || err != nil {
		return 0
	}
	return rune(n) //nolint:gosec // of 16 bits
}

// Joined returns the text of a chunk that follows a chunk with the first half of a character, or 0, at its end. rest is the first half
// with which this chunk ends, and which the text lacks.
func (c Chunk) Joined(half rune) (text string, rest rune) {
	const lost = "\ufffd"
	text = c.Text
	switch {
	case half != 0 && c.Low != 0:
		text = string(utf16.DecodeRune(half, c.Low)) + strings.TrimPrefix(text, lost)
	case half != 0:
		text = lost + text
	}
	if c.High != 0 {
		text = strings.TrimSuffix(text, lost)
	}
	return text, c.High
}
