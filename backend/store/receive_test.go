package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"deskhand/backend/store"
)

// everything is each file of the blob store.
func everything(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReceiveStoresBlobOnce(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir).Blobs
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data)
	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	for _, r := range []io.Reader{bytes.NewReader(data), iotest.HalfReader(bytes.NewReader(data))} { // the second time it is there
		sha, n, err := b.Receive(t.Context(), r, int64(len(data)))
		if err != nil || sha != want || n != int64(len(data)) {
			t.Fatalf("Receive: got %s, %d bytes, error %v, want %s, %d bytes", sha, n, err, want, len(data))
		}
	}
	if got, err := b.Get(want); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("Get: got %d bytes, error %v, want the %d received", len(got), err, len(data))
	}
	if all := everything(t, dir); len(all) != 1 || all[0] != want+".zst" {
		t.Errorf("files of blobs: got %q, want %s.zst alone", all, want)
	}
}

func TestFailedReceiveLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir).Blobs
	boom := errors.New("boom")
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name string
		ctx  context.Context
		r    io.Reader
		want error
	}{
		{"too long", t.Context(), strings.NewReader("123456"), store.ErrTooLong},
		{"broken off", t.Context(), io.MultiReader(strings.NewReader("1"), iotest.ErrReader(boom)), boom},
		{"cancelled", ended, strings.NewReader("1"), context.Canceled},
	} {
		if sha, _, err := b.Receive(c.ctx, c.r, 5); !errors.Is(err, c.want) || sha != "" {
			t.Errorf("Receive of %s: got %q, error %v, want no name, error %v", c.name, sha, err, c.want)
		}
	}
	if all := everything(t, dir); len(all) != 0 {
		t.Errorf("files after failures: got %q, want none", all)
	}
}

// A sweep neither breaks off what is being received, nor takes what has not been written down yet.
func TestReceivedBlobOutlastsSweep(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir).Blobs
	unused := func(string) (bool, error) { return false, nil }
	sweep := func() int {
		t.Helper()
		n, err := b.Sweep(t.Context(), unused)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	r, w := io.Pipe()
	received := make(chan string)
	go func() {
		sha, _, err := b.Receive(t.Context(), r, 100)
		if err != nil {
			t.Error(err)
		}
		received <- sha
	}()
	_, _ = w.Write([]byte("slow")) // returns once it is read, so that the file is there
	if n := sweep(); n != 0 || len(everything(t, dir)) != 1 {
		t.Fatalf("Sweep while a blob is received: got %d files removed, want the file kept", n)
	}
	w.Close()
	sha := <-received
	if n := sweep(); n != 0 {
		t.Error("it was swept before its name was written down")
	}
	if _, err := b.Get(sha); err != nil {
		t.Error(err)
	}
	b.Release(sha)
	if n := sweep(); n != 1 {
		t.Errorf("Sweep after the release: got %d files removed, want 1", n)
	}
}
