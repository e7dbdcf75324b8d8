package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces a file atomically: written beside it, synced, renamed. A reader sees the old content or the new one.
func WriteFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", filepath.Base(name), err), remove(f.Name()))
	}
	return nil
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Blobs keeps bytes by their sha256, each once.
type Blobs struct{ dir string }

// Put stores data and returns its sha256 in hexadecimal; what is there already is not written again.
func (b Blobs) Put(data []byte) (string, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	file := b.path(name)
	if info, err := os.Stat(file); err == nil && info.Size() == int64(len(data)) {
		return name, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("storing a blob: %w", err)
	}
	return name, WriteFile(file, data, 0o600)
}

// Get reads a blob and checks it against its name.
func (b Blobs) Get(sha string) ([]byte, error) {
	if raw, err := hex.DecodeString(sha); err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("%q is no blob name: %w", sha, fs.ErrNotExist)
	}
	data, err := os.ReadFile(b.path(sha))
	if err != nil {
		return nil, fmt.Errorf("reading a blob: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != sha {
		return nil, fmt.Errorf("blob %s is damaged", sha)
	}
	return data, nil
}

func (b Blobs) path(sha string) string { return filepath.Join(b.dir, sha[:2], sha) }
