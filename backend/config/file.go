package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const folder = ".sandbox-agent/config"

// Place returns where the entries of a kind are, relative to their directory: a folder, and a file in the folder.
func Place(k Kind) (dir, name string) { return folder, fileName(k) }

func fileName(k Kind) string { return string(k) + ".json" }

// file is the content of one of the two files.
type file struct {
	kind    Kind
	path    string // for people
	data    []byte // nil when the file is missing
	members []member
}

func (f *file) find(name string) int {
	return slices.IndexFunc(f.members, func(m member) bool { return m.name == name })
}

// canonical returns an entry of the file as callers see the entry.
func (f *file) canonical(m member) (json.RawMessage, error) {
	entry, err := canonical(f.kind, m.value)
	if err != nil {
		return nil, fail(ErrBroken, "%s: entry %q: %s", f.path, m.name, err)
	}
	return entry, nil
}

// encode returns the new text of the file. Entries keep their bytes.
func (f *file) encode() []byte {
	members := slices.Clone(f.members)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	if len(members) == 0 {
		return []byte("{}\n")
	}
	var out bytes.Buffer
	before := "{\n  "
	for _, m := range members {
		out.WriteString(before)
		out.Write(m.key)
		out.WriteString(": ")
		out.Write(m.value)
		before = ",\n  "
	}
	out.WriteString("\n}\n")
	return out.Bytes()
}

// read reads the file of a kind. A missing file is empty.
func (s *Store) read(ctx context.Context, kind Kind) (*file, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := s.Path(kind)
	data, err := readLimited(s.dir, path)
	if errors.Is(err, fs.ErrNotExist) {
		return &file{kind: kind, path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	members, err := parseFile(data)
	if err != nil {
		return nil, fail(ErrBroken, "%s %s", path, err)
	}
	return &file{kind, path, data, members}, nil
}

func readLimited(dir *os.Root, name string) (data []byte, err error) {
	f, err := openRegular(dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer closing(f, &err)
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, fail(ErrBroken, "%s has more than %d bytes", name, maxFile)
	}
	return data, nil
}

// openRegular opens a regular file without waiting: a FIFO would block the caller until somebody writes to the FIFO. The folder is a part
// of the name, and not opened first, because os.Root.OpenRoot waits for a FIFO in the folder's place (TestPipesDoNotBlock).
func openRegular(dir *os.Root, name string, flags int) (*os.File, error) {
	f, err := dir.OpenFile(name, flags|openFlags, 0o600)
	if err != nil {
		return nil, unusable(name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fail(ErrBroken, "%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unusable explains the failure to open a file. An entry of the wrong kind is ErrBroken: a file in place of a directory, the reverse, or
// a link that leads outside (os.Root's error for such a link is not exported, but is the only error that is not the system's). Of the
// system's own failures only the refusals have a kind.
func unusable(name string, err error) error {
	var system syscall.Errno
	ours := []syscall.Errno{syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENXIO, syscall.EEXIST}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fail(ErrPermission, "%s cannot be opened: %s", name, cause(err))
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &system) && !slices.Contains(ours, system):
		return fmt.Errorf("%s cannot be opened: %w", name, err)
	}
	return fail(ErrBroken, "%s cannot be used: %s", name, cause(err))
}

// cause returns an error without the path in its text.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// closing closes c, and sets err to the error of Close unless err is set already.
func closing(c io.Closer, err *error) {
	if failed := c.Close(); *err == nil {
		*err = failed
	}
}

// OpenRegular opens a regular file of an open directory for reading, and never waits. Anything but a regular file is ErrBroken.
func OpenRegular(dir *os.Root, name string) (*os.File, error) {
	return openRegular(dir, name, os.O_RDONLY)
}

// OpenDirectory opens a directory. For a FIFO in the directory's place the open fails instead of waiting.
func OpenDirectory(directory string) (*os.Root, error) {
	return os.OpenRoot(directory + string(filepath.Separator) + ".")
}
