package acp

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Cut is a text that its agent may have cut within a character, from the text before and from the text behind: agents send their texts in
// pieces, and some count bytes or UTF-16 units. Each unit of a character that is not whole is a U+FFFD in Text.
type Cut struct {
	Text string
	head []rune // the units at the start of Text: a low surrogate, or bytes
	tail string // the beginning of a character at the end of Text: a high surrogate, encoded as if it were a character, or bytes
}

// The units of a character are told as lone surrogates: JSON may write a character beyond U+FFFF as two escapes. A byte that is no UTF-8 is
// U+DC00 and its value, as in Python (PEP 383); see mendText.
const (
	lost      = "\ufffd"
	firstByte = 0xdc80 // the unit of the first byte that no ASCII character is
	lastByte  = 0xdcff
	mostBytes = utf8.UTFMax - 1 // of a character that is not whole
)

func isByteUnit(unit rune) bool { return firstByte <= unit && unit <= lastByte }

// IsWhole reports whether no character of the text is cut.
func (c Cut) IsWhole() bool { return c.head == nil && c.tail == "" }

// cutText decodes a Cut.
type cutText struct {
	Cut
	given bool
}

// UnmarshalJSON never fails.
func (c *cutText) UnmarshalJSON(b []byte) error {
	*c = cutText{}
	var text optional[string]
	_ = text.UnmarshalJSON(b) // never fails
	if c.Text, c.given = text.value, text.given; !c.given {
		return nil
	}
	inner := b[1 : len(b)-1]
	if strings.HasPrefix(c.Text, lost) {
		c.head = headOf(inner)
	}
	if strings.HasSuffix(c.Text, lost) {
		c.tail = tailOf(inner, len(c.Text)-len(strings.TrimRight(c.Text, lost)))
	}
	return nil
}

const escapeLength = len(`\uD83D`)

// headOf returns the units at the start of a text in JSON.
func headOf(inner []byte) []rune {
	var units []rune
	for len(units) < mostBytes && len(inner) >= escapeLength {
		unit := escaped(inner[:escapeLength])
		if unit < 0xdc00 || unit > 0xdfff || len(units) > 0 && !isByteUnit(unit) {
			break
		}
		units, inner = append(units, unit), inner[escapeLength:]
	}
	return units
}

// tailOf returns the beginning of a character at the end of a text in JSON. losses is the length of the U+FFFDs at the end of the text.
func tailOf(inner []byte, losses int) string {
	var units []rune
	for n := 1; n <= min(mostBytes, losses/len(lost)) && len(inner) >= escapeLength; n++ {
		var unit rune
		inner, unit = inner[:len(inner)-escapeLength], escaped(inner[len(inner)-escapeLength:])
		switch backslashes := len(inner) - len(bytes.TrimRight(inner, `\`)); {
		case backslashes%2 == 1: // the escape is none
			return ""
		case n == 1 && 0xd800 <= unit && unit <= 0xdbff:
			return halfBytes(unit)
		case !isByteUnit(unit):
			return ""
		}
		units = slices.Insert(units, 0, unit)
		if text := bytesOf(units); isBeginning(text) {
			return text
		}
	}
	return ""
}

// halfBytes encodes a surrogate as if it were a character.
func halfBytes(unit rune) string {
	return string([]byte{byte(0xe0 | unit>>12), byte(0x80 | unit>>6&0x3f), byte(0x80 | unit&0x3f)})
}

// bytesOf returns the bytes that units stand for.
func bytesOf(units []rune) string {
	b := make([]byte, len(units))
	for i, unit := range units {
		b[i] = byte(unit - 0xdc00) //nolint:gosec // of 8 bits, see isByteUnit
	}
	return string(b)
}

// isBeginning reports whether a text is the beginning of one character in UTF-8.
func isBeginning(text string) bool { return text != "" && !utf8.FullRuneInString(text) }

// escaped returns the UTF-16 unit of an escape, or 0 when b is no escape.
func escaped(b []byte) rune {
	text, isEscape := strings.CutPrefix(string(b), `\u`)
	n, err := strconv.ParseUint(text, 16, 16)
	if !isEscape || err != nil {
		return 0
	}
	return rune(n) //nolint:gosec // of 16 bits
}

// Joined returns the text behind a text that ends with the beginning of a character, or "". rest is the beginning of a character with which
// this text ends, and which the returned text lacks.
func (c Cut) Joined(before string) (text, rest string) {
	text = strings.TrimSuffix(c.Text, strings.Repeat(lost, unitsIn(c.tail)))
	if before == "" {
		return text, c.tail
	}
	if before[0] == 0xed && len(before) == len(halfBytes(0xd800)) {
		high := surrogate([]byte(before))
		if len(c.head) > 0 {
			return string(utf16.DecodeRune(high, c.head[0])) + strings.TrimPrefix(text, lost), c.tail
		}
		return lost + text, c.tail
	}
	for i, unit := range c.head {
		if !isByteUnit(unit) {
			break
		}
		whole := before + bytesOf(c.head[:i+1])
		if utf8.ValidString(whole) {
			return whole + strings.TrimPrefix(text, strings.Repeat(lost, i+1)), c.tail
		}
		if !isBeginning(whole) {
			break
		}
		if c.Text == strings.Repeat(lost, i+1) {
			return "", whole
		}
	}
	return lost + text, c.tail
}

// unitsIn returns how many units of a text the beginning of a character was.
func unitsIn(tail string) int {
	if len(tail) == len(halfBytes(0xd800)) && tail[0] == 0xed {
		return 1
	}
	return len(tail)
}
