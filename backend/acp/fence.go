package acp

import "strings"

// Fenced puts text into a fenced block of Markdown, the format of texts in the protocol (Content, text). Nothing in text can close the
// block, because its marks are longer than any run of marks in text. Fenced counts the runs once: searching for ever longer marks took
// minutes for a megabyte of them.
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
