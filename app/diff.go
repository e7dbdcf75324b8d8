package app

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// aroundChange is how many unchanged lines are shown beside a change.
const aroundChange = 3

// diffLines returns the difference of two texts by lines, in the form of frontend/src/content/diff.ts.
func diffLines(before, after string) (lines []line, added, removed int) {
	return foldSame(compareLines(splitLines(before), splitLines(after)))
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// compareLines gives all lines of both.
func compareLines(a, b []string) []line {
	edits := make([]line, 0, len(a)+len(b))
	add := func(style lineStyle, texts []string) {
		for _, text := range texts {
			edits = append(edits, line{style: style, text: text})
		}
	}
	at := 0
	for _, d := range lcs.DiffLines(a, b) {
		add(plainLine, a[at:d.Start])
		add(removedLine, a[d.Start:d.End])
		add(addedLine, b[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	add(plainLine, a[at:])
	return edits
}

// foldSame marks the lines as a patch does, and replaces unchanged lines far from every change by their number.
func foldSame(edits []line) (lines []line, added, removed int) {
	near := make([]bool, len(edits))
	for i, e := range edits {
		if e.style == plainLine {
			continue
		}
		for j := max(0, i-aroundChange); j < min(len(edits), i+aroundChange+1); j++ {
			near[j] = true
		}
	}
	folded := 0
	flush := func() {
		if folded > 0 {
			lines = append(lines, line{style: dimLine, text: fmt.Sprintf("  \u22ef %d unchanged", folded)})
		}
		folded = 0
	}
	for i, e := range edits {
		if !near[i] {
			folded++
			continue
		}
		flush()
		sign := "  "
		switch e.style {
		case addedLine:
			sign = "+ "
			added++
		case removedLine:
			sign = "- "
			removed++
		default:
		}
		lines = append(lines, line{style: e.style, text: sign + e.text})
	}
	flush()
	return lines, added, removed
}
