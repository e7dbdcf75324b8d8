package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/record"
)

func TestPrinted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\x1b[1;31mred\x1b[m \x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b[2K\x1b(B": "red xlink",
		"a\r\nb\r\n":            "a\nb\n",
		"1%\r2%\r\x1b[Kdone\nx": "done\nx",
		"a\x1b[3":               "a[3",
		"\x1b]0;no end \x1b":    "]0;no end ",
		"\x1b(B\x1b=\x1bM.":     "=.",
	} {
		if got := Printed(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What of an entry can be found is no longer than a message, and one text more.
func TestWhatCanBeFoundIsBounded(t *testing.T) {
	t.Parallel()
	var list []json.RawMessage
	for n := range 20 {
		list = append(list, record.JSON(map[string]any{"content": map[string]string{"text": strings.Repeat(string(rune('a'+n)), MaxItem)}}))
	}
	tool := ToolCall{Content: list, RawOutput: record.JSON(map[string]string{"output": "the end"})}
	if n := len(tool.searchText()); n < MaxText || n > MaxText+MaxItem+1 {
		t.Errorf("%d bytes", n)
	}
}
