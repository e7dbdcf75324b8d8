package attachment_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"deskhand/backend/attachment"
)

// claims is a PNG of few bytes whose header claims w by h pixels.
func claims(w, h uint32) []byte {
	b := bytes.NewBufferString("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		_ = binary.Write(b, binary.BigEndian, uint32(len(data)))
		all := append([]byte(kind), data...)
		b.Write(all)
		_ = binary.Write(b, binary.BigEndian, crc32.ChecksumIEEE(all))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	chunk("IHDR", append(head, 8, 0, 0, 0, 0))
	chunk("IDAT", []byte("x\x9c\x63\x60\x00\x00\x00\x02\x00\x01"))
	chunk("IEND", nil)
	return b.Bytes()
}

// padded is a PNG with 5 MiB of text.
func padded(png []byte) []byte {
	const untilHeadEnds = 8 + 25
	text := append([]byte("tEXt"), bytes.Repeat([]byte("x"), 5<<20)...)
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(text)-4)), text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(text))
	return slices.Concat(png[:untilHeadEnds], chunk, png[untilHeadEnds:])
}

// noise is an image that does not compress.
func noise(w, h int) *image.NRGBA {
	r := rand.New(rand.NewPCG(1, 2))
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = uint8(r.Uint32())
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

// withOrientation adds an EXIF orientation to a JPEG.
func withOrientation(jpeg []byte, orientation uint16) []byte {
	tiff := []byte("MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01")
	tiff = append(binary.BigEndian.AppendUint16(tiff, orientation), 0, 0, 0, 0, 0, 0)
	body := append([]byte("Exif\x00\x00"), tiff...)
	segment := append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(body)+2)), body...)
	return append(append([]byte{0xff, 0xd8}, segment...), jpeg[2:]...)
}

func thumbnail(data []byte, side int) ([]byte, error) {
	return attachment.Thumbnail(context.Background(), func(context.Context) ([]byte, error) { return data, nil }, side)
}

// TestThumbnailsWaitWithoutTheirImages: of a hundred photos added at once, few are in memory, and a cancelled photo is never read.
func TestThumbnailsWaitWithoutTheirImages(t *testing.T) {
	data := asPNG(t, picture(30, 30, true))
	began, goOn := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := attachment.Thumbnail(t.Context(), func(context.Context) ([]byte, error) {
				began <- struct{}{}
				<-goOn
				return data, nil
			}, 16)
			if err != nil {
				t.Error(err)
			}
		})
	}
	const few = 2
	for range few {
		<-began
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := attachment.Thumbnail(ctx, func(context.Context) ([]byte, error) { t.Error("it was read"); return nil, nil }, 16)
		gone <- err
	}()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-began:
		t.Error("one more was read")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	for range 10 - few {
		<-began
	}
	all.Wait()
}

func TestThumbnail(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want image.Point
	}{
		{"png", asPNG(t, picture(300, 100, true)), image.Pt(64, 21)},
		{"high", asPNG(t, picture(100, 300, false)), image.Pt(21, 64)},
		{"small", asPNG(t, picture(10, 5, true)), image.Pt(10, 5)},
		{"a line", asPNG(t, picture(3000, 1, true)), image.Pt(64, 1)},
		{"jpeg", asJPEG(t, picture(200, 200, true)), image.Pt(64, 64)},
		{"jpeg on its side", withOrientation(asJPEG(t, picture(200, 100, true)), 6), image.Pt(32, 64)},
		{"gif", asGIF(t, picture(100, 100, true)), image.Pt(64, 64)},
		{"webp", []byte(aWebP), image.Pt(16, 16)},
	} {
		small, err := thumbnail(c.data, 64)
		if err != nil {
			t.Errorf("%s: thumbnail(64): got error %v, want no error", c.name, err)
			continue
		}
		got, err := png.DecodeConfig(bytes.NewReader(small))
		if err != nil || image.Pt(got.Width, got.Height) != c.want {
			t.Errorf("%s: %d by %d (%v), want %v", c.name, got.Width, got.Height, err, c.want)
		}
	}
}

// TestThumbnailRefuses: an image that claims too many pixels is refused by its header, and a file that is no image by its bytes.
func TestThumbnailRefuses(t *testing.T) {
	for name, data := range map[string][]byte{
		"50000 by 50000": claims(50000, 50000), "as wide as can be": claims(1<<31-1, 1), "zip": []byte(zipHead), "nothing": nil,
		"svg":     []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>`),
		"cut off": asPNG(t, picture(100, 100, true))[:200], "tiff": []byte("II*\x00\x08\x00\x00\x00"),
	} {
		_, err := thumbnail(data, 64)
		wants(t, name, err, "image_broken")
	}
	_, err := thumbnail(asPNG(t, picture(9, 9, true)), 0)
	wants(t, "of no size", err, "image_broken")
}

// TestThumbnailIsUpright: a blue left half stays left, or moves as the EXIF orientation says.
func TestThumbnailIsUpright(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 64, 32))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for y := range 32 {
		for x := range 32 {
			img.SetNRGBA(x, y, color.NRGBA{B: 255, A: 255})
		}
	}
	data := asJPEG(t, img)
	for orientation, blue := range map[uint16]image.Point{1: {4, 8}, 2: {60, 8}, 3: {60, 8}, 4: {4, 8}, 5: {8, 4}, 6: {8, 4}, 7: {8, 60}, 8: {8, 60}, 9: {4, 8}} {
		small, err := thumbnail(withOrientation(data, orientation), 64)
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(bytes.NewReader(small))
		if err != nil {
			t.Fatal(err)
		}
		if r, _, b, _ := got.At(blue.X, blue.Y).RGBA(); b < 0xf000 || r > 0x1000 {
			t.Errorf("orientation %d: at %v there is no blue but %v", orientation, blue, got.At(blue.X, blue.Y))
		}
	}
}

// FuzzThumbnail: any bytes give a small picture or an error, and no memory for the claimed size.
func FuzzThumbnail(f *testing.F) {
	f.Add(asPNG(f, picture(20, 20, false)))
	f.Add(asJPEG(f, picture(20, 20, true)))
	f.Add(withOrientation(asJPEG(f, picture(8, 4, true)), 5))
	f.Add(asGIF(f, picture(20, 20, true)))
	f.Add([]byte(aWebP))
	f.Add(claims(50000, 50000))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, h := claimed(data); w*h > 1<<22 {
			t.Skip("a picture of so many pixels takes the fuzzer's time")
		}
		small, err := thumbnail(data, 16)
		if err != nil {
			return
		}
		got, err := png.DecodeConfig(bytes.NewReader(small))
		if err != nil || got.Width > 16 || got.Height > 16 || got.Width < 1 || got.Height < 1 {
			t.Fatalf("%d by %d, %v", got.Width, got.Height, err)
		}
	})
}

func claimed(data []byte) (w, h int) {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return 0, 0
	}
	return config.Width, config.Height
}
