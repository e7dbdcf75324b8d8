package agents

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// zeros returns an archive with a file of n zero bytes, which packs to almost nothing.
func zeros(t *testing.T, n int64) io.Reader {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o600, Size: n, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf
}

func TestArchiveThatIsTooLargeIsNotUnpacked(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	u := &unpacking{ctx: t.Context(), into: root, left: 1000}
	if err := u.tar(zeros(t, 1001)); !errors.Is(err, errTooLarge) {
		t.Errorf("tar: got %v, want %v", err, errTooLarge)
	}
	u = &unpacking{ctx: t.Context(), into: root, left: 1000, entries: archiveMost}
	if err := u.tar(zeros(t, 1)); !errors.Is(err, errCrowd) {
		t.Errorf("tar: got %v, want %v", err, errCrowd)
	}
}

func TestSamePublisher(t *testing.T) {
	t.Parallel()
	const amp = "https://github.com/tao12345666333/amp-acp/releases/download/v0.9.0/amp-acp.tar.gz"
	for other, same := range map[string]bool{
		"https://github.com/tao12345666333/amp-acp/releases/download/v1.0.0/other.tar.gz": true,
		"https://github.com/somebody/amp-acp/releases/download/v1.0.0/amp-acp.tar.gz":     false,
		"https://github.com/tao12345666333/../somebody/amp-acp/x.tar.gz":                  false,
		"https://github.com.evil.example/tao12345666333/amp-acp/x.tar.gz":                 false,
		"http://github.com/tao12345666333/amp-acp/releases/x.tar.gz":                      false,
		"https://github.com/": false,
		"":                    false,
	} {
		if samePublisher(amp, other) != same {
			t.Errorf("samePublisher(amp, %s): got %v, want %v", other, !same, same)
		}
	}
}

// TestRegistryGivesNewerArchives: known agents get newer archives from the same publisher.
func TestRegistryGivesNewerArchives(t *testing.T) {
	t.Parallel()
	rows, err := parseCatalogue(bundled)
	if err != nil {
		t.Fatal(err)
	}
	var amp entry
	for _, e := range rows {
		if e.id == "amp" {
			amp = e
		}
	}
	if amp.known.via != viaBinary {
		t.Skip("there is none for this machine")
	}
	next := func(version, archive string, args ...string) entry {
		b := binaryTarget{Archive: archive, Cmd: "./amp-acp", Args: args}
		return amp.pinned(registryEntry{Version: version, Distribution: distribution{Binary: map[string]binaryTarget{machineName(): b}}})
	}
	const from = "https://github.com/tao12345666333/amp-acp/releases/download/v1.0.0/amp.tar.gz"
	if e := next("1.0.0", from); e.known.version != "1.0.0" || e.known.binary.Archive != from || e.known.binary.SHA256 != "" {
		t.Errorf("binary: got %+v, want 1.0.0 from %s without a checksum", e.known.binary, from)
	}
	for _, e := range []entry{
		next("1.0.0", from, "--more"), next("../1", from), next("1.0.0", "https://github.com/somebody/amp-acp/x.tar.gz"), next("1.0.0", from+".xz"),
	} {
		if e.known.version != amp.known.version || e.known.binary.Archive != amp.known.binary.Archive {
			t.Errorf("binary: got %+v, want the bundled one", e.known.binary)
		}
	}
}

// endless is an endless repetition of a text.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

// headers returns the begin of an entry that never comes; headers pack to almost nothing.
func headers(t *testing.T) *endless {
	t.Helper()
	var buf bytes.Buffer
	if err := tar.NewWriter(&buf).WriteHeader(&tar.Header{Name: strings.Repeat("long", 100), Format: tar.FormatPAX, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	return &endless{text: buf.Bytes()[:1024]} // a header, and its content
}

func TestArchiveOfHeadersAlone(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for what, u := range map[string]*unpacking{
		context.Canceled.Error(): {ctx: gone, into: root, left: unpackedMax},
		errTooLarge.Error():      {ctx: t.Context(), into: root, left: 1000},
	} {
		done := make(chan error, 1)
		go func() { done <- u.tar(headers(t)) }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%v, want %s", err, what)
			}
		case <-time.After(testkit.Limit): // usually seconds, on a busy machine more
			t.Fatalf("it is never done with, want %s", what)
		}
	}
}
