package attachments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"deskhand/backend/attachment"
	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// Blob returns the bytes with a SHA-256.
func (l *Library) Blob(sha string) ([]byte, error) {
	data, err := l.deps.Store.Blobs.Get(sha)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", sha, refusal.ErrNotFound)
	}
	return data, err
}

// Content opens the content of an attachment. The caller closes the content.
func (l *Library) Content(ctx context.Context, id string) (transcript.Attachment, io.ReadSeekCloser, error) {
	a, err := l.Get(ctx, id)
	if err != nil {
		return a, nil, err
	}
	r, err := l.open(a.File())
	return a, r, err
}

// maxKept is above the size of any attachment.
const maxKept = 64 << 20

// Read returns the bytes of a file: the stored bytes, or else the present bytes at the path.
func (l *Library) Read(ctx context.Context, f attachment.File) ([]byte, error) {
	r, err := l.open(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(store.While(ctx, io.LimitReader(r, maxKept+1)))
	if len(data) > maxKept {
		return nil, fmt.Errorf("%q is too long by now", f.Filename)
	}
	return data, err
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func (l *Library) open(f attachment.File) (io.ReadSeekCloser, error) {
	if f.SHA256 != "" {
		data, err := l.Blob(f.SHA256)
		return inMemory{bytes.NewReader(data)}, err
	}
	file, err := attachment.Open(f)
	if err != nil {
		return nil, refuse(err)
	}
	return file, nil
}

// Thumbnail returns a PNG of an image, at most side pixels wide and high. A disk that does not answer soon is given up: a page shows many
// images, and asks for few at a time.
func (l *Library) Thumbnail(ctx context.Context, id string, side int) ([]byte, error) {
	a, err := l.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(a.MimeType, "image/") {
		return nil, refusal.Bad("attachment.no_image", "name", a.Filename)
	}
	if a.SHA256 == "" { // otherwise the files of a disk that does not answer would hold up all others
		if look, _ := l.files.Begin(a.Path, host.NoFile(a.Path)); !l.files.Await(look, host.PatientMany) {
			return nil, &refusal.Error{Code: refusedUnreadable, Params: map[string]string{"name": a.Filename, "detail": "its disk does not answer"}}
		}
	}
	png, err := attachment.Thumbnail(ctx, func(ctx context.Context) ([]byte, error) { return l.Read(ctx, a.File()) }, side)
	return png, refuse(err)
}

// Missing returns the ids of the attachments whose files are gone from their paths.
func (l *Library) Missing(list []transcript.Attachment) map[string]bool {
	missing := map[string]bool{}
	for again := range 2 { // every look begins before the first wait
		for _, a := range list {
			switch {
			case a.SHA256 != "" || a.Path == "":
			case again == 0:
				l.files.Begin(a.Path, host.NoFile(a.Path))
			case l.files.At(a.Path, host.NoFile(a.Path)):
				missing[a.ID] = true
			}
		}
	}
	return missing
}
