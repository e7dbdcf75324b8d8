package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// numbered returns a text of so many lines.
func numbered(lines int) string {
	var b strings.Builder
	for n := range lines {
		fmt.Fprintf(&b, "line %d ü\n", n)
	}
	return b.String()
}

// textOf returns the text of a content block of a tool call.
func textOf(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var c struct{ Content struct{ Text string } }
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatalf("Unmarshal: got %v, want a block", err)
	}
	return c.Content.Text
}

func TestLongOutputKeepsItsHeadAndItsTail(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	long := numbered(20_000)
	s.update(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"T","content":[{"type":"content","content":{"type":"text","text":%q}}]}`, long)
	tool := s.fold.tools["1"].Tool
	text := textOf(t, tool.Content[0])
	if !strings.HasPrefix(text, "line 0 ü\n") || !strings.HasSuffix(text, "line 19999 ü\n") || strings.Contains(text, "…") {
		t.Errorf("got %q…%q, want the first and the last line and no mark", text[:20], text[len(text)-20:])
	}
	if len(tool.Cut) != 1 {
		t.Fatalf("got the cuts %v, want one", tool.Cut)
	}
	c, at := tool.Cut[0], bytesOfUnits(text, tool.Cut[0].At)
	if c.Path != "/content/0/content/text" || c.Bytes != len(long)-len(text) || text[at-1] != '\n' || c.Lines+strings.Count(text, "\n") != 20_000 {
		t.Errorf("got the cut %+v in a text of %d bytes, want one at the end of a line that counts what is missing", c, len(text))
	}
	if got := textOf(t, tool.Marked().Content[0]); !strings.Contains(got, fmt.Sprintf("… %d bytes are left out here …\nline", c.Bytes)) || !strings.HasSuffix(got, "19999 ü\n") {
		t.Errorf("Marked: got %d bytes, want a mark between the head and the tail", len(got))
	}
	if got := textOf(t, tool.Begun().Content[0]); !strings.HasSuffix(got, fmt.Sprintf("\n… %d", len(long)-at)+ClippedMark) {
		t.Errorf("Begun: got an end of %q, want the mark", got[len(got)-60:])
	}
	if !tool.Clipped() {
		t.Error("Clipped: got false, want true")
	}

	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","content":[],"rawOutput":{"a/b":%q}}`, long)
	if len(tool.Cut) != 1 || tool.Cut[0].Path != "/rawOutput/a~1b" || tool.Clipped() {
		t.Errorf("after an update: got the cuts %v, want that of the output alone", tool.Cut)
	}
	if got, found := tool.TextAt("/rawOutput/a~1b"); !found || !strings.HasPrefix(got, "line 0") {
		t.Errorf("TextAt: got %d bytes, %v; want the output", len(got), found)
	}
}

func TestSeekFoldsAnEntryWhole(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.begin("go")
	long := numbered(20_000)
	s.chunk("agent_message_chunk", "", "before")
	from := len(s.frames)
	for _, status := range []string{"pending", "completed"} {
		s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":%q,"rawOutput":%q}`, status, long)
	}
	e := s.fold.tools["1"]
	again := New(s.fold.session, Facts{})
	again.Seek(e)
	for _, f := range s.frames[from:] {
		again.Apply(f)
	}
	changes, _ := again.Take()
	if len(changes) != 1 || changes[0].Entry.ID != e.ID || changes[0].Entry.Turn != e.Turn {
		t.Fatalf("got %d changes, want the entry of the call", len(changes))
	}
	if got, _ := changes[0].Entry.Tool.TextAt("/rawOutput"); got != long {
		t.Errorf("got an output of %d bytes, want %d", len(got), len(long))
	}
}
