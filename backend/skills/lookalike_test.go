package skills

import (
	"strings"
	"testing"
)

// A host in letters that only look like those of another one is told by their numbers.
func TestLookAlikeSourcesAreTold(t *testing.T) {
	for _, s := range []Source{
		{Type: "git", Source: "https://gitһub.com/a/b"},    // a Cyrillic h
		{Type: "git", Source: "https://github.com／evil/b"}, // a solidus of full width
		{Type: "local", Source: "ѕkills"},                  // a Cyrillic s
		{Type: "local", Source: "a\u3164b"},                // a letter that shows nothing
	} {
		if _, detail := entry(s).Shown(); strings.ContainsFunc(detail, func(r rune) bool { return r > 0x7e }) {
			t.Errorf("%s", detail)
		}
	}
	if _, detail := entry(Source{Type: "local", Source: "/home/jürgen/用户"}).Shown(); !strings.HasPrefix(detail, "local /home/jürgen/用户") {
		t.Errorf("%s", detail)
	}
}
