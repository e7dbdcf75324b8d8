package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"deskhand/backend/journal"
	"deskhand/backend/permission"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// mostOutput is the number of bytes of an entry's text that are read. A longer text is read as far as there.
const mostOutput = 256 << 20

// OutputPage is a page of an output of an entry.
type OutputPage struct {
	PartPage
	Previous int `json:"previous" doc:"Where the page before begins; 0 on the first page"`
	Lines    int `json:"lines" doc:"Of the whole text"`
}

// OutputMatches are lines of an output that hold a text.
type OutputMatches struct {
	Items []OutputMatch `json:"items"`
	More  bool          `json:"more,omitempty" doc:"There are more lines than the limit"`
}

// OutputMatch is a line of an output that holds the text that was looked for.
type OutputMatch struct {
	Offset int    `json:"offset" doc:"Of the line, in bytes of UTF-8; a page may begin there"`
	Line   int    `json:"line" doc:"Number of the line, from 1"`
	Text   string `json:"text" doc:"The line without escape sequences; the begin of a long line"`
}

// OutputText returns the whole text of an output: of a program, when path is empty, or the text to which a JSON pointer leads in a tool call.
// A pointer to a diff gives the lines of its patch. The text is folded anew from the frames between the entry's first and its last.
func (i *Inspector) OutputText(ctx context.Context, session, entry, path string) (string, error) {
	e, err := i.entries.ByID(ctx, session, entry)
	if err != nil {
		return "", err
	}
	if e == nil {
		return "", fmt.Errorf("entry %s: %w", entry, refusal.ErrNotFound)
	}
	text, found, err := i.wholeText(ctx, e, path)
	if err == nil && !found {
		err = fmt.Errorf("%s of entry %s: %w", path, entry, refusal.ErrNotFound)
	}
	return i.deps.Redactor.KnownOnly(text), err
}

func (i *Inspector) wholeText(ctx context.Context, e *transcript.Entry, path string) (text string, found bool, err error) {
	fold := transcript.New(e.Session, transcript.Facts{})
	fold.Seek(e)
	var printed strings.Builder
	fold.Said = func(of *transcript.Entry, more string) {
		if of.ID == e.ID {
			printed.WriteString(more[:min(len(more), max(0, mostOutput-printed.Len()))])
		}
	}
	var now *transcript.Entry
	err = i.journal.Range(ctx, e.Session, journal.Range{Low: e.Seq / transcript.PerFrame, High: math.MaxInt64, Notes: true}, func(s journal.Stored) bool {
		if i.journal.Decode(&s) != nil {
			return true // the rest is shown without a frame that cannot be read
		}
		fold.Apply(s.Frame)
		changes, _ := fold.Take()
		for _, c := range changes {
			if c.Entry.ID == e.ID {
				now = c.Entry
			}
		}
		return now == nil || !transcript.IsOver(s.Frame, now)
	})
	switch {
	case err != nil || now == nil:
		return "", false, err
	case path == "":
		return printed.String(), now.Tool == nil, nil
	case now.Tool == nil:
		return "", false, nil
	}
	if patch, ok := patchText(now.Tool, path); ok {
		return patch, true, nil
	}
	text, found = now.Tool.TextAt(path)
	return text, found, nil
}

// patchText returns the lines of the diff at a path of a tool call.
func patchText(tool *transcript.ToolCall, path string) (text string, found bool) {
	var n int
	if _, err := fmt.Sscanf(path, "/content/%d", &n); err != nil || path != fmt.Sprintf("/content/%d", n) || n < 0 || n >= len(tool.Content) {
		return "", false
	}
	call := permission.Call{Kind: tool.Kind, Content: []json.RawMessage{tool.Content[n]}}
	for _, p := range call.Parts("") {
		if p.Kind == "diff" {
			return p.Text, true
		}
	}
	return "", false
}

// OutputPage returns a page of at most limit bytes of an output. The offset is 0, or an offset that a page or a match has told.
func (i *Inspector) OutputPage(ctx context.Context, session, entry, path string, offset, limit int) (OutputPage, error) {
	text, err := i.OutputText(ctx, session, entry, path)
	if err != nil {
		return OutputPage{}, err
	}
	if offset > len(text) {
		return OutputPage{}, fmt.Errorf("entry %s at %d: %w", entry, offset, refusal.ErrNotFound)
	}
	page := OutputPage{PartPage: pageOf(text, offset, limit), Lines: countLines(text)}
	page.Previous = pageStart(text[:page.Offset], limit)
	return page, nil
}

// pageStart returns the start of a page of at most limit bytes that ends with the text.
func pageStart(text string, limit int) int {
	if len(text) <= limit {
		return 0
	}
	from := len(text) - limit
	if line := strings.IndexByte(text[from:], '\n'); line >= 0 && line < limit/2 {
		return from + line + 1
	}
	return from // pageOf moves to the start of a character
}

// longestMatch is the number of bytes of a line that are returned with a match.
const longestMatch = 400

// FindOutput returns the lines of an output that hold a text, regardless of the case of letters, at most limit of them.
func (i *Inspector) FindOutput(ctx context.Context, session, entry, path, query string, limit int) (OutputMatches, error) {
	text, err := i.OutputText(ctx, session, entry, path)
	if err != nil {
		return OutputMatches{}, err
	}
	found := OutputMatches{Items: []OutputMatch{}}
	query = strings.ToLower(query)
	offset, number := 0, 1
	for line := range strings.Lines(text) {
		if shown := strings.TrimRight(transcript.Printed(line), "\r\n"); strings.Contains(strings.ToLower(shown), query) {
			if len(found.Items) == limit {
				found.More = true
				break
			}
			if len(shown) > longestMatch {
				shown = shown[:pageEnd(shown, longestMatch)]
			}
			found.Items = append(found.Items, OutputMatch{Offset: offset, Line: number, Text: shown})
		}
		offset += len(line)
		number++
	}
	return found, nil
}
