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

// maxDepth limits how deep directories may be nested in a copied or unpacked tree: each level holds two descriptors.
const maxDepth = 255

// copier copies entries, also between file systems.
type copier struct {
	*call
	ctx  context.Context
	dirs []copiedDir
	seen sightings // the copied entries other than directories, as they were before the copy
	syncer
}

// sightings are the states of files at a time.
type sightings map[string][]fs.FileInfo

func sighting(info fs.FileInfo) string {
	return fmt.Sprintf("%s-%x-%x", identity(info), info.Size(), info.ModTime().UnixNano()) // size and time keep the lists short where identity returns ""
}

func (s sightings) add(info fs.FileInfo) { s[sighting(info)] = append(s[sighting(info)], info) }

// unchanged reports whether the file was seen before and has the same state now.
func (s sightings) unchanged(info fs.FileInfo) bool {
	return slices.ContainsFunc(s[sighting(info)], func(i fs.FileInfo) bool { return os.SameFile(i, info) })
}

// copy copies the entry at from to the name at to, which must be free.
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
		err = removable(in) // fails early, before the content is copied in vain
	}
	for i := 0; err == nil && i < len(found); i++ {
		entry := from.inside(in, found[i].Name())
		if entry.info, err = c.look(in, entry.self, entry.name); err == nil && entry.info != nil {
			err = c.copy(entry, to.inside(out, entry.name), depth+1)
		}
	}
	return err
}

// copiedDir is a directory of a copy whose mode and time are still to be set: until the copy is complete, the directory must be open to
// us, and every entry put in the directory changes its time.
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

// cutReader is a reader that fails when its context ends.
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

// manySyncs is the number of files from which syncing the whole file system is quicker than syncing each file.
const manySyncs = 64

// syncer writes files and directories through to the disk: each of the first manySyncs immediately, and the rest by a single sync where
// the system has a sync of a whole file system.
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

// flush syncs the postponed files, which are on the file system of d.
func (s *syncer) flush(d *os.Root) error {
	if !s.late {
		return nil
	}
	return syncAll(d)
}
