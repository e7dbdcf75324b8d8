package attachments

import (
	"context"
	"fmt"
	"math"
	"os"

	"deskhand/backend/attachment"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// Give makes attachments of files that the agent of a session gives to people: all of them, or none. Every file is checked before the first is
// read, and the bytes are stored before Give returns. The limits are bytes, of a file and of all files.
func (l *Library) Give(ctx context.Context, w Where, list []attachment.Wanted, perFile, perCall int64) ([]transcript.Attachment, error) {
	if err := l.deps.Writable(); err != nil {
		return nil, err
	}
	if w.Host.Directories == nil {
		return nil, &refusal.Error{Code: refusedElsewhere, Params: map[string]string{"name": ""}}
	}
	roots := w.roots()
	var open func(path string) (*os.File, error)
	if w.Host.Files != nil { // an agent may give no file that agents may not read
		open = func(path string) (*os.File, error) { return w.Host.Files.Open(roots, path) }
	}
	read, err := attachment.Outgoing(ctx, w.Cwd, roots, list, perFile, perCall, open)
	if err != nil {
		return nil, err
	}
	given := make([]transcript.Attachment, len(read))
	err = l.deps.Store.Blobs.Keep(func() (err error) {
		for i, r := range read {
			if err := ctx.Err(); err != nil {
				return err
			}
			f := r.File
			if f.SHA256, err = l.deps.Store.Blobs.Put(r.Data); err != nil {
				return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
			}
			f.Blob, f.ID = true, ""
			given[i] = recordOf(f)
		}
		return l.keep(ctx, given)
	})
	return given, err
}

// Inbound is the files of a person's message.
type Inbound struct {
	Items []attachment.SentinelItem // of a message from a surface that names its files by URLs
	Own   []attachment.File         // of any other message
	Cwd   string                    // the directory of the session
}

// Inbound returns the files of the newest message with files: of a surface's message when the session has one, and of any other message
// otherwise.
func (l *Library) Inbound(ctx context.Context, session string) (Inbound, error) {
	w, err := l.deps.Find(ctx, session)
	if err != nil {
		return Inbound{}, err
	}
	in := Inbound{Cwd: w.Cwd}
	for before := int64(math.MaxInt64); ; {
		notes, last, err := l.deps.Notes(ctx, session, before)
		if err != nil {
			return Inbound{}, err
		}
		for _, n := range notes {
			items, files := inbound(n)
			if items != nil {
				return Inbound{Items: items, Cwd: w.Cwd}, nil
			}
			if in.Own == nil {
				in.Own = files
			}
		}
		if len(notes) == 0 {
			return in, nil
		}
		before = last
	}
}

// inbound returns the files of the message that a note is about; none of any other note.
func inbound(n transcript.Note) (items []attachment.SentinelItem, own []attachment.File) {
	if n.Note != transcript.NoteTurnBegan && n.Note != transcript.NoteSteered {
		return nil, nil
	}
	if items, found := attachment.ParseSentinel(transcript.PromptText(n.Prompt)); found {
		return items, nil
	}
	if len(n.Attachments) > 0 {
		own = filesOf(n.Attachments)
	}
	return nil, own
}
