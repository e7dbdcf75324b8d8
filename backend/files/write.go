package files

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// hidden is a new name for what is not finished.
func hidden() string { return ".deskhand-" + rand.Text() }

// Write makes a file, or replaces what one holds, and makes its parents. It tells how many bytes it wrote. Readers see the old
// file or the new one; when r fails, the old one stays.
//
// A link at the end of the path is followed, and the file that it leads to is replaced; one that leads to nothing makes that file.
// The mode of a file is kept, and its owner and group where the system permits it; a group that is not kept leaves ours the rights of
// everybody. A new file has 0644 without the umask's bits. A file that may not be written to is not replaced either. What is there and
// is no regular file is ErrInvalid. Hard links are parted.
func (t *Tree) Write(path string, r io.Reader) (Entry, int64, error) {
	e, n, _, err := t.writeOver(path, nil, r)
	return e, n, err
}

// WriteSeen is Write for who has seen what stands there: version is what Version said of it, "" that nothing did. The answer has the
// version that it is then. If something else stands there by now nothing is written: ErrExists where nothing was to be there, else
// ErrChanged. It is looked at once more right before the new content takes its place; what is written in that very instant is not seen.
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

// asSeen refuses to write over what is not as the caller has seen it.
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

// stillAsSeen is asSeen for a file that is about to be replaced.
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

// firstMode is the mode of the unfinished file: nobody else reads what replaces a file that is closed to others.
func firstMode(old fs.FileInfo) fs.FileMode {
	if old != nil {
		return 0o600
	}
	return 0o644
}

// writable refuses what is no file and what must not be written to. A rename asks for neither.
func (c *call) writable(s spot) error {
	if s.info == nil {
		return c.free(s.self, s.name)
	}
	if !s.info.Mode().IsRegular() {
		return refuse(ErrInvalid, c.given, "is not a regular file")
	}
	return writable(s.dir, s.name, s.info)
}

// source is a reader that keeps its own error, apart from those of whatever reads from it.
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

// draft is a file that is not finished, beside the one that it is to replace.
type draft struct {
	dir        *os.Root
	name, temp string
	file       *os.File
	last       func(dir *os.Root, name string) error // asked right before it takes its place; nil: nobody is
}

func newDraft(dir *os.Root, name string, mode fs.FileMode) (*draft, error) {
	d := &draft{dir: dir, name: name, temp: hidden()}
	var err error
	d.file, err = dir.OpenFile(d.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	return d, err
}

// finish gives the file its name, and the mode and the owner of the one that it replaces.
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
	// Its new name has changed its version, too.
	if now, err := d.dir.Lstat(d.name); err == nil && os.SameFile(now, info) {
		info = now
	}
	return info, syncDir(d.dir)
}

func (d *draft) drop() {
	_ = d.file.Close()
	_ = d.dir.Remove(d.temp)
}

// Replace writes a file of an open directory as Write does: its content is the old or the new one, and on the disk at the end. A
// link at the name is replaced itself. The directory must exist.
func Replace(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	return ReplaceIf(root, name, data, mode, nil)
}

// ReplaceIf is Replace for who has looked at what stands there: last is asked right before the new content takes its place, which may be a while
// after the call. Its error is returned as it is, and nothing was written then.
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

// MakeDir makes a directory and its parents. One that is there already is fine, also behind a link; where a link leads to nothing,
// that directory is made.
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
