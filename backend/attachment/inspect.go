package attachment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"deskhand/backend/store"
)

const directoryType = "inode/directory"

// Inspect describes the regular file or directory at an absolute path. A file is read once, for its hash; a file over the limit is refused
// unread. A link is described as its target. A link out of the roots (or, when the link itself is outside the roots, out of its directory) is
// attachment.link_outside unless follow is set, since a foreign directory may contain a link to a file that nobody means to send. Any other
// kind of file is attachment.not_a_file, and is not opened.
func Inspect(ctx context.Context, path string, roots []string, follow bool, limits Limits) (File, error) {
	name := nameOf(path)
	f := File{Filename: name}
	real, err := locate(&f, path, roots, follow)
	if err != nil {
		return File{}, trouble(name, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return File{}, trouble(name, err)
	}
	f.URI = URI(f.Path)
	if info.IsDir() {
		f.Directory, f.MimeType = true, directoryType
		return f, trouble(name, listable(real))
	}
	content, err := openRegular(name, info, func() (*os.File, error) { return os.OpenFile(real, os.O_RDONLY|nonBlocking, 0) }, limits.bytes())
	if err != nil {
		return File{}, err
	}
	defer content.Close()
	return f, trouble(name, describe(ctx, &f, content, "", limits))
}

// nameOf is the last element of a path, as valid UTF-8.
func nameOf(path string) string { return strings.ToValidUTF8(filepath.Base(path), "\uFFFD") }

// locate sets the path of a file, and returns the path without links.
func locate(f *File, path string, roots []string, follow bool) (real string, err error) {
	name := f.Filename
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", problem("missing", "name", name)
	}
	path = filepath.Clean(path)
	itself, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !itself.IsDir() && !filepath.IsLocal(filepath.Base(path)) {
		return "", problem("not_a_file", "name", name) // a device of Windows, which exists in every directory
	}
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	if root, rest, ok := containing(real, roots); ok {
		f.Path = filepath.Join(root, rest)
		return real, nil
	}
	f.Path = path
	if under(path, roots) || itself.Mode()&fs.ModeSymlink != 0 && !isBeside(path, real) {
		if !follow {
			return "", problem("link_outside", "name", name, "target", strings.ToValidUTF8(real, "\uFFFD"))
		}
		f.Path = real
	}
	return real, nil
}

// isBeside reports whether a link's target is in the link's own directory.
func isBeside(link, real string) bool {
	_, _, beside := containing(real, []string{filepath.Dir(link)})
	return beside
}

// containing finds the root that contains, or is, the link-free path real. containing compares directories by identity, not by name.
func containing(real string, roots []string) (root, rest string, ok bool) {
	var known []fs.FileInfo
	var names []string
	for _, r := range roots {
		if info, err := os.Stat(r); err == nil {
			known, names = append(known, info), append(names, r)
		}
	}
	for dir := real; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		for i := range known {
			if err != nil || !os.SameFile(info, known[i]) {
				continue
			}
			rest, err := filepath.Rel(dir, real)
			return names[i], rest, err == nil
		}
		if dir == filepath.Dir(dir) {
			return "", "", false
		}
	}
}

// Within reports whether a link-free path is in, or is, a directory of dirs, by identity. A missing directory contains nothing.
func Within(real string, dirs []string) bool {
	_, _, ok := containing(real, dirs)
	return ok
}

// under reports whether a path is in, or is, a root, by the text alone.
func under(path string, roots []string) bool {
	for _, r := range roots {
		if rest, err := filepath.Rel(r, path); err == nil && filepath.IsLocal(rest) {
			return true
		}
	}
	return false
}

func listable(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.ReadDir(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// openRegular opens the regular file described by seen, and fails when another file has taken its place.
func openRegular(name string, seen fs.FileInfo, open func() (*os.File, error), most int64) (*os.File, error) {
	if !seen.Mode().IsRegular() {
		return nil, problem("not_a_file", "name", name)
	}
	if seen.Size() > most {
		return nil, problem("too_large", "name", name, "limit", bytesText(most))
	}
	f, err := open()
	if err != nil {
		return nil, trouble(name, err)
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || !os.SameFile(info, seen)) {
		err = problem("changed", "name", name)
	}
	if err != nil {
		return nil, errors.Join(trouble(name, err), f.Close())
	}
	return f, nil
}

// describe reads a file once, for its hash, length, type and size in pixels.
func describe(ctx context.Context, f *File, content *os.File, given string, limits Limits) error {
	head := make([]byte, headSize)
	n, err := content.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	f.MimeType = MIME(given, f.Filename, head[:n])
	sum := sha256.New()
	f.Size, err = io.Copy(sum, io.LimitReader(store.While(ctx, content), limits.bytes()+1))
	if err != nil {
		return err
	}
	if f.Size > limits.bytes() {
		return problem("too_large", "name", f.Filename, "limit", bytesText(limits.bytes()))
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if isPicture(f.MimeType) {
		f.measure(store.While(ctx, io.NewSectionReader(content, 0, f.Size)))
	}
	return nil
}

// measure sets the size in pixels, if r is an image.
func (f *File) measure(r io.Reader) {
	if _, w, h, err := measure(r); err == nil {
		f.Width, f.Height = w, h
	}
}

func (f *File) measureIn(data []byte) { f.measure(bytes.NewReader(data)) }

// baseName is the last element of a given file name.
func baseName(name, mime string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r == 0 || r == utf8.RuneError {
			return -1
		}
		return r
	}, name)
	if name == "" || name == "." || name == ".." {
		return "file" + extensionOf(mime)
	}
	return name
}
