package permission

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Reveal replaces characters that are not seen, or that change the order of others, by their numbers, because nobody can decide about
// text that they cannot see. Line ends, tabs and blanks stay.
func Reveal(text string) string {
	if !Hides(text) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if unseen(r) {
			fmt.Fprintf(&out, "[U+%04X]", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Readable returns a name in a form that cannot pass for another name in a text: a name with characters that are not seen is quoted.
func Readable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// Hides reports whether a text has characters that Reveal replaces.
func Hides(text string) bool { return strings.ContainsFunc(text, unseen) }

func unseen(r rune) bool {
	const emoji = '\ufe0f' // behind a character, asks for its form as an emoji
	return r != '\n' && r != '\t' && r != ' ' && r != emoji &&
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
