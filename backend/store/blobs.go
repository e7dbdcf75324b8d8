package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// ErrDamaged means that the file of a blob does not match the sha256 in its name.
var ErrDamaged = errors.New("a blob is damaged")

// Blobs stores bytes by their sha256, each once: in a compressed file AB/ABCD….zst, or in AB/ABCD… as older versions did. Files are never
// changed. Sweep removes a file once nothing uses the file: a caller that stores the name of a blob does so, and calls Put before, within
// Keep. Receive is for blobs that arrive slowly.
type Blobs struct {
	*packer

	dir   string
	using sync.RWMutex // Keep holds the lock for reading, a removal for writing
	held  held
}

func newBlobs(dir string, p *packer) *Blobs { return &Blobs{dir: dir, packer: p} }

// Keep runs f, which puts blobs and stores their names. No blob is swept before f has returned.
func (b *Blobs) Keep(f func() error) error {
	b.using.RLock()
	defer b.using.RUnlock()
	return f()
}

const packed = ".zst"

// Put stores data and returns its sha256 in hexadecimal. An existing blob is written again only when it is damaged.
func (b *Blobs) Put(data []byte) (string, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	if have, err := b.Get(name); err == nil && bytes.Equal(have, data) {
		return name, nil
	}
	short, err := b.pack(data)
	if err != nil {
		return "", fmt.Errorf("storing a blob: %w", err)
	}
	file := b.path(name) + packed
	if err := b.makeFor(file); err != nil {
		return "", fmt.Errorf("storing a blob: %w", err)
	}
	if err := WriteFile(file, short, 0o600); err != nil {
		return "", err
	}
	return name, nil
}

// makeFor makes the directory of a file.
func (b *Blobs) makeFor(file string) error {
	dir := filepath.Dir(file)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(b.dir)
}

// syncDir waits until the names in a directory are on the disk: a journal that names a file must not be safer than the file.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows syncs no directories
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get reads a blob and checks the bytes against its name. The error is fs.ErrNotExist for a missing blob, and ErrDamaged for a blob whose
// bytes have changed.
func (b *Blobs) Get(sha string) ([]byte, error) {
	if !isName(sha) {
		return nil, fmt.Errorf("%q is no blob name: %w", sha, fs.ErrNotExist)
	}
	data, err := b.unpacked(sha)
	if err != nil {
		if plain, plainErr := os.ReadFile(b.path(sha)); plainErr == nil || errors.Is(err, fs.ErrNotExist) {
			data, err = plain, plainErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading a blob: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != sha {
		return nil, fmt.Errorf("%w: %s", ErrDamaged, sha)
	}
	return data, nil
}

func (b *Blobs) unpacked(sha string) ([]byte, error) {
	data, err := os.ReadFile(b.path(sha) + packed)
	if err != nil {
		return nil, err
	}
	return b.unpack(data)
}

func (b *Blobs) path(sha string) string { return filepath.Join(b.dir, sha[:2], sha) }

func isName(sha string) bool {
	raw, err := hex.DecodeString(sha)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(sha) == sha
}

// Each calls each for every blob, with the blob's file.
func (b *Blobs) Each(ctx context.Context, each func(sha string, file fs.FileInfo) error) error {
	return b.shelves(ctx, func(dir string) error {
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			sha := strings.TrimSuffix(f.Name(), packed)
			info, err := f.Info()
			if err != nil || !isName(sha) {
				continue // the file has gone, or is no blob
			}
			if err := each(sha, info); err != nil {
				return err
			}
		}
		return nil
	})
}

// shelves calls each for every directory of blobs.
func (b *Blobs) shelves(ctx context.Context, each func(dir string) error) error {
	list, err := os.ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, shelf := range list {
		const letters = 2
		if err := ctx.Err(); err != nil {
			return err
		}
		if !shelf.IsDir() || len(shelf.Name()) != letters {
			continue
		}
		if err := each(filepath.Join(b.dir, shelf.Name())); err != nil {
			return err
		}
	}
	return err
}

// Sweep removes the blobs that are not used, and the remains of interrupted writes. Sweep returns how many files were removed.
func (b *Blobs) Sweep(ctx context.Context, used func(sha string) (bool, error)) (removed int, err error) {
	err = b.shelves(ctx, func(dir string) error {
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			gone, err := b.sweep(filepath.Join(dir, f.Name()), used)
			if err != nil {
				return err
			}
			if gone {
				removed++
			}
		}
		return nil
	})
	return removed, err
}

// sweep removes a file that nothing uses. sweep asks twice: an unused blob may be in the middle of a Keep.
func (b *Blobs) sweep(file string, used func(sha string) (bool, error)) (gone bool, err error) {
	isUsed := func() (bool, error) {
		name := strings.TrimSuffix(filepath.Base(file), packed)
		if b.held.holds(name) {
			return true, nil
		}
		if isName(name) {
			return used(name)
		}
		return !strings.HasPrefix(name, unfinished), nil // foreign files stay
	}
	if in, err := isUsed(); in || err != nil {
		return false, err
	}
	b.using.Lock()
	defer b.using.Unlock()
	if in, err := isUsed(); in || err != nil {
		return false, err
	}
	return true, Remove(file)
}
