package skills

import (
	"strings"
	"testing"
)

// A host in look-alike letters is shown with the letters' numbers.
func TestLookAlikeSourcesAreTold(t *testing.T) {
	for _, s := range []Source{
		{Type: "git", Source: "https://gitһub.com/a/b"},    // a Cyrillic h
		{Type: "git", Source: "https://github.com／evil/b"}, // a full-width solidus
		{Type: "local", Source: "ѕkills"},                  // a Cyrillic s
		{Type: "local", Source: "a\u3164b"},                // an invisible letter
	} {
		if _, detail := entry(s).Shown(); strings.ContainsFunc(detail, func(r rune) bool { return r > 0x7e }) {
			t.Errorf("Shown of %+v: got %s, want only ASCII", s, detail)
		}
	}
	if _, detail := entry(Source{Type: "local", Source: "/home/jürgen/用户"}).Shown(); !strings.HasPrefix(detail, "local /home/jürgen/用户") {
		t.Errorf("Shown: got %s, want the folder as written", detail)
	}
}
