package app

import (
	"fmt"
	"strings"
	"testing"
)

func TestDiffLines(t *testing.T) {
	numbers := func(from, to int) string {
		var out strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintln(&out, i)
		}
		return out.String()
	}
	for name, c := range map[string]struct {
		before, after  string
		want           string
		added, removed int
	}{
		"nothing":       {"", "", "", 0, 0},
		"the same":      {"a\nb\n", "a\nb\n", "  ⋯ 2 unchanged\n", 0, 0},
		"a new file":    {"", "a\nb", "+ a\n+ b\n", 2, 0},
		"all gone":      {"a\nb\n", "", "- a\n- b\n", 0, 2},
		"in the middle": {"a\nb\nc\n", "a\nB\nc\n", "  a\n- b\n+ B\n  c\n", 1, 1},
		"moved":         {"a\nb\nc\n", "b\nc\na\n", "- a\n  b\n  c\n+ a\n", 1, 1},
		"far away": {
			numbers(1, 20), strings.Replace(numbers(1, 20), "10\n", "ten\n", 1),
			"  ⋯ 6 unchanged\n  7\n  8\n  9\n- 10\n+ ten\n  11\n  12\n  13\n  ⋯ 7 unchanged\n", 1, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines, added, removed := diffLines(c.before, c.after)
			var got strings.Builder
			for _, l := range lines {
				got.WriteString(l.text + "\n")
			}
			if got.String() != c.want || added != c.added || removed != c.removed {
				t.Errorf("want %v, added %v and removed %v, got added %d\nremoved %d\n%s", c.want, c.added, c.removed, added, removed, got.String())
			}
		})
	}
	// Too different to be compared: everything is shown all the same.
	lines, added, removed := diffLines(numbers(1, 3000), numbers(5001, 8000))
	if added != 3000 || removed != 3000 || len(lines) != 6000 {
		t.Errorf("+%d −%d in %d lines", added, removed, len(lines))
	}
}

// Whatever the texts are, the lines that are not removed are the new one, and those that are not added are the old one.
func FuzzDiffLines(f *testing.F) {
	f.Add("a\nb\nc", "c\nb\na\n")
	f.Add("", "x")
	f.Add("a\n\n\nb\n", "\n\na\nb\nb")
	f.Fuzz(func(t *testing.T, before, after string) {
		a, b := splitLines(before), splitLines(after)
		edits := compareLines(a, b)
		var was, is []string
		for _, e := range edits {
			if e.style != addedLine {
				was = append(was, e.text)
			}
			if e.style != removedLine {
				is = append(is, e.text)
			}
		}
		if fmt.Sprint(was) != fmt.Sprint(a) || fmt.Sprint(is) != fmt.Sprint(b) {
			t.Fatalf("%q to %q: %+v", before, after, edits)
		}
	})
}
