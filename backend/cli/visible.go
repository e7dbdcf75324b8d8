package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// visible writes by its number, as [U+001B], each character that a terminal acts on or that nobody can see: control characters, marks of
// direction, characters of no width. Line ends and tabs stay. A joiner stays between two characters outside of ASCII, where writing and
// emoji need one; exact leaves no joiner, for texts that somebody decides about.
func visible(text string) string { return written(text, joins) }

// exact is visible without an exception: nobody decides about characters that they cannot see.
func exact(text string) string {
	return written(text, func(_ []rune, _ int) bool { return false })
}

func written(text string, stays func(text []rune, i int) bool) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	runes := []rune(strings.ReplaceAll(text, "\r\n", "\n"))
	var out strings.Builder
	for i, r := range runes {
		if hidden(r) && !stays(runes, i) {
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
