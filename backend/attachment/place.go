package attachment

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

const (
	copies    = Copies
	unnamed   = ".deskhand-" // begins the names of files that are being written
	mostName  = 200          // bytes of a copy's name; file systems allow 255
	fileMode  = 0o600
	dirMode   = 0o755
	mostTries = 100
)

// Copies is the directory of the copies, below the agent's working directory.
const Copies = ".deskhand/attachments"

// ignoreFile in the directory of the copies makes git ignore them, when the repository cannot be configured to do so. Agents that skip ignored
// files obey the file too.
const (
	ignoreFile = ".gitignore"
	ignoreAll  = "*\n"
)

// Hide configures git to ignore the copies below cwd, without a file among them. Hide returns false when that is impossible, such as outside a
// repository.
type Hide func(ctx context.Context, cwd string) bool

// CopiesBelow is a Copier that writes below <cwd>/.deskhand/attachments, by Place.
func CopiesBelow(cwd string, read Bytes, hide Hide) Copier {
	hidden := false
	return func(ctx context.Context, f File, to string) (string, error) {
		data, err := read(ctx, f)
		if err != nil {
			return "", err
		}
		hidden = hidden || hide != nil && hide(ctx, cwd) // once per prompt
		return Place(ctx, cwd, to, data, hidden)
	}
}

// HideCopies makes git ignore the existing copies below cwd, which may be older than the repository, or than Hide.
func HideCopies(ctx context.Context, cwd string, hide Hide) error {
	top, err := os.OpenRoot(cwd)
	if err != nil {
		return err
	}
	defer top.Close()
	if info, err := top.Lstat(copies); err != nil || !info.IsDir() {
		return gone(err)
	}
	dir, err := copiesDir(ctx, top, hide(ctx, cwd))
	if err != nil {
		return err
	}
	return dir.Close()
}

// Place writes a copy at a path of Planned.CopyTo. Unless hidden is set, Place also writes a .gitignore beside the copies. An existing equal
// copy is not written again; when another file has the name, the copy's name gets a number. Place follows no link out of cwd, and returns
// attachment.outside instead.
func Place(ctx context.Context, cwd, to string, data []byte, hidden bool) (string, error) {
	name := filepath.Base(to)
	top, err := os.OpenRoot(cwd)
	if err != nil {
		return "", trouble(name, err)
	}
	defer top.Close()
	dir, err := copiesDir(ctx, top, hidden)
	if err != nil {
		return "", notWritten(name, err)
	}
	defer dir.Close()
	for n := 1; n <= mostTries; n++ {
		at := numbered(name, n)
		err := put(ctx, dir, at, data)
		if p, ok := errors.AsType[*Problem](err); ok && p.Code == "attachment.exists" {
			continue
		}
		if err != nil {
			return "", notWritten(name, err)
		}
		return filepath.Join(cwd, filepath.FromSlash(copies), at), nil
	}
	return "", problem("exists", "name", name)
}

func copiesDir(ctx context.Context, top *os.Root, hidden bool) (*os.Root, error) {
	if err := top.MkdirAll(copies, dirMode); err != nil {
		return nil, err
	}
	dir, err := top.OpenRoot(copies)
	if err != nil {
		return nil, err
	}
	if hidden {
		err = withoutIgnore(ctx, dir)
	} else {
		err = withIgnore(ctx, dir)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func withIgnore(ctx context.Context, dir *os.Root) error {
	err := put(ctx, dir, ignoreFile, []byte(ignoreAll))
	if p, ok := errors.AsType[*Problem](err); ok && p.Code == "attachment.exists" {
		return nil // a person's own .gitignore stays
	}
	return err
}

// withoutIgnore removes the file of withIgnore. A person's own .gitignore stays.
func withoutIgnore(ctx context.Context, dir *os.Root) error {
	ours, err := isThere(dir, ignoreFile, []byte(ignoreAll))
	if p, ok := errors.AsType[*Problem](err); ok && p.Code == "attachment.exists" {
		return nil
	}
	if err != nil || !ours || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return gone(dir.Remove(ignoreFile))
}

// notWritten converts a failure to write into a problem.
func notWritten(name string, err error) error {
	var p *Problem
	switch {
	case errors.As(err, &p), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.Contains(err.Error(), "escapes"): // os has no name for this error
		return problem("outside", "name", name).because(err)
	}
	return problem("unwritable", "name", name).because(err)
}

// numbered is a name with the number n before its extension, for n above 1.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	if ext == name {
		ext = "" // .env
	}
	return strings.TrimSuffix(name, ext) + "-" + strconv.Itoa(n) + ext
}

// copyName is the name of a file's copy: a name that every file system allows and that git does not read.
func copyName(f File) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || strings.ContainsRune(`<>:"/\|?*`, r) {
			return '_'
		}
		return r
	}, baseName(f.Filename, f.MimeType))
	name = strings.TrimRight(name, ". ")
	if strings.HasPrefix(strings.ToLower(name), ".git") {
		name = name[1:]
	}
	if name == "" || !filepath.IsLocal(name) {
		name = "file" + name
	}
	ext := path.Ext(name)
	if len(ext) > mostName/2 {
		ext = ""
	}
	if stem := strings.TrimSuffix(name, ext); len(name) > mostName {
		name = strings.ToValidUTF8(stem[:mostName-len(ext)], "") + ext
	}
	return name
}

// put writes a new file, complete under a temporary name first, so that no reader sees a partial file. put never replaces a file: equal
// content counts as written, and any other file is attachment.exists.
func put(ctx context.Context, dir *os.Root, name string, data []byte) error {
	if there, err := isThere(dir, name, data); there || err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	draft := unnamed + hex.EncodeToString(random[:])
	if err := writeNew(dir, draft, data); err != nil {
		return errors.Join(err, gone(dir.Remove(draft)))
	}
	err := dir.Link(draft, name)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = writeNew(dir, name, data) // the file system has no hard links
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = errors.Join(err, gone(dir.Remove(name)))
		}
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		var there bool
		if there, err = isThere(dir, name, data); err == nil && !there {
			err = problem("exists", "name", name)
		}
	}
	return errors.Join(err, gone(dir.Remove(draft)))
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func writeNew(dir *os.Root, name string, data []byte) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// isThere reports whether a file has this content. Other content is an error.
func isThere(dir *os.Root, name string, data []byte) (bool, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	other := problem("exists", "name", name)
	if !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false, other
	}
	f, err := openRegular(name, info, func() (*os.File, error) { return dir.OpenFile(name, os.O_RDONLY|nonBlocking, 0) }, info.Size())
	if err != nil {
		return false, other.because(err)
	}
	defer f.Close()
	have, err := readAtMost(f, info.Size(), name)
	if err != nil {
		return false, other.because(err)
	}
	if !bytes.Equal(have, data) {
		return false, other
	}
	return true, nil
}
