package cli

import (
	"strings"
	"testing"
)

func TestLineDiffMarksChangedLines(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][2]string{
		"  a":                     {"a", "a"},
		"- a\n+ b":                {"a", "b"},
		"  a\n+ x\n  b":           {"a\nb", "a\nx\nb"},
		"  a\n- b\n  c\n+ d":      {"a\nb\nc", "a\nc\nd"},
		"- a\n  b\n+ c\n  d\n- e": {"a\nb\nd\ne", "b\nc\nd"},
	} {
		if got := strings.Join(lineDiff(texts[0], texts[1]), "\n"); got != want {
			t.Errorf("%q to %q:\n%s", texts[0], texts[1], got)
		}
	}
	many := strings.Repeat("x\n", 5000)
	if got := lineDiff("a\n"+many, strings.Repeat("y\n", 5000)); len(got) < 10000 || got[0] != "- a" {
		t.Errorf("%d lines", len(got))
	}
}
