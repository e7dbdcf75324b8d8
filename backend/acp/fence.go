package acp

import "strings"

// Fenced puts text into a block of Markdown, which texts of the protocol are (Content, text), and which nothing in it can close: its marks
// are longer than any in the text. The marks are counted once. Looking for ever longer ones took minutes for a megabyte of them.
func Fenced(language, text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	marks := strings.Repeat("`", longest+1)
	return marks + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + marks
}
