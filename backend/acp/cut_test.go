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

		// Bytes that are no UTF-8 alone; the lines are no JSON.
		"bytes":                     {[]string{"\"a\xf0\x9f\"", "\"\x98\x80b\""}, "a😀b", false},
		"bytes one by one":          {[]string{"\"\xf0\"", "\"\x9f\"", "\"\x98\"", "\"\x80\""}, "😀", false},
		"bytes of letters":          {[]string{"\"\xd0\"", "\"\x94\xd0\"", "\"\xb0!\""}, "Да!", false},
		"bytes of three":            {[]string{"\"\xe4\xbd\"", "\"\xa0\xe5\"", "\"\xa5\xbd\""}, "你好", false},
		"bytes without the end":     {[]string{"\"a\xf0\x9f\"", "\"b\""}, "a\ufffdb", false},
		"bytes without the begin":   {[]string{"\"a\"", "\"\x98\x80b\""}, "a\ufffd\ufffdb", false},
		"bytes and another begin":   {[]string{"\"\xf0\"", "\"\xf0\x9f\"", "\"\x98\x80\""}, "\ufffd😀", false},
		"bytes at the end":          {[]string{"\"a\xf0\x9f\""}, "a", true},
		"bytes of Latin 1":          {[]string{"\"caf\xe9 \"", "\"\xe9t\xe9s\""}, "caf\ufffd \ufffdt\ufffds", false},
		"halves as characters":      {[]string{"\"a\xed\xa0\xbd\"", "\"\xed\xb8\x80b\""}, "a😀b", false},
		"halves of both forms":      {[]string{"\"\xed\xa0\xbd\"", `"\ude00"`}, "😀", false},
		"a half that is no byte":    {[]string{`"\ud83d"`, `"\udc80"`}, "💀", false},
		"characters of such halves": {[]string{`"\ud83d\udcf0"`, `"\ud83d\udc80"`}, "📰💀", false},
	} {
		got, half := "", ""
		for _, text := range c.chunks {
			line := []byte(`{"id":1,"result":{"content":{"type":"text","text":` + text + `}}}`)
			e, err := Peek(line)
			if err != nil {
				e = Find(line).Messages[0]
			}
			var m struct{ Result json.RawMessage }
			if err := json.Unmarshal(e.Raw, &m); err != nil {
				t.Fatal(err)
			}
			chunk, err := ParseChunk(m.Result)
			if err != nil {
				t.Fatal(err)
			}
			var more string
			more, half = chunk.Joined(half)
			got += more
		}
		if got != c.want || (half != "") != c.rest {
			t.Errorf("%s: got %q, and a half %t; want %q, %t", name, got, half != "", c.want, c.rest)
		}
	}
}
