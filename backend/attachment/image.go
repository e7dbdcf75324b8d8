package attachment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // for image.Decode
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // for image.Decode

	"deskhand/backend/store"
)

const (
	mostImageBytes  = 5 << 20                // for an unchanged image
	mostImageSide   = 8000                   // pixels
	mostSmaller     = mostImageBytes / 4 * 3 // for a reduced image; in base64 this is the limit of models
	smallerSide     = 2048                   // pixels; models use no more
	leastSide       = 128                    // an image that does not fit in so few pixels is not sent
	mostPixels      = 1 << 26                // pixels decoded: 8192 by 8192, which takes up to 800 MB for a moment
	mostScaleMemory = 32 << 20
	jpegQuality     = 85
)

// errTooManyPixels means that decoding an image would take too much memory.
var errTooManyPixels = errors.New("too many pixels")

var errFormat = errors.New("not one of the formats that are decoded")

// decoding serialises the decoding of images: each may take hundreds of megabytes, and a message may have a hundred of them.
//
//nolint:gochecknoglobals // the memory that it guards is the whole process's
var decoding = make(chan struct{}, 1)

// measure reads an image's format (png, jpeg, gif, webp) and size in pixels from its header. The decoders of all four formats refuse an image
// larger than its header says.
func measure(r io.Reader) (format string, width, height int, err error) {
	config, format, err := image.DecodeConfig(r)
	if err != nil {
		return "", 0, 0, fmt.Errorf("%w: %w", errFormat, err)
	}
	if !isPicture("image/"+format) || config.Width <= 0 || config.Height <= 0 {
		return "", 0, 0, errFormat
	}
	return format, config.Width, config.Height, nil
}

// isComplete reports whether an image has its end: a model's service refuses a truncated image, and then every later message of the
// conversation.
func isComplete(format string, data []byte) bool {
	switch format {
	case "png":
		return bytes.Contains(data, []byte("IEND"))
	case "jpeg":
		return bytes.Contains(data, []byte{0xff, 0xd9})
	case "gif":
		return bytes.HasSuffix(bytes.TrimRight(data, "\x00"), []byte{';'})
	case "webp":
		const sizeAt, riffHead = 4, 8
		return len(data) > riffHead && int64(binary.LittleEndian.Uint32(data[sizeAt:]))+riffHead <= int64(len(data))
	}
	return false
}

// decode decodes an image of at most mostPixels, upright and at most side pixels in either direction.
func decode(ctx context.Context, data []byte, side int) (small *image.RGBA, format string, err error) {
	format, width, height, err := measure(bytes.NewReader(data))
	if err != nil {
		return nil, "", err
	}
	if width*height > mostPixels {
		return nil, "", errTooManyPixels
	}
	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	full, _, err := image.Decode(store.While(ctx, bytes.NewReader(data)))
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errFormat, err)
	}
	if size := full.Bounds().Size(); size.X <= 0 || size.Y <= 0 || size.X*size.Y > mostPixels {
		return nil, "", errTooManyPixels
	}
	small, err = shrink(ctx, full, side)
	if err != nil {
		return nil, "", err
	}
	if format == "jpeg" {
		small = upright(small, orientation(data))
	}
	return small, format, nil
}

// shrink fits an image into a square. shrink first averages blocks of pixels, a band at a time, since the library's scalers need 32 bytes per
// pixel.
func shrink(ctx context.Context, src image.Image, side int) (*image.RGBA, error) {
	size := src.Bounds().Size()
	if times := max(size.X, size.Y) / side; times > 1 {
		part, err := reduce(ctx, src, times)
		if err != nil {
			return nil, err
		}
		src, size = part, part.Bounds().Size()
	}
	if longest := max(size.X, size.Y); longest > side {
		size = image.Pt(max(1, size.X*side/longest), max(1, size.Y*side/longest))
	}
	dst := image.NewRGBA(image.Rectangle{Max: size})
	draw.ApproxBiLinear.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	return dst, nil
}

func reduce(ctx context.Context, src image.Image, times int) (*image.RGBA, error) {
	const perPixel, support = 32, 0.5
	mean := draw.Kernel{Support: support, At: func(float64) float64 { return 1 }}
	from := src.Bounds()
	size := image.Pt(max(1, from.Dx()/times), max(1, from.Dy()/times))
	dst := image.NewRGBA(image.Rectangle{Max: size})
	band := max(1, mostScaleMemory/(perPixel*size.X*times))
	for y := 0; y < size.Y; y += band {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := min(y+band, size.Y)
		part := image.Rect(from.Min.X, from.Min.Y+y*times, min(from.Max.X, from.Min.X+size.X*times), min(from.Max.Y, from.Min.Y+end*times))
		mean.Scale(dst, image.Rect(0, y, size.X, end), src, part, draw.Src, nil)
	}
	return dst, nil
}

// smaller is a reduced image of at most most bytes, with its type. An animation becomes its first picture.
func smaller(ctx context.Context, data []byte, most int) (out []byte, mime string, err error) {
	img, format, err := decode(ctx, data, smallerSide)
	if err != nil {
		return nil, "", err
	}
	lossless := format == "png" || format == "gif" || !img.Opaque()
	for {
		if out, mime, err = encode(img, lossless); err != nil || len(out) <= most {
			return out, mime, err
		}
		switch side := max(img.Rect.Dx(), img.Rect.Dy()); {
		case lossless && img.Opaque():
			lossless = false
		case side < leastSide:
			return nil, "", errFormat
		default:
			if img, err = shrink(ctx, img, side*2/3); err != nil {
				return nil, "", err
			}
		}
	}
}

func encode(img *image.RGBA, lossless bool) (out []byte, mime string, err error) {
	var b bytes.Buffer
	if lossless {
		err = png.Encode(&b, img)
		return b.Bytes(), "image/png", err
	}
	err = jpeg.Encode(&b, img, &jpeg.Options{Quality: jpegQuality})
	return b.Bytes(), "image/jpeg", err
}

// thumbnails limits the images read at a time: a person may add a hundred photos at once, and all of them would wait in memory. thumbnails is
// separate from decoding, so that a slow file does not block decoding.
//
//nolint:gochecknoglobals // the memory that it guards is the whole process's
var thumbnails = make(chan struct{}, 2)

// Thumbnail is a small PNG of an image (png, jpeg, gif, webp) or of an animation's first picture, at most side pixels wide and high. Thumbnail
// calls read when a slot is free. For other files, and for images that need too much memory, Thumbnail fails with the *Problem
// attachment.image_broken.
func Thumbnail(ctx context.Context, read func(context.Context) ([]byte, error), side int) (thumbnail []byte, err error) {
	if side < 1 {
		return nil, problem("image_broken", "detail", "no size")
	}
	select {
	case thumbnails <- struct{}{}:
		defer func() { <-thumbnails }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	data, err := read(ctx)
	if err != nil {
		return nil, err
	}
	img, _, err := decode(ctx, data, side)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, problem("image_broken").because(err)
	}
	thumbnail, _, err = encode(img, true)
	return thumbnail, err
}

// upright rotates an image by its EXIF orientation (1 to 8; TIFF 6.0).
func upright(src *image.RGBA, orientation int) *image.RGBA {
	const last, firstTurned, mirrored = 8, 5, 2
	if orientation < mirrored || orientation > last {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	size := image.Pt(w, h)
	if orientation >= firstTurned {
		size = image.Pt(h, w)
	}
	dst := image.NewRGBA(image.Rectangle{Max: size})
	for y := range h {
		for x := range w {
			to := turned(orientation, image.Pt(x, y), w-1, h-1)
			dst.SetRGBA(to.X, to.Y, src.RGBAAt(x, y))
		}
	}
	return dst
}

// turned is the new place of a pixel of the stored image, whose largest coordinates are right and bottom.
func turned(orientation int, p image.Point, right, bottom int) image.Point {
	switch orientation {
	case 2:
		return image.Pt(right-p.X, p.Y)
	case 3:
		return image.Pt(right-p.X, bottom-p.Y)
	case 4:
		return image.Pt(p.X, bottom-p.Y)
	case 5:
		return image.Pt(p.Y, p.X)
	case 6:
		return image.Pt(bottom-p.Y, p.X)
	case 7:
		return image.Pt(bottom-p.Y, right-p.X)
	case 8:
		return image.Pt(p.Y, right-p.X)
	}
	return p
}
