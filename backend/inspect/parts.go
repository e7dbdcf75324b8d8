package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/permission"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// Call is the tool call of a permission request. The record of the request holds a bounded part of the call; the journal has all of it.
type Call struct {
	Session string
	Cwd     string              // of the session
	Told    int64               // the number of the frame that first told of the call
	Frame   int64               // the number of the frame of the request
	Clipped bool                // Tool is not the whole call
	Tool    transcript.ToolCall // as the record of the request has the call
}

// WholeCall returns a tool call of any length, as the journal and the frames in pending tell; pending has the frames that are not stored yet.
func WholeCall(ctx context.Context, j journal.Journal, c Call, pending []journal.Frame) (transcript.ToolCall, error) {
	if !c.Clipped {
		return c.Tool, nil
	}
	tool, found := c.Tool, false
	tool.Title, tool.RawInput, tool.Content = "", nil, nil
	apply := func(f journal.Frame) {
		if f.N < c.Told || f.N > c.Frame {
			return
		}
		if patch, ok := patchOf(f, c.Tool.ToolCallID); ok {
			found = true
			transcript.ApplyToolCall(&tool, patch, func(_, s string) string { return s }, func(_ string, raw json.RawMessage) json.RawMessage { return validRaw(raw) })
		}
	}
	if err := j.Between(ctx, c.Session, c.Told, c.Frame, journal.In, apply); err != nil {
		return c.Tool, err
	}
	for _, f := range pending {
		apply(f)
	}
	if !found {
		return c.Tool, fmt.Errorf("frame %d: %w", c.Frame, refusal.ErrNotFound)
	}
	return tool, nil
}

// patchOf returns what a message of the agent tells of a tool call.
func patchOf(f journal.Frame, id string) (acp.ToolCallPatch, bool) {
	if f.Dir != journal.In || !bytes.Contains(f.Data, []byte(`oolCallId`)) {
		return acp.ToolCallPatch{}, false
	}
	var m struct {
		Params struct {
			Update   json.RawMessage `json:"update"`
			ToolCall json.RawMessage `json:"toolCall"`
		} `json:"params"`
	}
	if json.Unmarshal(f.Data, &m) != nil {
		return acp.ToolCallPatch{}, false
	}
	for _, body := range []json.RawMessage{m.Params.ToolCall, m.Params.Update} {
		if patch, err := acp.ParseToolCall(body); err == nil && patch.ToolCallID == id {
			return patch, true
		}
	}
	return acp.ToolCallPatch{}, false
}

// validRaw is record.AsJSON for a value that may be absent.
func validRaw(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	return record.AsJSON(raw)
}

// RequestPart is a part of the content of a permission request, without its text.
type RequestPart struct {
	Kind    string `json:"kind" enum:"title,command,diff,text,places,input" doc:"title: the agent's own words, where it tells nothing else; text: a text beside the call, such as a plan; places: the paths that it names"`
	Path    string `json:"path,omitempty" doc:"Of a diff"`
	Created bool   `json:"created,omitempty" doc:"Of a diff: the file is new"`
	Added   int    `json:"added,omitempty" doc:"Lines of a diff"`
	Removed int    `json:"removed,omitempty"`
	Size    int    `json:"size" doc:"Of the text, in bytes of UTF-8"`
	Letters int    `json:"letters" doc:"Of the text, in characters"`
	Lines   int    `json:"lines"`
	Hidden  bool   `json:"hidden,omitempty" doc:"It holds characters that are not seen"`
}

// PartPage is a page of the text of a part.
type PartPage struct {
	Text   string `json:"text" doc:"Ends at the end of a line where one ends within the page; of a diff a line begins with +, -, a blank or @@"`
	Offset int    `json:"offset" doc:"In bytes of UTF-8"`
	Next   int    `json:"next,omitempty" doc:"Where the next page begins; absent on the last page"`
	Size   int    `json:"size" doc:"Of the whole text"`
	Line   int    `json:"line" doc:"The number of its first line, from 1"`
}

// parts returns the parts of a permission request, with their texts.
func (i *Inspector) parts(ctx context.Context, request string) ([]permission.Part, error) {
	c, err := i.deps.Call(ctx, request)
	if err != nil {
		return nil, err
	}
	tool, err := WholeCall(ctx, i.journal, c, nil)
	if err != nil {
		return nil, err
	}
	call := permission.Call{Title: tool.Title, Kind: tool.Kind, RawInput: tool.RawInput, Content: tool.Content}
	for _, l := range tool.Locations {
		call.Places = append(call.Places, l.Path)
	}
	list := call.Parts(c.Cwd)
	for at := range list {
		list[at].Text = i.deps.Redactor.KnownOnly(list[at].Text)
	}
	return list, nil
}

// Parts returns the parts of a permission request. The texts of the parts are in pages, see [Inspector.PartPage].
func (i *Inspector) Parts(ctx context.Context, request string) ([]RequestPart, error) {
	list, err := i.parts(ctx, request)
	parts := make([]RequestPart, len(list))
	for at, p := range list {
		parts[at] = RequestPart{
			Kind: p.Kind, Path: p.Path, Created: p.Created, Added: p.Added, Removed: p.Removed, Hidden: p.Hides(),
			Size: len(p.Text), Letters: utf8.RuneCountInString(p.Text), Lines: countLines(p.Text),
		}
	}
	return parts, err
}

// PartPage returns a page of at most limit bytes of a part. The offset is 0, or the next page's offset of another PartPage.
func (i *Inspector) PartPage(ctx context.Context, request string, part, offset, limit int) (PartPage, error) {
	list, err := i.parts(ctx, request)
	if err != nil {
		return PartPage{}, err
	}
	if part >= len(list) || offset > len(list[part].Text) {
		return PartPage{}, fmt.Errorf("part %d of request %s at %d: %w", part, request, offset, refusal.ErrNotFound)
	}
	return pageOf(list[part].Text, offset, limit), nil
}

// pageOf returns the page of a text that begins at an offset within the text.
func pageOf(text string, offset, limit int) PartPage {
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	page := PartPage{Offset: offset, Size: len(text), Line: countLines(text[:offset]) + 1, Text: text[offset:]}
	if offset > 0 && text[offset-1] != '\n' {
		page.Line-- // the page begins within a line
	}
	if end := pageEnd(page.Text, limit); end < len(page.Text) {
		page.Text, page.Next = page.Text[:end], offset+end
	}
	return page
}

// pageEnd returns the end of a page of at most limit bytes: behind a line, or else behind a character.
func pageEnd(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	if end := bytes.LastIndexByte([]byte(text[:limit]), '\n') + 1; end > limit/2 {
		return end
	}
	end := limit
	for end > 1 && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// countLines counts the lines of a text; a last line without a newline counts.
func countLines(text string) int {
	n := bytes.Count([]byte(text), []byte{'\n'})
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}
