package files

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// hidden returns a new name for an unfinished entry.
func hidden() string { return ".deskhand-" + rand.Text() }

// Write makes a file with the content of r, or replaces the content of a file, and makes the missing parents. Write returns how many
// bytes were written. Readers see the old file or the new file; when r fails, the old file stays.
//
// A link at the end of the path is followed, and its target is replaced; a missing target is made. The mode of a file is kept, and its
// owner and group where the system permits that; a group that cannot be kept gets the rights of everybody else. A new file has the mode
// 0644 without the bits of the umask. A file that may not be written to is not replaced either. An existing entry that is no regular file
// is ErrInvalid. Hard links are parted.
func (t *Tree) Write(path string, r io.Reader) (Entry, int64, error) {
	e, n, _, err := t.writeOver(path, nil, r)
	return e, n, err
}

// WriteSeen writes as Write does, for a caller that has seen the file: version is the result of Version for the file, or "" for no file.
// WriteSeen returns the version after the write. If another entry stands there by now, nothing is written: the error is ErrExists when no
// file was expected, and ErrChanged otherwise. WriteSeen checks once more right before the rename; a write in that very instant is not
// noticed.
func (t *Tree) WriteSeen(path, version string, r io.Reader) (Entry, string, error) {
	e, _, version, err := t.writeOver(path, &version, r)
	return e, version, err
}

func (t *Tree) writeOver(path string, seen *string, r io.Reader) (e Entry, n int64, version string, err error) {
	c, err := t.call(path)
	if err != nil {
		return Entry{}, 0, "", err
	}
	if endsInSeparator(path) {
		return Entry{}, 0, "", refuse(ErrInvalid, path, "names a directory")
	}
	c.seen = seen
	info, n, err := c.write(r)
	if err != nil {
		c.unmake()
		return Entry{}, 0, "", explain(path, err)
	}
	return entryOf(c.name, info), n, Version(info), nil
}

func (c *call) write(r io.Reader) (fs.FileInfo, int64, error) {
	var d *draft
	var old fs.FileInfo
	err := c.again(func() error {
		s, err := c.walk(followLast | makeWay)
		if err != nil {
			return err
		}
		if err = c.asSeen(s.info); err == nil {
			err = c.writable(s)
		}
		if err == nil {
			old = s.info
			d, err = newDraft(s.dir, s.name, firstMode(old))
		}
		if err != nil {
			s.dir.Close()
		}
		if errors.Is(err, fs.ErrNotExist) { // the directory has been removed since
			return errSwapped
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	defer d.dir.Close()
	body := &source{r: r}
	n, err := io.Copy(d.file, body)
	if body.err != nil {
		err = &refusal{ErrBroken, shown(c.given) + " was not written: what was to be written broke off", body.err}
	}
	if err != nil {
		d.drop()
		return nil, 0, err
	}
	d.last = c.stillAsSeen
	info, err := d.finish(old)
	return info, n, err
}

// asSeen fails unless the entry is as the caller has seen it.
func (c *call) asSeen(info fs.FileInfo) error {
	switch {
	case c.seen == nil:
		return nil
	case *c.seen == "" && info != nil:
		return refuse(ErrExists, c.given, "exists already")
	case *c.seen != "" && (info == nil || Version(info) != *c.seen):
		return refuse(ErrChanged, c.given, "is not as it was seen")
	}
	return nil
}

// stillAsSeen checks as asSeen does, right before the file is replaced.
func (c *call) stillAsSeen(dir *os.Root, name string) error {
	if c.seen == nil {
		return nil
	}
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return c.asSeen(nil)
	}
	if err != nil {
		return err
	}
	return c.asSeen(info)
}

// firstMode returns the mode of the unfinished file: nobody else may read the replacement of a file that is closed to others.
func firstMode(old fs.FileInfo) fs.FileMode {
	if old != nil {
		return 0o600
	}
	return 0o644
}

// writable fails for an entry that is no file or must not be written to. A rename checks neither.
func (c *call) writable(s spot) error {
	if s.info == nil {
		return c.free(s.self, s.name)
	}
	if !s.info.Mode().IsRegular() {
		return refuse(ErrInvalid, c.given, "is not a regular file")
	}
	return writable(s.dir, s.name, s.info)
}

// source is a reader that keeps its own error apart from the errors of its consumers.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// draft is an unfinished file beside the file that it will replace.
type draft struct {
	dir        *os.Root
	name, temp string
	file       *os.File
	last       func(dir *os.Root, name string) error // called right before the rename; nil: no check
}

func newDraft(dir *os.Root, name string, mode fs.FileMode) (*draft, error) {
	d := &draft{dir: dir, name: name, temp: hidden()}
	var err error
	d.file, err = dir.OpenFile(d.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	return d, err
}

// finish gives the file its name, and the mode and the owner of the file that it replaces.
func (d *draft) finish(old fs.FileInfo) (fs.FileInfo, error) {
	var err error
	if old != nil {
		err = d.file.Chmod(keepOwner(d.file, old))
	}
	if err == nil {
		err = d.file.Sync()
	}
	var info fs.FileInfo
	if err == nil {
		info, err = d.file.Stat()
	}
	err = errors.Join(err, d.file.Close())
	if err == nil && d.last != nil {
		err = d.last(d.dir, d.name)
	}
	if err == nil {
		err = d.dir.Rename(d.temp, d.name)
	}
	if err != nil {
		d.drop()
		return nil, err
	}
	// The rename has changed the version, too.
	if now, err := d.dir.Lstat(d.name); err == nil && os.SameFile(now, info) {
		info = now
	}
	return info, syncDir(d.dir)
}

func (d *draft) drop() {
	_ = d.file.Close()
	_ = d.dir.Remove(d.temp)
}

// Replace writes a file of an open directory as Write does: the file has its old or its new content, and is on the disk at the end. A
// link at the name is itself replaced. The directory must exist.
func Replace(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	return ReplaceIf(root, name, data, mode, nil)
}

// ReplaceIf is Replace for a caller that has looked at the old entry: last is called right before the new content takes its place, which
// may be a while after the call. An error of last is returned unchanged, and then nothing was written.
func ReplaceIf(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
	dir, err := root.OpenRoot(filepath.Dir(name) + "/.")
	if err != nil {
		return explain(name, err)
	}
	defer dir.Close()
	var refused error
	err = replace(dir, filepath.Base(name), data, mode, func(*os.Root, string) error {
		if last != nil {
			refused = last()
		}
		return refused
	})
	if refused != nil {
		return refused
	}
	return explain(name, err)
}

func replace(dir *os.Root, name string, data []byte, mode fs.FileMode, last func(*os.Root, string) error) error {
	d, err := newDraft(dir, name, 0o600)
	if err != nil {
		return err
	}
	d.last = last
	if _, err = d.file.Write(data); err == nil {
		err = d.file.Chmod(mode)
	}
	if err != nil {
		d.drop()
		return err
	}
	_, err = d.finish(nil)
	return err
}

// MakeDir makes a directory and its parents. A directory that exists already is no error, also behind a link; where a link leads to a
// missing directory, that directory is made.
func (t *Tree) MakeDir(path string) (string, error) {
	c, err := t.call(path)
	if err != nil {
		return "", err
	}
	if err = c.again(c.makeDir); err != nil {
		c.unmake()
		return "", err
	}
	return c.name, nil
}

func (c *call) makeDir() error {
	s, err := c.walk(followLast | makeWay)
	if err != nil {
		return err
	}
	defer func() { s.dir.Close() }()
	if s.info == nil {
		if err := c.mkdir(&s); err != nil {
			return err
		}
	}
	if !s.info.IsDir() {
		return fs.ErrExist
	}
	return nil
}
