package acp

import (
	"encoding/json"
	"testing"
)

func TestJoinedRestoresCutCharacters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string // as JSON
		want   string
		rest   bool // the last ends with a half
	}{
		"not at all":        {[]string{`"a"`, `"\ud83d\ude00"`, `"b"`}, "a😀b", false},
		"in the middle":     {[]string{`"a\ud83d"`, `"\ude00b"`}, "a😀b", false},
		"alone":             {[]string{`"\uD83D"`, `"\uDE00"`}, "😀", false},
		"twice":             {[]string{`"\ud83d"`, `"\ude00\ud83d"`, `"\ude01"`}, "😀😁", false},
		"without the end":   {[]string{`"a\ud83d"`, `"b"`}, "a\ufffdb", false},
		"without the begin": {[]string{`"a"`, `"\ude00b"`}, "a\ufffdb", false},
		"two beginnings":    {[]string{`"\ud83d"`, `"\ud83d"`, `"\ude00"`}, "\ufffd😀", false},
		"at the end":        {[]string{`"a\ud83d"`}, "a", true},
		"that is U+FFFD":    {[]string{`"a\ufffd"`, `"\ufffdb"`}, "a\ufffd\ufffdb", false},
		"that is a text":    {[]string{`"a\\ud83d"`, `"\\ude00"`}, `a\ud83d\ude00`, false},
		"behind one":        {[]string{`"a\\\ud83d"`, `"\ude00"`}, `a\😀`, false},
	} {
		got, half := "", rune(0)
		for _, text := range c.chunks {
			chunk, err := ParseChunk(json.RawMessage(`{"content":{"type":"text","text":` + text + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			var more string
			more, half = chunk.Joined(half)
			got += more
		}
		if got != c.want || (half != 0) != c.rest {
			t.Errorf("%s: got %q, and a half %t; want %q, %t", name, got, half != 0, c.want, c.rest)
		}
	}
}
