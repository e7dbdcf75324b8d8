package attachment_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"deskhand/backend/attachment"
)

func TestIngest(t *testing.T) {
	b := blobs(t)
	png := asPNG(t, picture(30, 20, true))
	for _, c := range []struct {
		name, mime string
		data       []byte
		want       attachment.File
	}{
		{"a.png", "image/png", png, attachment.File{Filename: "a.png", MimeType: "image/png", Width: 30, Height: 20}},
		{"a.png", "", []byte(zipHead), attachment.File{Filename: "a.png", MimeType: "application/zip"}},
		{"a.png", "image/png", []byte(zipHead), attachment.File{Filename: "a.png", MimeType: "image/png"}},
		{"main.go", "application/octet-stream", []byte("package a"), attachment.File{Filename: "main.go", MimeType: "text/x-go"}},
		{"../../etc/pass\x00wd", "", []byte("x"), attachment.File{Filename: "passwd", MimeType: "text/plain"}},
		{`C:\Users\ada\a.txt`, "", nil, attachment.File{Filename: "a.txt", MimeType: "text/plain"}},
		{"", "image/png", png, attachment.File{Filename: "file.png", MimeType: "image/png", Width: 30, Height: 20}},
		{"..", "", []byte("x"), attachment.File{Filename: "file", MimeType: "text/plain"}},
	} {
		got, err := attachment.Ingest(t.Context(), b, iotest.OneByteReader(bytes.NewReader(c.data)), c.name, c.mime, attachment.Limits{})
		if err != nil {
			t.Errorf("%q: got error %v, want no error", c.name, err)
			continue
		}
		c.want.Blob, c.want.Size, c.want.SHA256 = true, int64(len(c.data)), got.SHA256
		if got != c.want {
			t.Errorf("%q: %+v, want %+v", c.name, got, c.want)
		}
		if data, err := b.Get(got.SHA256); err != nil || !bytes.Equal(data, c.data) {
			t.Errorf("%q: %d bytes are stored, %v", c.name, len(data), err)
		}
	}
}

// TestIngestFindsTheSizeOfAPictureFarBehind: an image's size may come after a megabyte of other data.
func TestIngestFindsTheSizeOfAPictureFarBehind(t *testing.T) {
	data := asJPEG(t, picture(30, 20, true))
	var long bytes.Buffer
	long.Write(data[:2])
	for range 20 {
		long.Write([]byte{0xff, 0xe2, 0xff, 0xff})
		long.Write(make([]byte, 0xfffd))
	}
	long.Write(data[2:])
	got, err := attachment.Ingest(t.Context(), blobs(t), &long, "a.jpg", "", attachment.Limits{})
	if err != nil || got.Width != 30 || got.Height != 20 {
		t.Errorf(`Ingest("a.jpg", ""): got %+v, error %v, want no error, got.Width 30 and got.Height 20`, got, err)
	}
}

func TestIngestRefuses(t *testing.T) {
	b := blobs(t)
	_, err := attachment.Ingest(t.Context(), b, strings.NewReader("123456"), "six", "", attachment.Limits{Bytes: 5})
	wants(t, "too large", err, "too_large")
	_, err = attachment.Ingest(t.Context(), b, io.MultiReader(strings.NewReader("1"), iotest.ErrReader(io.ErrUnexpectedEOF)), "broken", "", attachment.Limits{})
	wants(t, "broken off", err, "unreadable")
	if _, err := attachment.Ingest(ended(t), b, strings.NewReader("1"), "a", "", attachment.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSnapshot: a snapshot keeps the bytes of its moment, whatever happens to the file.
func TestSnapshot(t *testing.T) {
	b, dir := blobs(t), realTemp(t)
	path := write(t, filepath.Join(dir, "a.txt"), "one")
	f, err := attachment.Inspect(t.Context(), path, nil, false, attachment.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := attachment.Snapshot(t.Context(), b, f, attachment.Limits{})
	if err != nil || !first.Blob || first.SHA256 != f.SHA256 || first.Path != path {
		t.Fatalf("Snapshot: got first %+v, error %v, want no error, first.Blob, first.SHA256 %v and first.Path %v", first, err, f.SHA256, path)
	}
	write(t, path, "other")
	second, err := attachment.Snapshot(t.Context(), b, f, attachment.Limits{})
	if err != nil || second.SHA256 == f.SHA256 || second.Size != 5 {
		t.Errorf("of what has changed it says %+v, %v", second, err)
	}
	if data, err := b.Get(first.SHA256); err != nil || string(data) != "one" {
		t.Errorf("the first is %q, %v", data, err)
	}
	write(t, path, string(make([]byte, 20)))
	_, err = attachment.Snapshot(t.Context(), b, f, attachment.Limits{Bytes: 10})
	wants(t, "of what has grown", err, "too_large")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = attachment.Snapshot(t.Context(), b, f, attachment.Limits{})
	wants(t, "of what has gone", err, "missing")
	for _, still := range []attachment.File{{Directory: true, Path: dir}, first} {
		still.Path = map[bool]string{true: dir, false: ""}[still.Directory]
		if got, err := attachment.Snapshot(t.Context(), b, still, attachment.Limits{}); err != nil || got != still {
			t.Errorf("%+v became %+v, %v", still, got, err)
		}
	}
}
