package app

import (
	"fmt"
	"strings"
	"unicode"
)

// visible is a text in which everything can be seen: controls, what turns the direction of writing, and blanks that are none stand
// there by name. Line ends and tabs stay.
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

// oneLine is visible in one line.
func oneLine(text string) string {
	return strings.NewReplacer("\n", "\u21b5 ", "\t", "\u21e5").Replace(visible(text))
}

// cut is the beginning of a text, and whether that is all of it.
func cut(text string, most int) (begins string, whole bool) {
	if at := beginning(text, most); at < len(text) {
		return text[:at] + "\u2026", false
	}
	return text, true
}

// beginning is how many bytes the first characters of a text take, or the whole of it.
func beginning(text string, characters int) int {
	n := 0
	for at := range text {
		if n++; n > characters {
			return at
		}
	}
	return len(text)
}
