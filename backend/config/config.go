// Package config hides how the MCP servers and skills of a directory are kept on disk: which caller writes when, in which form, and how a
// file that somebody else has broken is treated.
//
// Entries live in <directory>/.sandbox-agent/config, in mcp.json and skills.json: one object each, name -> entry, sorted by name, made to
// be read and edited by people too. The entries of all projects are in two files of the same form, in a folder that the caller names.
// Directories are made with mode 0700 and files with 0600, because entries hold secrets. After the last delete the file stays, as an empty
// object.
//
// # Writing
//
// A change reads, changes and replaces the file whole, under a lock that holds across goroutines and processes: a lock on the file .lock
// beside the changed file. The lock file stays, because removing it while somebody writes removes the protection. A caller waits for the
// lock until its context ends, for 30 seconds at most: then the error is ErrBusy. A writer that is killed leaves the old file or the new
// file, and the lock free. Reading takes no lock. A change touches a single entry: the bytes of the others stay as they are in the file,
// spaces included, whoever wrote them. A change without effect writes nothing. A file that is a link to elsewhere in the directory is
// read there, and a change puts a file in the link's place.
//
// # Broken files and entries
//
// A file is broken when its entries cannot be told apart: the file is no JSON object in UTF-8, has a name twice, is over 4 MiB, is no
// regular file, or is a link that leads out of its directory. Then every call fails with ErrBroken and the file is left unchanged. An
// entry is broken when Put would refuse the entry: Get of this entry fails with ErrBroken, List returns the others beside an error, and
// Put and Delete work on every entry.
//
// The directory may be hostile: nothing outside of the directory is read or written, no FIFO blocks, and no file is read beyond the
// limit.
//
// # Names
//
// A name is 1 to 256 bytes of UTF-8 without control characters. Spaces, slashes and dots are allowed, since a name is a key and never a
// path.
//
// # Entries
//
// Put checks an entry and brings the entry into its canonical form, which Get and List return (also for an entry that was edited in the
// file): type is local or remote (stdio, http and sse are understood, the latter two become transport), each option has a single name
// (the aliases are environment, timeout, envHttpHeaders and isActive; disabled becomes the opposite of enabled), options that are null
// are left out, local entries always have args. command stays a string or an array, as given. Fields come in the order of the API's
// description; unknown fields follow in their own order, and their values keep every byte but white space: they are neither judged nor
// dropped, also inside of sources and oauth. Refused with ErrInvalid, with the field's name: a wrong or missing value, an option given
// differently under two names, a key given twice anywhere, nesting deeper than 64, and values that could not be used safely: NUL in an
// argument of a program, line breaks in headers, a git source or ref that git would take for an option, a subpath that leaves the
// repository.
package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is a kind of entries. Each kind has a file of its own.
type Kind string

// The kinds of entries.
const (
	MCP    Kind = "mcp"
	Skills Kind = "skills"
)

const (
	// MaxEntry is the longest entry that Put accepts, in bytes.
	MaxEntry = 1 << 20
	maxFile  = 4 << 20
	maxName  = 256
)

// The errors that callers tell apart with errors.Is. The text of such an error may be shown to the caller's user: the text names the
// field or the file. Other errors come from the system or from writing the file, and are wrapped.
var (
	ErrInvalid    = errors.New("invalid entry")
	ErrNotFound   = errors.New("no such entry")
	ErrBroken     = errors.New("unusable configuration")
	ErrTooLarge   = errors.New("too much configuration")
	ErrPermission = errors.New("configuration out of reach")
	ErrBusy       = errors.New("configuration in use")
)

// failure is an error of a kind above, with its own text.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

func fail(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// Store reads and changes the entries of a directory.
type Store struct {
	dir    *os.Root
	folder string // of the files, relative to dir
	write  func(*os.Root, string, []byte, fs.FileMode) error
}

// Open makes a store of an open directory, which the caller closes. write replaces a file of an open directory atomically.
func Open(dir *os.Root, write func(*os.Root, string, []byte, fs.FileMode) error) *Store {
	return &Store{dir, folder, write}
}

// OpenFlat is Open for files that are in the directory itself and not in a folder of the directory.
func OpenFlat(dir *os.Root, write func(*os.Root, string, []byte, fs.FileMode) error) *Store {
	return &Store{dir, ".", write}
}

// Path returns where the file of a kind is, relative to the open directory.
func (s *Store) Path(kind Kind) string { return path.Join(s.folder, fileName(kind)) }

// Names returns the names of all entries, also of those that are broken.
func (s *Store) Names(ctx context.Context, kind Kind) ([]string, error) {
	f, err := s.read(ctx, kind)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(f.members))
	for _, m := range f.members {
		names = append(names, m.name)
	}
	return names, nil
}

// List returns all usable entries, in their canonical form. When other entries are broken, List returns an error for them as well
// (ErrBroken, with each name), beside the entries.
func (s *Store) List(ctx context.Context, kind Kind) (map[string]json.RawMessage, error) {
	f, err := s.read(ctx, kind)
	if err != nil {
		return nil, err
	}
	entries := make(map[string]json.RawMessage, len(f.members))
	var broken []error
	for _, m := range f.members {
		entry, err := f.canonical(m)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		entries[m.name] = entry
	}
	return entries, errors.Join(broken...)
}

// Get returns an entry in its canonical form.
func (s *Store) Get(ctx context.Context, kind Kind, name string) (json.RawMessage, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	f, err := s.read(ctx, kind)
	if err != nil {
		return nil, err
	}
	at := f.find(name)
	if at < 0 {
		return nil, fail(ErrNotFound, "%s has no entry %q", s.Path(kind), name)
	}
	return f.canonical(f.members[at])
}

// Put stores an entry, and replaces an entry of the same name.
func (s *Store) Put(ctx context.Context, kind Kind, name string, entry []byte) error {
	if err := CheckName(name); err != nil {
		return err
	}
	form, err := Canonical(kind, entry)
	if err != nil {
		return err
	}
	return s.change(ctx, kind, func(f *file) {
		m := member{name: name, key: quote(name), value: indent(form)}
		if at := f.find(name); at >= 0 {
			f.members[at] = m
			return
		}
		f.members = append(f.members, m)
	})
}

// Delete removes an entry. A missing entry is no error, and no file is made then.
func (s *Store) Delete(ctx context.Context, kind Kind, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	f, err := s.read(ctx, kind)
	if err != nil || f.find(name) < 0 {
		return err
	}
	return s.change(ctx, kind, func(f *file) {
		f.members = slices.DeleteFunc(f.members, func(m member) bool { return m.name == name })
	})
}

// change edits the file under the lock.
func (s *Store) change(ctx context.Context, kind Kind, edit func(*file)) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.dir.MkdirAll(s.folder, 0o700); err != nil {
		return unusable(s.folder, err)
	}
	lock, err := takeLock(ctx, s.dir, path.Join(s.folder, lockName))
	if err != nil {
		return err
	}
	defer closing(lock, &err)
	f, err := s.read(ctx, kind)
	if err != nil {
		return err
	}
	edit(f)
	data := f.encode()
	switch {
	case len(data) > maxFile:
		return fail(ErrTooLarge, "%s would have more than %d bytes", s.Path(kind), maxFile)
	case bytes.Equal(data, f.data):
		return nil
	}
	if err := s.write(s.dir, s.Path(kind), data, 0o600); err != nil {
		return fmt.Errorf("%s cannot be written: %w", s.Path(kind), err)
	}
	return nil
}

// CheckName returns an error of the kind ErrInvalid unless name can be the name of an entry.
func CheckName(name string) error {
	switch {
	case name == "":
		return fail(ErrInvalid, "a name is wanted")
	case len(name) > maxName:
		return fail(ErrInvalid, "a name may have %d bytes", maxName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl):
		return fail(ErrInvalid, "a name is UTF-8 without control characters")
	}
	return nil
}
