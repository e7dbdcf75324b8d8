package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// visible writes by its number, as [U+001B], each character that a terminal acts on or that nobody can see: control characters, marks of
// direction, characters of no width. Line ends and tabs stay, and a joiner between two characters outside of ASCII, where writing and emoji need
// one. A text that somebody decides about is written by backend.Reveal, which leaves no joiner and no blank but the usual one.
func visible(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	runes := []rune(strings.ReplaceAll(text, "\r\n", "\n"))
	var out strings.Builder
	for i, r := range runes {
		if hidden(r) && !joins(runes, i) {
			fmt.Fprintf(&out, "[U+%04X]", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// hidden tells of a character that is not seen, or that changes how others are seen.
func hidden(r rune) bool {
	const text, emoji = '\ufe0e', '\ufe0f' // which form of a sign is meant
	switch r {
	case '\n', '\t', text, emoji:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// joins tells of a joiner, or a non-joiner, that writing needs.
func joins(text []rune, i int) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if text[i] != nonJoiner && text[i] != joiner || i == 0 || i == len(text)-1 {
		return false
	}
	return text[i-1] > unicode.MaxASCII && text[i+1] > unicode.MaxASCII && !hidden(text[i-1]) && !hidden(text[i+1])
}

// visibleJSON escapes what visible would write by its number, as JSON does: the value stays the same for whoever reads it.
func visibleJSON(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch first, second := utf16.EncodeRune(r); {
		case !hidden(r):
			out.WriteRune(r)
		case first != unicode.ReplacementChar:
			fmt.Fprintf(&out, `\u%04x\u%04x`, first, second)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// printable is a text on one line.
func printable(text string) string {
	return visible(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text))
}
