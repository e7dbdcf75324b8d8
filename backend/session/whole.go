package session

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
	"deskhand/backend/transcript"
)

// A record holds a bounded part of a tool call. What somebody decides about is read from the journal instead, which has all of it: by the
// rules, by the marks of danger, and in pages by whoever shows it.

// RequestPart is one thing that a permission is about, without its text.
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

// readWhole judges a request by the whole of its tool call, part of which may be in the step that is not written yet. Where the whole cannot
// be read, a person is asked.
func (v *conversation) readWhole(r *openRequest) {
	whole, err := v.c.wholeRequest(context.WithoutCancel(v.c.ctx), r.Request, v.step.frames)
	if err != nil {
		v.c.cfg.Logger.Error("a long request cannot be read from the journal", "session", v.id, "request", r.ID, "error", err)
		return
	}
	r.Choice = r.Choice || permission.IsChoice(whole.offer(nil))
}

// wholeRequest is a request with the whole of its tool call. pending are frames that the journal does not have yet.
func (c *core) wholeRequest(ctx context.Context, r Request, pending []journal.Frame) (Request, error) {
	if !r.Clipped || r.Tool == nil {
		return r, nil
	}
	frames, err := c.framesOf(ctx, &r)
	if err != nil {
		return r, err
	}
	tool := *r.Tool
	tool.Title, tool.RawInput, tool.Content = "", nil, nil
	found := false
	for _, f := range append(frames, pending...) {
		if f.N < r.Told || f.N > r.Frame {
			continue
		}
		if patch, ok := patchOf(f, r.ToolCallID); ok {
			found = true
			transcript.ApplyToolCall(&tool, patch, func(s string) string { return s }, validRaw)
		}
	}
	if !found {
		return r, fmt.Errorf("frame %d: %w", r.Frame, ErrNotFound)
	}
	r.Tool, r.Clipped = &tool, false
	return r, nil
}

// framesOf are the messages of the agent that may tell of a request's tool call, as far as the journal has them.
func (c *core) framesOf(ctx context.Context, r *Request) (frames []journal.Frame, err error) {
	err = c.journal.Between(ctx, r.Session, r.Told, r.Frame, journal.In, func(f journal.Frame) {
		if _, ok := patchOf(f, r.ToolCallID); ok {
			frames = append(frames, f)
		}
	})
	return frames, err
}

// patchOf is what a message of the agent tells of a tool call.
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

// WholeRequest is a request with all of what is decided in its Tool, however long that is.
func (c *Client) WholeRequest(ctx context.Context, r Request) (Request, error) {
	return c.wholeRequest(ctx, r, nil)
}

// partsOf are the parts of a permission, with their texts.
func (c *Client) partsOf(ctx context.Context, id string) ([]permission.Part, error) {
	found, err := query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id = ?`, id)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Kind != kindPermission || found[0].Tool == nil {
		return nil, fmt.Errorf("request %s: %w", id, ErrNotFound)
	}
	r, err := c.wholeRequest(ctx, found[0], nil)
	if err != nil {
		return nil, err
	}
	s, err := c.Get(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	list := r.call().Parts(s.Cwd)
	for i := range list {
		list[i].Text = c.secret.KnownOnly(list[i].Text)
	}
	return list, nil
}

// RequestParts are the parts of what a permission asks for. The text of each is given in pages, see [Client.RequestPartPage].
func (c *Client) RequestParts(ctx context.Context, id string) ([]RequestPart, error) {
	list, err := c.partsOf(ctx, id)
	parts := make([]RequestPart, len(list))
	for i, p := range list {
		parts[i] = RequestPart{
			Kind: p.Kind, Path: p.Path, Created: p.Created, Added: p.Added, Removed: p.Removed, Hidden: p.Hides(),
			Size: len(p.Text), Letters: utf8.RuneCountInString(p.Text), Lines: countLines(p.Text),
		}
	}
	return parts, err
}

// RequestPartPage is a page of at most limit bytes of a part, from an offset on that a page before gave.
func (c *Client) RequestPartPage(ctx context.Context, id string, part, offset, limit int) (PartPage, error) {
	list, err := c.partsOf(ctx, id)
	if err != nil {
		return PartPage{}, err
	}
	if part >= len(list) || offset > len(list[part].Text) {
		return PartPage{}, fmt.Errorf("part %d of request %s at %d: %w", part, id, offset, ErrNotFound)
	}
	text := list[part].Text
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	page := PartPage{Offset: offset, Size: len(text), Line: countLines(text[:offset]) + 1, Text: text[offset:]}
	if offset > 0 && text[offset-1] != '\n' {
		page.Line-- // it goes on with a line
	}
	if end := pageEnd(page.Text, limit); end < len(page.Text) {
		page.Text, page.Next = page.Text[:end], offset+end
	}
	return page, nil
}

// pageEnd is where a page of at most limit bytes ends: behind a line, or else behind a character.
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

// countLines counts the lines of a text; one without an end counts.
func countLines(text string) int {
	n := bytes.Count([]byte(text), []byte{'\n'})
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}
