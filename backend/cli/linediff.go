package cli

import (
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// lineDiff lists all lines of two texts, with - before removed lines and + before added lines.
func lineDiff(before, after string) []string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	out := make([]string, 0, len(a)+len(b))
	add := func(mark string, lines []string) {
		for _, line := range lines {
			out = append(out, mark+line)
		}
	}
	at := 0
	for _, d := range lcs.DiffLines(a, b) {
		add("  ", a[at:d.Start])
		add("- ", a[d.Start:d.End])
		add("+ ", b[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	add("  ", a[at:])
	return out
}
