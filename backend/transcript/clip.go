package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/record"
)

// ClipText returns the text with at most MaxItem bytes, see [Clip].
func ClipText(s string) string { return Clip(s, MaxItem) }

// Clip returns at most so many bytes of a text. A text that was cut ends with a mark that says how many bytes are missing.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n… %d"+ClippedMark, s[:cut], len(s)-cut)
}

// ClippedMark ends every text that was cut by [Clip]. Tool calls had the mark up to projection 11; now they have [Cut].
const ClippedMark = " more bytes, kept in the journal"

// Cut says that bytes are left out of a text of a tool call: the text has its head and its tail. The sides of a diff have their heads alone,
// because the tails of two texts of different lengths do not belong together.
type Cut struct {
	Path  string `json:"path" doc:"JSON pointer of the text in the tool call, such as /content/0/newText"`
	At    int    `json:"at" doc:"Offset in the text at which bytes are left out, in UTF-16 units"`
	Bytes int    `json:"bytes" doc:"Bytes of UTF-8 that are left out; GET …/entries/{entry}/output has them"`
	Lines int    `json:"lines" doc:"Line ends among the bytes"`
}

// headOfItem is the number of bytes of the head of a text that is cut. The tail is longer, since programs print errors at the end.
const headOfItem = MaxItem / 4

//nolint:gochecknoglobals // a constant in all but name
var (
	pointerName  = strings.NewReplacer("~", "~0", "/", "~1") // as RFC 6901 writes a name
	pointedNames = strings.NewReplacer("~1", "/", "~0", "~")
)

// clipper cuts the texts of a tool call, and notes what it has cut.
type clipper struct{ cuts []Cut }

func (c *clipper) text(path, s string) string {
	if len(s) <= MaxItem {
		return s
	}
	head, tail := headEnd(s, headOfItem), tailStart(s, MaxItem-headOfItem)
	if name := path[strings.LastIndexByte(path, '/')+1:]; name == "oldText" || name == "newText" || strings.HasSuffix(path, "/patch/text") {
		head, tail = headEnd(s, MaxItem), len(s)
	}
	c.cuts = append(c.cuts, Cut{Path: path, At: Units(s[:head]), Bytes: tail - head, Lines: strings.Count(s[head:tail], "\n")})
	return s[:head] + s[tail:]
}

func (c *clipper) value(path string, raw json.RawMessage) json.RawMessage {
	return clipRaw(path, raw, c.text)
}

// headEnd returns the end of the first bytes of a text, at most most of them: at a line's end when a line ends late, else at a character.
func headEnd(s string, most int) int {
	if line := strings.LastIndexByte(s[:most], '\n') + 1; line > most/2 {
		return line
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return most
}

// PatchToolCall applies an update to a tool call, within the bounds of an entry.
func PatchToolCall(tool *ToolCall, p acp.ToolCallPatch) {
	var c clipper
	ApplyToolCall(tool, p, c.text, c.value)
	for _, old := range tool.Cut {
		if !replaces(p, old.Path) {
			c.cuts = append(c.cuts, old)
		}
	}
	slices.SortFunc(c.cuts, func(a, b Cut) int { return strings.Compare(a.Path, b.Path) })
	tool.Cut = c.cuts
}

// replaces reports whether an update has another value for the field of a path.
func replaces(p acp.ToolCallPatch, path string) bool {
	field, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch field {
	case "title":
		return p.Title != nil
	case "name":
		return p.Name != nil
	case "kind":
		return p.Kind != nil
	case "status":
		return p.Status != nil
	case "content":
		return p.Content != nil
	case "rawInput":
		return p.RawInput != nil
	case "rawOutput":
		return p.RawOutput != nil
	}
	return false
}

// patch returns the function by which updates change the tool call of an entry.
func (t *Fold) patch(e *Entry) func(*ToolCall, acp.ToolCallPatch) {
	if e.ID != t.Whole {
		return PatchToolCall
	}
	return func(tool *ToolCall, p acp.ToolCallPatch) {
		ApplyToolCall(tool, p, func(_, s string) string { return s }, func(_ string, raw json.RawMessage) json.RawMessage {
			if len(raw) == 0 {
				return raw
			}
			return record.AsJSON(raw)
		})
	}
}

// Seek prepares a new fold for the frames from an entry's first frame on, so that the fold makes that entry again: its tool call with all
// texts whole, and every text of it for Said.
func (t *Fold) Seek(e *Entry) {
	t.Whole = e.ID
	if e.Turn != "" {
		first := journal.Frame{N: e.Seq/PerFrame - 1, At: e.At.Time, Generation: e.Generation, Dir: journal.Note}
		first.Data = record.JSON(Note{Note: NoteTurnBegan, Turn: e.Turn})
		t.Apply(first)
		t.Take()
	}
}

// IsOver reports whether no later frame than f changes an entry.
func IsOver(f journal.Frame, e *Entry) bool {
	var n Note
	if f.Dir != journal.Note || f.N <= e.Seq/PerFrame || json.Unmarshal(f.Data, &n) != nil {
		return false
	}
	return n.Note == NoteStarting || n.Note == NoteTurnBegan && !e.isGoingOn()
}

// Marked returns the call for readers that do not read Cut: a mark stands where bytes are left out.
func (t *ToolCall) Marked() ToolCall {
	return t.rewritten(func(head, tail string, c Cut) string {
		return fmt.Sprintf("%s\n… %d bytes are left out here …\n%s", head, c.Bytes, tail)
	})
}

// Begun returns the call with the head alone of every text that was cut, and [ClippedMark] behind the head, see [Clip].
func (t *ToolCall) Begun() ToolCall {
	return t.rewritten(func(head, tail string, c Cut) string {
		return fmt.Sprintf("%s\n… %d"+ClippedMark, head, c.Bytes+len(tail))
	})
}

// rewritten returns the call with other texts in place of those that were cut.
func (t *ToolCall) rewritten(write func(head, tail string, c Cut) string) ToolCall {
	now := *t
	now.Cut, now.Content = nil, slices.Clone(t.Content)
	for _, c := range t.Cut {
		at := func(s string) string {
			head := bytesOfUnits(s, c.At)
			return write(s[:head], s[head:], c)
		}
		names := strings.Split(c.Path, "/")[1:]
		switch names[0] {
		case "title":
			now.Title = at(now.Title)
		case "name":
			now.Name = at(now.Name)
		case "rawInput":
			now.RawInput = rewriteAt(now.RawInput, names[1:], at)
		case "rawOutput":
			now.RawOutput = rewriteAt(now.RawOutput, names[1:], at)
		case "content":
			if n, err := strconv.Atoi(names[1]); err == nil && n < len(now.Content) {
				now.Content[n] = rewriteAt(now.Content[n], names[2:], at)
			}
		}
	}
	return now
}

// rewriteAt returns a JSON value with another text in place of the text to which the names of a JSON pointer lead.
func rewriteAt(raw json.RawMessage, names []string, text func(string) string) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	now, err := json.Marshal(rewriteValue(v, names, text))
	if err != nil {
		return raw
	}
	return now
}

func rewriteValue(v any, names []string, text func(string) string) any {
	if s, ok := v.(string); ok && len(names) == 0 {
		return text(s)
	}
	if len(names) == 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if name := pointedNames.Replace(names[0]); v[name] != nil {
			v[name] = rewriteValue(v[name], names[1:], text)
		}
	case []any:
		if n, err := strconv.Atoi(names[0]); err == nil && n >= 0 && n < len(v) {
			v[n] = rewriteValue(v[n], names[1:], text)
		}
	}
	return v
}

// TextAt returns the text of the tool call to which a JSON pointer leads, such as the path of a [Cut].
func (t *ToolCall) TextAt(path string) (text string, found bool) {
	names := strings.Split(path, "/")
	if len(names) < 2 || names[0] != "" {
		return "", false
	}
	take := func(s string) string {
		text, found = s, true
		return s
	}
	switch names[1] {
	case "title":
		take(t.Title)
	case "rawInput":
		rewriteAt(t.RawInput, names[2:], take)
	case "rawOutput":
		rewriteAt(t.RawOutput, names[2:], take)
	case "content":
		if len(names) < 3 {
			return "", false
		}
		if n, err := strconv.Atoi(names[2]); err == nil && n >= 0 && n < len(t.Content) {
			rewriteAt(t.Content[n], names[3:], take)
		}
	}
	return text, found
}

// bytesOfUnits returns the byte offset of an offset in UTF-16 units.
func bytesOfUnits(s string, units int) int {
	for i, r := range s {
		if units <= 0 {
			return i
		}
		units -= utf16.RuneLen(r)
	}
	return len(s)
}

// IsPrefixOf reports whether a stored record is the entry itself, or the entry as it was with less text.
func IsPrefixOf(data []byte, e *Entry) bool {
	var stored struct {
		Text    string
		Clipped int
	}
	if json.Unmarshal(data, &stored) != nil || !strings.HasPrefix(e.Text, stored.Text) || stored.Clipped > e.Clipped {
		return false
	}
	before := *e
	before.Text, before.Clipped = stored.Text, stored.Clipped
	return bytes.Equal(data, record.JSON(&before))
}
