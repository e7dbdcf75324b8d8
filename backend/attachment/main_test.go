package attachment_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/attachment"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// realTemp is a temporary directory, by its path without links.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t testing.TB, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	return path
}

func blobs(t testing.TB) *store.Blobs {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	t.Cleanup(func() { db.Close() })
	return db.Blobs
}

// wants checks that err is a problem with the code; "" means no error.
func wants(t testing.TB, what string, err error, code string) {
	t.Helper()
	if code == "" {
		if err != nil {
			t.Errorf("%s: got error %v, want no error", what, err)
		}
		return
	}
	var p *attachment.Problem
	if !errors.As(err, &p) || p.Code != "attachment."+code {
		t.Errorf("%s: the error is %v, not attachment.%s", what, err, code)
	}
}

func picture(w, h int, opaque bool) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{R: uint8(x), G: uint8(y), B: uint8(x * y), A: 255}
			if !opaque {
				c.A = uint8(x)
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

func asPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asGIF(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// aWebP is an image of 16 by 16 pixels.
const aWebP = "\x52\x49\x46\x46\x4a\x00\x00\x00\x57\x45\x42\x50\x56\x50\x38\x4c\x3e\x00\x00\x00\x2f\x0f\xc0\x03\x00\x7f\x00\x10" +
	"\x84\xff\x71\x0b\x13\xf1\xf7\xff\xf9\x4f\x96\x01\x55\x64\xdb\x50\x41\x05\x15\x54\x50\x41\x05\x15\x54\x50\x41\x05" +
	"\x15\x54\x50\x41\x05\x15\x7c\x6d\x87\x88\xfe\xe7\xe7\x71\x39\x6c\x16\x93\x41\xa7\x51\x29\x64\x12\x91\x00"

// below maps the paths below a directory to the content of the files.
func below(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			all[filepath.ToSlash(rel)] = d.Type().String()
			return nil
		}
		data, err := os.ReadFile(path)
		all[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func ended(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
