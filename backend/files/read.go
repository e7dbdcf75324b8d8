package files

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// List returns the entries of a directory: directories first, then by name. An entry that the system cannot describe has only its name
// and kind. Private directories are listed, but not entered.
func (t *Tree) List(path string) ([]Entry, error) {
	c, err := t.call(path)
	if err != nil {
		return nil, err
	}
	dir, err := c.directory()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	found, err := readDir(dir)
	if err != nil {
		return nil, explain(path, err)
	}
	return c.entries(dir, found), nil
}

func (c *call) entries(dir *os.Root, found []fs.DirEntry) []Entry {
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		at := filepath.Join(c.name, f.Name())
		info, err := dir.Lstat(f.Name())
		switch {
		case err == nil:
			entries = append(entries, entryOf(at, info))
		case !errors.Is(err, fs.ErrNotExist): // an entry that vanished meanwhile is left out
			entries = append(entries, Entry{Name: f.Name(), Path: at, Kind: kindOf(f.Type())})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		if (a.Kind == Directory) != (b.Kind == Directory) {
			if a.Kind == Directory {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return entries
}

func readDir(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// Stat describes the entry at path. A link is not followed.
func (t *Tree) Stat(path string) (Entry, error) {
	c, err := t.call(path)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	err = c.again(func() error {
		s, err := c.walk(0)
		if err != nil {
			return err
		}
		defer s.dir.Close()
		if s.info == nil {
			return fs.ErrNotExist
		}
		e = entryOf(c.name, s.info)
		return nil
	})
	return e, err
}

// Open opens a regular file for reading. Open never waits, and opens no device and no pipe.
func (t *Tree) Open(path string) (*os.File, fs.FileInfo, error) {
	c, err := t.call(path)
	if err != nil {
		return nil, nil, err
	}
	var file *os.File
	var info fs.FileInfo
	err = c.again(func() error {
		s, err := c.walk(followLast)
		if err != nil {
			return err
		}
		defer s.dir.Close()
		file, info, err = c.openRegular(s.dir, s.name, s.info)
		return err
	})
	return file, info, err
}

// openRegular opens the regular file that was seen at name.
func (c *call) openRegular(dir *os.Root, name string, seen fs.FileInfo) (*os.File, fs.FileInfo, error) {
	switch {
	case seen == nil:
		return nil, nil, fs.ErrNotExist
	case !seen.Mode().IsRegular():
		return nil, nil, refuse(ErrInvalid, c.given, "is not a regular file")
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, swapped(err)
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, seen) {
		err = errSwapped
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Directory returns the absolute name, as the caller would write it, of an existing directory inside of a root. For the path "" Directory
// returns the user's home, wherever that is.
func (t *Tree) Directory(path string) (string, error) {
	if path == "" {
		return t.home, nil
	}
	c, err := t.call(path)
	if err != nil {
		return "", err
	}
	dir, err := c.directory()
	if err != nil {
		return "", err
	}
	return c.name, dir.Close()
}

// Root opens an existing directory inside of a root. The path "" means the user's home, which must be inside of a root here. The caller
// closes the Root, and must follow no link in the Root without asking whether the link leads to a private directory: os.Root does not
// know of private directories.
func (t *Tree) Root(path string) (*os.Root, error) {
	if path == "" {
		path = t.home
	}
	c, err := t.call(path)
	if err != nil {
		return nil, err
	}
	return c.directory()
}

// directory opens the directory at the end of the path.
func (c *call) directory() (*os.Root, error) {
	var dir *os.Root
	err := c.again(func() error {
		s, err := c.walk(followLast)
		if err != nil {
			return err
		}
		if err = c.goInto(&s); err != nil {
			s.dir.Close()
			return err
		}
		dir = s.dir
		return nil
	})
	return dir, err
}

// endsInSeparator reports whether the path can only mean a directory.
func endsInSeparator(path string) bool {
	path = strings.TrimSuffix(path, ".")
	return path != "" && os.IsPathSeparator(path[len(path)-1])
}
