package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// ErrTooLong means that a reader gave more bytes than allowed.
var ErrTooLong = errors.New("too long")

// untilNamed is how long a received blob is kept although nothing names it.
const untilNamed = time.Hour

// held are files that Sweep must keep although nothing uses them: files that are being received, and blobs whose names are about to be
// stored. Keep would not do: a Sweep would wait for a slow sender, and every other Keep would wait for the Sweep.
type held struct {
	mu    sync.Mutex // guards files
	files map[string]hold
}

// hold says how often a file is held, and until when.
type hold struct {
	times int
	until time.Time
}

func (h *held) hold(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files == nil {
		h.files = map[string]hold{}
	}
	h.files[name] = hold{h.files[name].times + 1, time.Now().Add(untilNamed)}
}

func (h *held) release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	file, ok := h.files[name]
	if file.times--; ok && file.times > 0 {
		h.files[name] = file
		return
	}
	delete(h.files, name)
}

func (h *held) holds(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	file, ok := h.files[name]
	if ok && time.Now().After(file.until) {
		delete(h.files, name)
		ok = false
	}
	return ok
}

// Release lets the next Sweep remove a received blob, unless something names the blob by now, or the blob was received once more.
func (b *Blobs) Release(sha string) { b.held.release(sha) }

// Receive stores the bytes of r, which may be slow, without keeping them in memory, and returns their sha256 and their number. More than
// most bytes are ErrTooLong, and nothing is stored; nor is anything stored when ctx ends. The blob is not swept for an hour, or until
// Release: the caller stores the blob's name in that time, needs no Keep, and need not call Release.
func (b *Blobs) Receive(ctx context.Context, r io.Reader, most int64) (sha string, size int64, err error) {
	f, err := b.incoming()
	if err != nil {
		return "", 0, fmt.Errorf("storing a blob: %w", err)
	}
	unfinishedName := filepath.Base(f.Name())
	defer b.held.release(unfinishedName)
	sha, size, err = compress(f, io.LimitReader(While(ctx, r), most+1))
	if err == nil && size > most {
		err = ErrTooLong
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = b.Keep(func() error { return b.receive(f.Name(), sha) })
	}
	if err != nil {
		return "", 0, errors.Join(fmt.Errorf("storing a blob: %w", err), Remove(f.Name()))
	}
	return sha, size, nil
}

// incoming makes a new file on a shelf, where a Sweep removes the remains after a crash.
func (b *Blobs) incoming() (f *os.File, err error) {
	shelf := filepath.Join(b.dir, "00")
	err = b.Keep(func() error {
		if err := b.makeFor(filepath.Join(shelf, unfinished)); err != nil {
			return err
		}
		if f, err = os.CreateTemp(shelf, unfinished+"*"); err == nil {
			b.held.hold(filepath.Base(f.Name()))
		}
		return err
	})
	return f, err
}

// receive gives a complete file its name, unless the blob exists.
func (b *Blobs) receive(file, sha string) error {
	b.held.hold(sha)
	if _, err := b.Get(sha); err == nil {
		return Remove(file)
	}
	to := b.path(sha) + packed
	if err := b.makeFor(to); err != nil {
		return err
	}
	if err := Rename(file, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func compress(w io.Writer, r io.Reader) (sha string, size int64, err error) {
	enc, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return "", 0, err
	}
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(enc, sum), r)
	return hex.EncodeToString(sum.Sum(nil)), size, errors.Join(err, enc.Close())
}

// While returns a reader that fails when ctx ends, so that long work with a file can be cancelled.
func While(ctx context.Context, r io.Reader) io.Reader { return while{ctx, r} }

type while struct {
	ctx context.Context //nolint:containedctx // Read takes no context
	r   io.Reader
}

func (w while) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}
