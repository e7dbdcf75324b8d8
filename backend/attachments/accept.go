package attachments

import (
	"cmp"
	"context"

	"deskhand/backend/attachment"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// PromptAttachment names a file of a prompt: an attachment by its id, or else a path of this machine.
type PromptAttachment struct {
	ID       string `json:"id,omitempty" maxLength:"64" doc:"Of one that was taken in before; nothing else is looked at then"`
	Path     string `json:"path,omitempty" maxLength:"4096" doc:"Absolute, or relative to the session's directory; a file URI is taken too"`
	Mime     string `json:"mime,omitempty" maxLength:"200" doc:"Goes before what the name and the bytes tell"`
	Filename string `json:"filename,omitempty" maxLength:"255" doc:"The last part of the path when it is left out"`
}

// Accept makes attachments that are ready to travel with a prompt, whatever becomes of the files afterwards: the bytes of each file that could
// travel inline are in the blob store from then on.
func (l *Library) Accept(ctx context.Context, w Where, given []PromptAttachment) ([]transcript.Attachment, error) {
	if len(given) == 0 {
		return nil, nil
	}
	if err := l.deps.Writable(); err != nil {
		return nil, err
	}
	if err := refuse(limits().Count(len(given))); err != nil {
		return nil, err
	}
	x := &accepting{l: l, at: w}
	defer x.release()
	list := make([]transcript.Attachment, 0, len(given))
	for _, p := range given {
		a, err := x.one(ctx, p)
		if err != nil {
			return nil, refuse(err)
		}
		list = append(list, a)
	}
	return list, l.keep(ctx, list)
}

// accepting is the acceptance of one prompt.
type accepting struct {
	l    *Library
	at   Where
	held []string // blobs that no record names yet
}

func (x *accepting) release() {
	for _, sha := range x.held {
		x.l.deps.Store.Blobs.Release(sha)
	}
}

func (x *accepting) one(ctx context.Context, p PromptAttachment) (transcript.Attachment, error) {
	if p.ID == "" {
		return x.byPath(ctx, p)
	}
	a, err := x.l.named(ctx, p.ID)
	if err != nil {
		return a, err
	}
	if a.SHA256 != "" {
		return a, x.reaches(a)
	}
	// The record of a link that a person has agreed to has the target's path: a link at that path came later.
	f, err := attachment.Inspect(ctx, a.Path, x.at.roots(), false, limits())
	if err != nil {
		return a, err
	}
	f.MimeType, f.Filename, f.ID, f.Given = a.MimeType, a.Filename, a.ID, a.Given
	return x.snapshot(ctx, f, &a)
}

func (x *accepting) byPath(ctx context.Context, p PromptAttachment) (transcript.Attachment, error) {
	if p.Path == "" {
		return transcript.Attachment{}, refusal.Bad(refusedUnknown, "id", "")
	}
	f, err := attachment.Inspect(ctx, pathOf(p.Path, x.at.base()), x.at.roots(), false, limits())
	if err != nil {
		return transcript.Attachment{}, err
	}
	f.MimeType, f.Filename = cmp.Or(p.Mime, f.MimeType), cmp.Or(p.Filename, f.Filename)
	if p.Path != f.Path {
		f.Given = p.Path
	}
	return x.snapshot(ctx, f, nil)
}

// snapshot stores the bytes of a file that could travel inline. before is the record that the file had, which is returned when nothing has
// changed.
func (x *accepting) snapshot(ctx context.Context, f attachment.File, before *transcript.Attachment) (transcript.Attachment, error) {
	if couldBeInline(f, x.at) || x.at.Host.Directories == nil && !f.Directory {
		kept, err := attachment.Snapshot(ctx, x.l.deps.Store.Blobs, f, limits())
		if err != nil {
			return transcript.Attachment{}, notStored(ctx, err)
		}
		x.held = append(x.held, kept.SHA256)
		kept.MimeType, kept.Filename = f.MimeType, f.Filename
		f = kept
	}
	a := recordOf(f)
	if before == nil || a != *before {
		f.ID = ""
		a = recordOf(f) // another record: the former record is of the former content
	}
	return a, x.reaches(a)
}

// reaches refuses a file that could only be a link to an agent elsewhere, which does not have the file.
func (x *accepting) reaches(a transcript.Attachment) error {
	if x.at.Host.Directories != nil || couldBeInline(a.File(), x.at) {
		return nil
	}
	return &refusal.Error{Code: refusedElsewhere, Params: map[string]string{"name": a.Filename}}
}

// couldBeInline reports whether a file would travel inline to an agent that takes everything.
func couldBeInline(f attachment.File, w Where) bool {
	everything := attachment.Agent{Image: true, Embedded: true, PDF: true}
	how := attachment.Plan(everything, w.Cwd, w.roots(), []attachment.File{f})[0].Travels
	return how == attachment.Image || how == attachment.Embedded
}
