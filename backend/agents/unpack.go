package agents

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of the content of an archive.
const (
	unpackedMax = 4 << 30
	archiveMost = 200_000 // entries
	headerMost  = 2 << 10 // bytes of an entry besides its content, on average
)

// The kinds of archives, by extension; any other name is a bare program.
const (
	kindBare = ""
	kindGzip = ".tar.gz"
	kindBzip = ".tar.bz2"
	kindZip  = ".zip"
)

// kindOf returns the kind of an archive by its name. A kind that cannot be unpacked is an error before anything is downloaded.
func kindOf(u *url.URL) (string, error) {
	name := strings.ToLower(path.Base(u.Path))
	switch {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return kindGzip, nil
	case strings.HasSuffix(name, ".tar.bz2"), strings.HasSuffix(name, ".tbz2"):
		return kindBzip, nil
	case strings.HasSuffix(name, ".zip"):
		return kindZip, nil
	}
	switch ext := path.Ext(name); ext {
	case ".xz", ".zst", ".7z", ".rar", ".lz", ".gz", ".bz2", ".tar", ".deb", ".rpm", ".dmg", ".pkg", ".msi", ".msix", ".appimage", ".apk", ".whl", ".jar":
		return "", fmt.Errorf("an archive of the kind %s cannot be unpacked", ext)
	}
	return kindBare, nil
}

// Errors of archives.
var (
	errEntry = errors.New("an entry is not taken")
	errCrowd = fmt.Errorf("there are more than %d entries in it", archiveMost)
)

// unpacking extracts an archive into a directory that no entry can leave: names are checked, links are refused, and the directory is an
// os.Root, so that even a link which another process puts there leads nowhere.
type unpacking struct {
	ctx     context.Context
	into    *os.Root
	left    int64 // bytes that may still come
	entries int
}

func (u *unpacking) tar(in io.Reader) error {
	// Headers count too: an archive of headers alone packs to nothing, and could be read without end.
	in = &counted{from: in, most: u.left + archiveMost*headerMost, each: func(int64) error { return u.ctx.Err() }}
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader: // a comment, for example of git archive
			continue
		case tar.TypeDir:
			err = u.directory(h.Name)
		case tar.TypeReg:
			err = u.file(h.Name, h.FileInfo().Mode(), archive)
		case tar.TypeLink, tar.TypeSymlink:
			err = fmt.Errorf("%w: %.200q is a link", errEntry, h.Name)
		default:
			err = fmt.Errorf("%w: %.200q is neither a file nor a directory", errEntry, h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) zip(file string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if err := u.zipped(entry); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) zipped(entry *zip.File) error {
	mode := entry.Mode()
	switch {
	case mode.IsDir():
		return u.directory(entry.Name)
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("%w: %.200q is a link", errEntry, entry.Name)
	case !mode.IsRegular():
		return fmt.Errorf("%w: %.200q is neither a file nor a directory", errEntry, entry.Name)
	}
	in, err := entry.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	return u.file(entry.Name, mode, in)
}

// place returns the path for an entry; "." is the directory itself.
func (u *unpacking) place(name string) (string, error) {
	if u.entries++; u.entries > archiveMost {
		return "", errCrowd
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: %.200q leads out of the archive", errEntry, name)
		}
	}
	clean := path.Clean(name)
	// A backslash and a colon are ordinary characters here and special on Windows: no sound archive has them.
	if strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\\:\x00") || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", fmt.Errorf("%w: %.200q is no path in an archive", errEntry, name)
	}
	return filepath.FromSlash(clean), u.ctx.Err()
}

func (u *unpacking) directory(name string) error {
	at, err := u.place(name)
	if err != nil || at == "." {
		return err
	}
	return u.into.MkdirAll(at, 0o700)
}

// file writes a file that does not exist yet: an entry that comes twice, or again in other letter case where that is the same, is refused.
func (u *unpacking) file(name string, mode fs.FileMode, in io.Reader) error {
	at, err := u.place(name)
	if err != nil {
		return err
	}
	if err := u.into.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	private := fs.FileMode(0o600)
	if mode&0o111 != 0 {
		private = 0o700
	}
	f, err := u.into.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, private)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %.200q comes twice", errEntry, name)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(f, &counted{from: in, most: u.left, each: func(int64) error { return u.ctx.Err() }})
	u.left -= n
	return errors.Join(err, f.Close(), u.ctx.Err())
}

// counted reads at most most bytes, and calls each after every piece; an error of each ends the reading.
type counted struct {
	from io.Reader
	most int64
	each func(total int64) error
	n    int64
}

var errTooLarge = errors.New("there is more in it than is taken")

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	if c.n > c.most {
		return n, fmt.Errorf("%w: %d MB", errTooLarge, c.most/1_000_000)
	}
	if stop := c.each(c.n); stop != nil {
		return n, stop
	}
	return n, err
}
