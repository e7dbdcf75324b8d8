package files

import (
	"errors"
	"io/fs"
	"os"
)

// Remove removes an entry: a link and not its target; a directory that is not empty only when recursive is set, with all its content. An
// entry that cannot be removed stays, and so do its parents; the rest is gone then, and the first reason is the error.
func (t *Tree) Remove(path string, recursive bool) (string, error) {
	c, err := t.call(path)
	if err != nil {
		return "", err
	}
	err = c.again(func() error {
		s, err := c.walk(0)
		if err != nil {
			return err
		}
		defer s.dir.Close()
		if err = c.loose(s.info); err != nil {
			return err
		}
		if recursive {
			err = c.removeAll(s)
		} else {
			err = s.dir.Remove(s.name)
		}
		return errors.Join(err, syncDir(s.dir))
	})
	if err != nil {
		return "", err
	}
	return c.name, nil
}

// loose fails when the entry is missing or must stay where it is.
func (c *call) loose(info fs.FileInfo) error {
	if info == nil {
		return fs.ErrNotExist
	}
	if info.IsDir() {
		for _, fixed := range c.t.fixed() {
			if os.SameFile(fixed, info) {
				return refuse(ErrOutside, c.given, "holds a root or what belongs to Deskhand itself, and stays where it is")
			}
		}
	}
	return nil
}

// errNewer says that a file was changed or made since it was copied.
var errNewer = errors.New("changed since it was copied")

// maxHeld limits how many nested directories a removal holds open.
const maxHeld = 64

// removal removes a directory with all its content. A directory deeper than maxHeld is first moved up beside the top directory, so that
// no depth uses up the descriptors of the process.
type removal struct {
	*call
	base spot
	only sightings // apart from directories, remove only these; nil: everything
	deep []string  // the new names of the directories that were moved up
}

func (c *call) removeAll(s spot) error { return c.removeSeen(s, nil) }

// removeSeen removes the files that are unchanged since they were seen, and then the empty directories.
func (c *call) removeSeen(s spot, only sightings) error {
	r := &removal{call: c, base: s, only: only}
	err := r.remove(s, 0)
	for len(r.deep) > 0 {
		s.name = r.deep[0]
		r.deep = r.deep[1:]
		info, lost := s.dir.Lstat(s.name)
		if s.info = info; lost == nil {
			lost = r.remove(s, 0)
		}
		err = errors.Join(err, lost)
	}
	return err
}

func (r *removal) remove(s spot, depth int) error {
	if r.only != nil && !s.info.IsDir() && !r.only.unchanged(s.info) {
		return errNewer
	}
	err := s.dir.Remove(s.name)
	if !s.info.IsDir() || !errors.Is(err, fs.ErrExist) { // fs.ErrExist includes "not empty"
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody else was faster
		}
		return err
	}
	if depth == maxHeld {
		up := r.base
		up.name = hidden()
		if err = rename(s, up, false); err == nil {
			r.deep = append(r.deep, up.name)
		}
		return err
	}
	if err = r.empty(s, depth); err != nil {
		return err
	}
	return s.dir.Remove(s.name)
}

// empty removes the content of a directory.
func (r *removal) empty(s spot, depth int) error {
	dir, err := r.enter(s.dir, s.name, s.info)
	if err != nil {
		return err
	}
	defer dir.Close()
	found, err := readDir(dir)
	for _, f := range found {
		in := s.inside(dir, f.Name())
		info, lost := r.look(dir, in.self, in.name)
		if in.info = info; lost == nil && info != nil {
			lost = r.remove(in, depth+1)
		}
		if err == nil {
			err = lost
		}
	}
	return err
}
