package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxDepth is how deep directories may lie in each other in what is copied or unpacked: two are held open for each.
const maxDepth = 255

// copier copies entries, from one file system to another as it were.
type copier struct {
	*call
	ctx  context.Context
	dirs []copiedDir
	seen sightings // all but directories, as it was before it was copied
	syncer
}

// sightings are files as they were seen at a time.
type sightings map[string][]fs.FileInfo

func sighting(info fs.FileInfo) string {
	return fmt.Sprintf("%s-%x-%x", identity(info), info.Size(), info.ModTime().UnixNano()) // ten thousand may be alike but for the first
}

func (s sightings) add(info fs.FileInfo) { s[sighting(info)] = append(s[sighting(info)], info) }

// unchanged reports whether a file has been seen, and has been left as it was.
func (s sightings) unchanged(info fs.FileInfo) bool {
	return slices.ContainsFunc(s[sighting(info)], func(i fs.FileInfo) bool { return os.SameFile(i, info) })
}

// copy copies what is at from to a name that nothing has.
func (c *copier) copy(from, to spot, depth int) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return refuse(ErrTooLarge, c.given, "holds directories too deep in each other to be copied")
	}
	switch mode := from.info.Mode(); {
	case mode.IsRegular():
		return c.copyFile(from, to)
	case mode.IsDir():
		return c.copyDir(from, to, depth)
	case mode&fs.ModeSymlink != 0:
		target, err := from.dir.Readlink(from.name)
		if err != nil {
			return err
		}
		c.seen.add(from.info)
		return to.dir.Symlink(target, to.name)
	default:
		return refuse(ErrInvalid, c.given, "is or holds a device, a pipe or a socket, which cannot be copied")
	}
}

func (c *copier) copyFile(from, to spot) error {
	in, info, err := c.openRegular(from.dir, from.name, from.info)
	if err != nil {
		return err
	}
	defer in.Close()
	c.seen.add(info)
	out, err := to.dir.OpenFile(to.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, &cutReader{c.ctx, in})
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = c.file(out)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return to.dir.Chtimes(to.name, time.Time{}, info.ModTime())
}

func (c *copier) copyDir(from, to spot, depth int) error {
	if err := to.dir.Mkdir(to.name, 0o700); err != nil {
		return err
	}
	var err error
	if to.info, err = to.dir.Lstat(to.name); err != nil {
		return err
	}
	in, err := c.enter(from.dir, from.name, from.info)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.enter(to.dir, to.name, to.info)
	if err != nil {
		return err
	}
	defer out.Close()
	if err = c.copyAll(from, to, in, out, depth); err != nil {
		return err
	}
	c.dirs = append(c.dirs, copiedDir{to.way, to.name, from.info})
	return c.dir(out)
}

func (c *copier) copyAll(from, to spot, in, out *os.Root, depth int) error {
	found, err := readDir(in)
	if err == nil && len(found) > 0 {
		err = removable(in) // before it is copied for nothing
	}
	for i := 0; err == nil && i < len(found); i++ {
		entry := from.inside(in, found[i].Name())
		if entry.info, err = c.look(in, entry.self, entry.name); err == nil && entry.info != nil {
			err = c.copy(entry, to.inside(out, entry.name), depth+1)
		}
	}
	return err
}

// copiedDir is a directory of a copy that has not got its mode and time yet: until all is done, it must be open to us, and
// whatever is put in it changes its time.
type copiedDir struct {
	way  []string
	name string
	like fs.FileInfo
}

// complete gives the directories of a copy their modes and times, once the copy has its name.
func (c *copier) complete(at spot, draft string) {
	for _, d := range c.dirs {
		names := append(slices.Clone(d.way[len(at.way):]), d.name)
		if names[0] == draft {
			names[0] = at.name
		}
		name := filepath.Join(names...)
		_ = at.dir.Chmod(name, d.like.Mode().Perm())
		_ = at.dir.Chtimes(name, time.Time{}, d.like.ModTime())
	}
}

// cutReader ends with the context.
type cutReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *cutReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// manySyncs is from how many files on it is quicker to sync the whole file system than each file.
const manySyncs = 64

// syncer brings files and directories to the disk: the first ones one by one, and many at once where the system can.
type syncer struct {
	done int
	late bool
}

func (s *syncer) file(f *os.File) error {
	if s.postpone() {
		return nil
	}
	return f.Sync()
}

func (s *syncer) dir(d *os.Root) error {
	if s.postpone() {
		return nil
	}
	return syncDir(d)
}

func (s *syncer) postpone() bool {
	s.done++
	s.late = s.late || canSyncAll && s.done > manySyncs
	return s.late
}

// flush syncs what was postponed, on the file system of a directory.
func (s *syncer) flush(d *os.Root) error {
	if !s.late {
		return nil
	}
	return syncAll(d)
}
