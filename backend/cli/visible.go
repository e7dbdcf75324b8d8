package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// visible replaces each character that a terminal acts on, or that nobody can see, by its code point, as in [U+001B]: control characters,
// direction marks and zero-width characters. Line ends and tabs stay, and so does a joiner between two non-ASCII characters, where scripts and
// emoji need one. A text that a person decides about goes through backend.Reveal instead, which keeps no joiner and no blank but U+0020.
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

// hidden reports whether a character is invisible or changes the display of other characters.
func hidden(r rune) bool {
	const text, emoji = '\ufe0e', '\ufe0f' // variation selectors: which form of a sign is meant
	switch r {
	case '\n', '\t', text, emoji:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// joins reports whether text[i] is a joiner or non-joiner that the surrounding script needs.
func joins(text []rune, i int) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if text[i] != nonJoiner && text[i] != joiner || i == 0 || i == len(text)-1 {
		return false
	}
	return text[i-1] > unicode.MaxASCII && text[i+1] > unicode.MaxASCII && !hidden(text[i-1]) && !hidden(text[i+1])
}

// visibleJSON escapes the characters that visible replaces, in JSON notation, so that the decoded value stays the same.
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

// printable puts a text on a single line.
func printable(text string) string {
	return visible(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text))
}
