package attachment

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strconv"

	"deskhand/backend/store"
)

// Ingest stores the bytes of r, which may arrive slowly, and describes them as a file without a path. Ingest fails with attachment.too_large
// above the limit, and stores nothing then, nor when r fails or ctx ends. The caller records the blob's name within an hour, see
// Blobs.Receive.
func Ingest(ctx context.Context, blobs *store.Blobs, r io.Reader, name, mime string, limits Limits) (File, error) {
	f := File{Filename: baseName(name, mime), Blob: true}
	if err := receive(ctx, blobs, &f, r, mime, limits); err != nil {
		return File{}, err
	}
	return f, nil
}

// Snapshot stores the present bytes of a path in the blob store, and describes them anew: a changed SHA256 shows that the file has changed. A
// directory and a file without a path stay as they are.
func Snapshot(ctx context.Context, blobs *store.Blobs, f File, limits Limits) (File, error) {
	if f.Directory || f.Path == "" {
		return f, nil
	}
	content, err := openPath(f, limits)
	if err != nil {
		return File{}, err
	}
	defer content.Close()
	now := f
	now.Blob, now.Width, now.Height = true, 0, 0
	if err := receive(ctx, blobs, &now, content, f.MimeType, limits); err != nil {
		return File{}, err
	}
	return now, nil
}

// firstPart records the beginning of a reader's data, and the reader's failure.
type firstPart struct {
	r      io.Reader
	head   []byte
	failed error
}

// mostHead covers the size in most images' headers, which may follow a colour profile.
const mostHead = 1 << 20

func (p *firstPart) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.head = append(p.head, b[:min(n, mostHead-len(p.head))]...)
	if err != nil && !errors.Is(err, io.EOF) {
		p.failed = err
	}
	return n, err
}

func receive(ctx context.Context, blobs *store.Blobs, f *File, r io.Reader, given string, limits Limits) error {
	part := &firstPart{r: r}
	sha, size, err := blobs.Receive(ctx, part, limits.bytes())
	switch {
	case errors.Is(err, store.ErrTooLong):
		return problem("too_large", "name", f.Filename, "limit", bytesText(limits.bytes()))
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case part.failed != nil:
		return trouble(f.Filename, part.failed)
	case err != nil:
		return err // an error of the store, not of the file
	}
	f.SHA256, f.Size = sha, size
	f.MimeType = MIME(given, f.Filename, part.head[:min(len(part.head), headSize)])
	if !isPicture(f.MimeType) {
		return nil
	}
	f.measureIn(part.head)
	if f.Width == 0 && size > int64(len(part.head)) {
		data, err := blobs.Get(sha)
		if err != nil {
			return err
		}
		f.measureIn(data)
	}
	return nil
}

// Open opens the present regular file of any length at f.Path. Open never blocks.
func Open(f File) (*os.File, error) { return openPath(f, Limits{Bytes: math.MaxInt64}) }

func openPath(f File, limits Limits) (*os.File, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil, trouble(f.Filename, err)
	}
	return openRegular(f.Filename, info, func() (*os.File, error) { return os.OpenFile(f.Path, os.O_RDONLY|nonBlocking, 0) }, limits.bytes())
}

// readAtMost reads all of r, and fails above most bytes.
func readAtMost(r io.Reader, most int64, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = problem("too_large", "name", name, "limit", bytesText(most))
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func bytesText(n int64) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case n >= mib && n%mib == 0:
		return strconv.FormatInt(n/mib, 10) + " MiB"
	case n >= kib && n%kib == 0:
		return strconv.FormatInt(n/kib, 10) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
