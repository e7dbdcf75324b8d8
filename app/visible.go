package app

import (
	"fmt"
	"strings"
	"unicode"
)

// visible returns a text in which every character can be seen: control characters, characters that change the direction of writing, and
// unusual blanks are replaced by their names. Line ends and tabs stay.
func visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			out.WriteRune(r)
		case r < ' ':
			out.WriteRune('\u2400' + r) // the pictures of control characters
		case r == 0x7f:
			out.WriteRune('\u2421')
		default:
			fmt.Fprintf(&out, "\u27e8U+%04X\u27e9", r)
		}
	}
	return out.String()
}

func hidden(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }

// oneLine returns a visible text without line ends.
func oneLine(text string) string {
	return strings.NewReplacer("\n", "\u21b5 ", "\t", "\u21e5").Replace(visible(text))
}

// cut returns the beginning of a text, and reports whether the beginning is the whole text.
func cut(text string, most int) (begins string, whole bool) {
	if at := beginning(text, most); at < len(text) {
		return text[:at] + "\u2026", false
	}
	return text, true
}

// beginning returns the number of bytes of a text's first characters, at most the whole length.
func beginning(text string, characters int) int {
	n := 0
	for at := range text {
		if n++; n > characters {
			return at
		}
	}
	return len(text)
}
