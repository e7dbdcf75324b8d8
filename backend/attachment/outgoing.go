package attachment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/store"
)

// Default limits of the files that an agent gives, per file and per call.
const (
	usualGiven     = 8 << 20
	usualGivenCall = 16 << 20
)

// Wanted is a file that an agent gives. Path is absolute, or relative to the agent's working directory. Filename and MimeType override the
// file's own.
type Wanted struct{ Path, Filename, MimeType string }

// Read is a file with its bytes.
type Read struct {
	File

	Data []byte
}

// Outgoing reads the files that an agent gives, in their order. With all links resolved, each must be a readable regular file in cwd or a
// root. Outgoing checks and opens all files before it reads the first; for an invalid file Outgoing returns a *Problem and no file. A limit of
// 0 means 8 MiB per file and 16 MiB per call. Outgoing opens files by open, which may refuse a file with fs.ErrInvalid; a nil open opens every
// file.
func Outgoing(ctx context.Context, cwd string, roots []string, list []Wanted, perFile, perCall int64, open func(path string) (*os.File, error)) ([]Read, error) {
	if len(list) == 0 {
		return nil, problem("empty")
	}
	if err := (Limits{}).Count(len(list)); err != nil {
		return nil, err
	}
	if perFile <= 0 {
		perFile = usualGiven
	}
	if perCall <= 0 {
		perCall = usualGivenCall
	}
	files := make([]given, 0, len(list))
	defer func() {
		for _, g := range files {
			_ = g.content.Close() // no bytes were written
		}
	}()
	left := perCall
	for _, w := range list {
		g, err := check(ctx, w, cwd, append([]string{cwd}, roots...), perFile, open)
		if err != nil {
			return nil, err
		}
		files = append(files, g)
		if left -= g.size; left < 0 {
			return nil, problem("total_too_large", "name", g.file.Filename, "limit", bytesText(perCall))
		}
	}
	return readGiven(ctx, files, perFile, perCall)
}

// given is a checked, open file.
type given struct {
	file    File
	named   string // the name that implies the type
	mime    string
	size    int64
	content *os.File
}

func check(ctx context.Context, w Wanted, cwd string, roots []string, most int64, open func(path string) (*os.File, error)) (given, error) {
	g := given{mime: w.MimeType, named: w.Filename, file: File{Filename: cmp.Or(w.Filename, nameOf(w.Path))}}
	g.file.Filename = baseName(g.file.Filename, w.MimeType)
	name := nameOf(w.Path)
	if err := ctx.Err(); err != nil {
		return g, err
	}
	if w.Path == "" || strings.ContainsRune(w.Path, 0) {
		return g, problem("missing", "name", g.file.Filename)
	}
	if typeOfName(g.named) == "" {
		g.named = w.Path
	}
	path := w.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return g, missingIn(path, roots, name, err)
	}
	root, rest, ok := containing(real, roots)
	if !ok {
		return g, problem("outside", "name", name)
	}
	g.file.Path = filepath.Join(root, rest)
	g.file.URI = URI(g.file.Path)
	top, err := os.OpenRoot(root)
	if err != nil {
		return g, trouble(name, err)
	}
	defer top.Close()
	info, err := top.Lstat(rest)
	if err != nil {
		return g, trouble(name, err)
	}
	g.size = info.Size()
	g.content, err = openRegular(name, info, func() (*os.File, error) {
		if open == nil {
			return top.OpenFile(rest, os.O_RDONLY|nonBlocking, 0)
		}
		f, err := open(g.file.Path)
		if errors.Is(err, fs.ErrInvalid) {
			err = problem("outside", "name", name).because(err)
		}
		return f, err
	}, most)
	return g, err
}

// missingIn is the agent's error for a path that cannot be followed. For a path outside the roots the error reveals nothing else.
func missingIn(path string, roots []string, name string, err error) error {
	if !under(filepath.Clean(path), roots) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return problem("outside", "name", name).because(err)
	}
	return trouble(name, err)
}

func readGiven(ctx context.Context, files []given, perFile, perCall int64) ([]Read, error) {
	out := make([]Read, 0, len(files))
	for _, g := range files {
		f := g.file
		data, err := readAtMost(store.While(ctx, g.content), perFile, f.Filename)
		if err != nil {
			return nil, trouble(f.Filename, err)
		}
		if perCall -= int64(len(data)); perCall < 0 { // the file has grown since its check
			return nil, problem("changed", "name", f.Filename)
		}
		sum := sha256.Sum256(data)
		f.SHA256, f.Size = hex.EncodeToString(sum[:]), int64(len(data))
		f.MimeType = MIME(g.mime, g.named, data[:min(len(data), headSize)])
		if isPicture(f.MimeType) {
			f.measureIn(data)
		}
		out = append(out, Read{f, data})
	}
	return out, nil
}
