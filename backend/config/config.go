// Package config hides how the MCP servers and skills of a directory are kept on disk: who writes when, in which form, and what
// becomes of a file that somebody else has broken.
//
// Entries live in <directory>/.sandbox-agent/config, in mcp.json and skills.json: one object each, name -> entry, sorted by name,
// made to be read and edited by people too. Directories are made with mode 0700 and files with 0600, because entries hold secrets.
// After the last delete the file stays, as an empty object.
//
// # Writing
//
// A change reads, changes and replaces the file whole, under a lock that holds across goroutines and processes: on the file .lock
// beside it, which stays, because removing it while somebody writes takes the protection away. Whoever waits for the lock does so
// until its context ends, for 30 seconds at most: then it is ErrBusy. A writer that is killed leaves the old file or the new one, and
// the lock free. Reading takes no lock. A change touches one entry: the bytes of the others stay as they are in the file, spaces
// included, whoever wrote them. A change that changes nothing writes nothing. A file that is a link to elsewhere in the directory is
// read there, and a change puts a file in the link's place.
//
// # What is broken
//
// A file is broken when no one can say what each of its entries is: it is no JSON object in UTF-8, has a name twice, is over 4 MiB,
// is no regular file, or is a link that leads out of its directory. Then every call fails with ErrBroken and the file is left as it is.
// An entry is broken when Put would refuse it: Get of this one is ErrBroken, List tells of it beside the others, and Put and Delete
// work on it and on the others.
//
// The directory may be hostile: nothing outside of it is read or written, no FIFO blocks, and no file is read beyond the limit.
//
// # Names
//
// A name is 1 to 256 bytes of UTF-8 without control characters. Beyond that it is the caller's: spaces, slashes and dots too, since
// it is a key and never a path.
//
// # Entries
//
// What is put is checked and brought into one form, which is what is read back (an entry that was edited in the file likewise): type
// is local or remote (stdio, http and sse are understood, the latter two become transport), each option has its one name (the
// aliases are environment, timeout, envHttpHeaders and isActive; disabled becomes the opposite of enabled), options that are null
// are left out, local entries always have args. command stays a string or an array, as it was given. Fields come in the order of
// the API's description; unknown ones follow in the order they came in, their values unchanged to the byte except for white space:
// they are neither judged nor dropped, also inside of sources and oauth. Refused with ErrInvalid, with the field's name: a wrong or missing value, an option given differently under two
// names, a key given twice anywhere, nesting deeper than 64, and what could not be used safely: NUL in what a program is given, line
// breaks in headers, a git source or ref that git would take for an option, a subpath that leaves the repository.
package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind of entries; each has a file of its own.
type Kind string

// The kinds of entries.
const (
	MCP    Kind = "mcp"
	Skills Kind = "skills"
)

const (
	// MaxEntry is how long an entry that is put may be, in bytes.
	MaxEntry = 1 << 20
	maxFile  = 4 << 20
	maxName  = 256
)

// What callers tell apart with errors.Is. The text of an error is fit for a caller: it names the field, or the file. Others come from
// the system or from the writing of the file, and wrap their errors.
var (
	ErrInvalid    = errors.New("invalid entry")
	ErrNotFound   = errors.New("no such entry")
	ErrBroken     = errors.New("unusable configuration")
	ErrTooLarge   = errors.New("too much configuration")
	ErrPermission = errors.New("configuration out of reach")
	ErrBusy       = errors.New("configuration in use")
)

// failure is one of the errors above, told in words.
type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

func fail(kind error, format string, args ...any) error {
	return &failure{kind, fmt.Sprintf(format, args...)}
}

// Store reads and changes the entries of one directory.
type Store struct {
	dir   *os.Root
	write func(*os.Root, string, []byte, fs.FileMode) error
}

// Open makes a store of an open directory, which stays the caller's to close. write replaces a file of an open directory atomically.
func Open(dir *os.Root, write func(*os.Root, string, []byte, fs.FileMode) error) *Store {
	return &Store{dir, write}
}

// List returns all entries that are usable, in their canonical form. When others are not, it returns an error for them as well
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
		return nil, fail(ErrNotFound, "%s has no entry %q", kind.path(), name)
	}
	return f.canonical(f.members[at])
}

// Put stores an entry, in the place of the one of this name if there is one.
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

// Delete removes an entry. It is nil when there is none, and then makes no file.
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

// change changes the file under the lock.
func (s *Store) change(ctx context.Context, kind Kind, edit func(*file)) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.dir.MkdirAll(folder, 0o700); err != nil {
		return unusable(folder, err)
	}
	lock, err := takeLock(ctx, s.dir)
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
		return fail(ErrTooLarge, "%s would have more than %d bytes", kind.path(), maxFile)
	case bytes.Equal(data, f.data):
		return nil
	}
	if err := s.write(s.dir, kind.path(), data, 0o600); err != nil {
		return fmt.Errorf("%s cannot be written: %w", kind.path(), err)
	}
	return nil
}

// CheckName is ErrInvalid for what cannot be the name of an entry.
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
