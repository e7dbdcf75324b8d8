package app

import (
	"fmt"
	"slices"
	"strings"
)

// The difference of two texts by lines, as frontend/src/content/diff.ts shows it.

const (
	aroundChange = 3    // unchanged lines that are shown beside a change
	mostSteps    = 1500 // of differing lines that are compared; beyond, all of the old is removed and all of the new added
)

// diffLines compares two texts.
func diffLines(before, after string) (lines []line, added, removed int) {
	a, b := splitLines(before), splitLines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	edits := make([]line, 0, len(a)+len(b))
	add := func(style lineStyle, texts []string) {
		for _, text := range texts {
			edits = append(edits, line{style: style, text: text})
		}
	}
	add(plainLine, a[:head])
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	if middle, ok := compareLines(midA, midB); ok {
		edits = append(edits, middle...)
	} else {
		add(removedLine, midA)
		add(addedLine, midB)
	}
	add(plainLine, a[len(a)-tail:])
	return foldSame(edits)
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// compareLines is Myers' greedy algorithm; false when the texts differ too much for it.
func compareLines(a, b []string) ([]line, bool) {
	most := min(len(a)+len(b), mostSteps)
	offset := most + 1
	furthest := make([]int, 2*offset+1)
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(furthest[offset-d-1:offset+d+2]))
		for k := -d; k <= d; k += 2 {
			x := furthest[offset+k-1] + 1
			if k == -d || k != d && furthest[offset+k-1] < furthest[offset+k+1] {
				x = furthest[offset+k+1]
			}
			x += alike(a, b, x, x-k)
			furthest[offset+k] = x
			if x >= len(a) && x-k >= len(b) {
				return walkBack(a, b, trace), true
			}
		}
	}
	return nil, false
}

// alike is how many lines are the same from there on.
func alike(a, b []string, x, y int) int {
	n := 0
	for x+n < len(a) && y+n < len(b) && a[x+n] == b[y+n] {
		n++
	}
	return n
}

// walkBack reads the edits out of the trace; its entry d holds the diagonals from -d-1 to d+1.
func walkBack(a, b []string, trace [][]int) []line {
	var edits []line
	x, y := len(a), len(b)
	for d, reached := range slices.Backward(trace) {
		at := func(k int) int { return reached[k+d+1] }
		k := x - y
		before := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			before = k + 1
		}
		fromX := 0
		if d > 0 {
			fromX = at(before)
		}
		fromY := fromX - before
		if d == 0 {
			fromY = 0
		}
		for x > fromX && y > fromY {
			edits = append(edits, line{style: plainLine, text: a[x-1]})
			x--
			y--
		}
		switch {
		case d == 0:
		case before == k+1:
			edits = append(edits, line{style: addedLine, text: b[y-1]})
		default:
			edits = append(edits, line{style: removedLine, text: a[x-1]})
		}
		x, y = fromX, fromY
	}
	slices.Reverse(edits)
	return edits
}

// foldSame marks the lines as a patch does, and says of what is far from any change only how long it is.
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
