package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"deskhand/backend/attachment"
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// What agents give to people, and what they take of what people have given: the parts of our tools that are the conversation's. A file that
// is given is in the blob store and in the journal before anybody hears of it.

// What an agent may give at a time, unless the settings say otherwise.
const (
	usualGiven     = 8  // MiB of one file
	usualGivenCall = 16 // MiB of one call
)

// AddFiles shows files of an agent to people: each is an entry of the transcript and an event of the bus, in order. All are checked
// before any is read, and all are kept before any is shown.
func (c *Client) AddFiles(ctx context.Context, session string, list []attachment.Wanted) ([]attachment.File, error) {
	v, err := c.conversation(ctx, session)
	if err != nil {
		return nil, err
	}
	if err := c.ReadOnly(); err != nil {
		return nil, err
	}
	s, at := v.look(), v.host()
	if at.Directories == nil {
		return nil, &RefusedError{Code: refusedElsewhere, Params: map[string]string{"name": ""}}
	}
	set, roots := c.Settings(), at.Directories.Roots(s.Cwd, s.Directories)
	var open func(path string) (*os.File, error)
	if at.Files != nil { // a file that agents may not read they may not give either
		open = func(path string) (*os.File, error) { return at.Files.Open(roots, path) }
	}
	read, err := attachment.Outgoing(ctx, s.Cwd, roots, list, int64(set.AttachmentFileMiB)*mib, int64(set.AttachmentCallMiB)*mib, open)
	if err != nil {
		return nil, err
	}
	given, err := c.keepGiven(ctx, read)
	if err != nil {
		return nil, err
	}
	err = v.call(ctx, func() error {
		for _, a := range given {
			v.note(transcript.Note{Note: transcript.NoteGiven, Attachments: []transcript.Attachment{a}})
		}
		v.row.Unread = true
		v.touched()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return filesOf(given), nil
}

// keepGiven puts the bytes of files into the blob store and writes down what they are.
func (c *Client) keepGiven(ctx context.Context, read []attachment.Read) ([]transcript.Attachment, error) {
	given := make([]transcript.Attachment, len(read))
	err := c.cfg.Store.Blobs.Keep(func() (err error) {
		for i, r := range read {
			if err := ctx.Err(); err != nil {
				return err
			}
			f := r.File
			if f.SHA256, err = c.cfg.Store.Blobs.Put(r.Data); err != nil {
				return fmt.Errorf("%w: %w", ErrStorage, err)
			}
			f.Blob, f.ID = true, ""
			given[i] = attachmentOf(f)
		}
		return c.keepAttachments(ctx, given)
	})
	return given, err
}

// InboundFiles is what came with the newest message of a person that has a surface's attachments; where none has, with the newest that has
// files of ours. cwd is the session's directory.
func (c *Client) InboundFiles(ctx context.Context, session string) (items []attachment.SentinelItem, own []attachment.File, cwd string, err error) {
	s, err := c.Get(ctx, session)
	if err != nil {
		return nil, nil, "", err
	}
	before := int64(lastSeq)
	for {
		notes, last, err := c.notesBefore(ctx, session, before)
		if err != nil {
			return nil, nil, "", err
		}
		for _, n := range notes {
			items, files := inbound(n)
			if items != nil {
				return items, nil, s.Cwd, nil
			}
			if own == nil {
				own = files
			}
		}
		if len(notes) == 0 {
			return nil, own, s.Cwd, nil
		}
		before = last
	}
}

// inbound is what came with the message that the note tells of; nothing of another note.
func inbound(n transcript.Note) (items []attachment.SentinelItem, own []attachment.File) {
	if n.Note != transcript.NoteTurnBegan && n.Note != transcript.NoteSteered {
		return nil, nil
	}
	if items, found := attachment.ParseSentinel(textOfPrompt(n.Prompt)); found {
		return items, nil
	}
	if len(n.Attachments) > 0 {
		own = filesOf(n.Attachments)
	}
	return nil, own
}

// notesBefore are some of the journal's notes, the newest first, and the number of the last of them.
func (c *Client) notesBefore(ctx context.Context, session string, before int64) (notes []transcript.Note, last int64, err error) {
	err = c.journal.Notes(ctx, session, before, func(f journal.Frame, damaged error) {
		last = f.N
		var n transcript.Note
		if damaged != nil || json.Unmarshal(f.Data, &n) != nil { // it is passed over here, and told elsewhere
			n = transcript.Note{}
		}
		notes = append(notes, n)
	})
	return notes, last, err
}

// ReadFile gives the bytes of a file that was taken in.
func (c *Client) ReadFile(ctx context.Context, f attachment.File) ([]byte, error) {
	return c.bytesOf(ctx, f)
}

// bytesOf are the bytes of a file: those that were kept, else those that it has now.
func (c *Client) bytesOf(ctx context.Context, f attachment.File) ([]byte, error) {
	r, err := c.contentOf(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(store.While(ctx, io.LimitReader(r, mostKept+1)))
	if len(data) > mostKept {
		return nil, fmt.Errorf("%q is too long by now", f.Filename)
	}
	return data, err
}

// mostKept is more than any file that is taken in.
const mostKept = 64 << 20

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func (c *Client) contentOf(f attachment.File) (io.ReadSeekCloser, error) {
	if f.SHA256 != "" {
		data, err := c.Blob(f.SHA256)
		return inMemory{bytes.NewReader(data)}, err
	}
	file, err := attachment.Open(f)
	if err != nil {
		return nil, refuseFile(err)
	}
	return file, nil
}

// Content opens what is in an attachment.
func (c *Client) Content(ctx context.Context, id string) (transcript.Attachment, io.ReadSeekCloser, error) {
	a, err := c.Attachment(ctx, id)
	if err != nil {
		return a, nil, err
	}
	r, err := c.contentOf(a.File())
	return a, r, err
}

// SessionFile is a file of a conversation.
type SessionFile struct { //nolint:revive // it is what the client API calls it
	Entry      string                `json:"entry"`
	Seq        int64                 `json:"seq" doc:"Of the entry"`
	Turn       string                `json:"turn,omitempty"`
	Direction  string                `json:"direction" enum:"in,out" doc:"in: from a person to the agent"`
	At         Time                  `json:"at"`
	Attachment transcript.Attachment `json:"attachment"`
}

// SessionFiles are the files of a conversation, the newest entry first. before is the Next of the page above. A page may be longer than
// limit by what is left of an entry.
func (c *Client) SessionFiles(ctx context.Context, id string, before int64, limit int) (Page[SessionFile], error) {
	if _, err := c.conversation(ctx, id); err != nil {
		return Page[SessionFile]{}, err
	}
	if before <= 0 {
		before = lastSeq
	}
	entries, err := query(ctx, c.cfg.Store.Read(), scanJSON[transcript.Entry],
		`SELECT data FROM entry WHERE session = ? AND seq < ? AND attachments > 0 ORDER BY seq DESC LIMIT ?`, id, before, limit+1)
	page := Page[SessionFile]{Items: []SessionFile{}}
	for i := range entries {
		e := &entries[i]
		if len(page.Items) >= limit {
			page.Next = fmt.Sprint(entries[i-1].Seq)
			break
		}
		direction := "in"
		if e.Kind == "attachment" {
			direction = "out"
		}
		for _, a := range e.Attachments {
			page.Items = append(page.Items, SessionFile{e.ID, e.Seq, e.Turn, direction, e.At, a})
		}
	}
	return page, err
}

// Thumbnail is a small PNG of an image, at most side pixels wide and high. A disk that does not answer soon is not waited for: a page shows many
// pictures, and asks for few of them at a time.
func (c *Client) Thumbnail(ctx context.Context, id string, side int) ([]byte, error) {
	a, err := c.Attachment(ctx, id)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(a.MimeType, "image/") {
		return nil, bad("attachment.no_image", "name", a.Filename)
	}
	if a.SHA256 == "" { // else those of a disk that does not answer would hold up all others
		if l, _ := c.files.Begin(a.Path, host.NoFile(a.Path)); !c.files.Await(l, host.PatientMany) {
			return nil, &RefusedError{Code: refusedUnreadable, Params: map[string]string{"name": a.Filename, "detail": "its disk does not answer"}}
		}
	}
	png, err := attachment.Thumbnail(ctx, func(ctx context.Context) ([]byte, error) { return c.bytesOf(ctx, a.File()) }, side)
	return png, refuseFile(err)
}
