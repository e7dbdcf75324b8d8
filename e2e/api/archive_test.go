package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// archive makes a tar of lines "TYPE NAME [TEXT]": file with its content, dir, link and hard with their target, fifo, device. "many N"
// is N empty files.
func archive(lines string, compressed bool) []byte {
	var buf bytes.Buffer
	var out io.WriteCloser = nopCloser{&buf}
	if compressed {
		out = gzip.NewWriter(&buf)
	}
	w := tar.NewWriter(out)
	for line := range strings.Lines(lines) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, text, _ := strings.Cut(rest, " ")
		if n, _ := strconv.Atoi(name); kind == "many" {
			for i := range n {
				_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%04d", i+1), Mode: 0o644, Typeflag: tar.TypeReg})
			}
			continue
		}
		h := &tar.Header{Name: name, Mode: 0o644, Typeflag: map[string]byte{
			"file": tar.TypeReg, "dir": tar.TypeDir, "link": tar.TypeSymlink, "hard": tar.TypeLink, "fifo": tar.TypeFifo, "device": tar.TypeChar,
		}[kind]}
		switch h.Typeflag {
		case tar.TypeReg:
			h.Size = int64(len(text))
		case tar.TypeDir:
			h.Mode = 0o755
		default:
			h.Linkname = text
		}
		if w.WriteHeader(h) == nil && h.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(w, text)
		}
	}
	_ = w.Close()
	_ = out.Close()
	return buf.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
