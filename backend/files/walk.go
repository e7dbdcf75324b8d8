package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const (
	maxLinks = 40      // on the way of a call, as in Linux
	maxSteps = 1 << 16 // directories that a call enters on its way; links full of ".." can ask for any number
	maxSwaps = 200     // how often a call starts anew because a name was swapped on its way
)

// errSwapped says that an entry is no longer the entry that was looked at.
var errSwapped = errors.New("swapped meanwhile")

// call is a call on a path, with the directories that the call must not touch and the directories that the call has made.
type call struct {
	t      *Tree
	given  string // the path, for errors
	name   string // the path as an absolute path
	at     location
	guards []guard
	seen   *string     // the version of the file to be replaced, "" for no file; nil: any
	avoid  fs.FileInfo // a directory that must not be entered: a directory cannot be moved into itself
	made   []spot      // the directories made on the way, as places that are not open
	links  int
	steps  int
}

// spot is a name in an open directory.
type spot struct {
	dir  *os.Root
	self fs.FileInfo // the directory
	top  int
	real string      // the top's path
	way  []string    // the names from the top to the directory, none of them a link
	name string      // "." at the top itself
	info fs.FileInfo // the entry at the name, possibly a link; nil: none
}

// inside returns the spot of a name in the directory at s, which has been opened as dir.
func (s spot) inside(dir *os.Root, name string) spot {
	in := spot{dir: dir, self: s.info, top: s.top, real: s.real, way: s.way, name: name}
	if s.name != "." {
		in.way = slices.Concat(s.way, []string{s.name})
	}
	return in
}

// guard keeps a private directory. While the private directory does not exist, dir is the last existing directory on the way to it, and
// next are the missing names.
type guard struct {
	dir  fs.FileInfo
	next []string
}

func (g guard) private(infos ...fs.FileInfo) bool {
	return len(g.next) == 0 && slices.ContainsFunc(infos, func(i fs.FileInfo) bool { return os.SameFile(i, g.dir) })
}

// guards returns the guards of the private directories as they are now. The directories that existed when the tree was opened are guarded
// as well, wherever they are now: otherwise somebody who swaps the parent of a private directory could have it read by a call that looked
// while the other parent was in place.
func (t *Tree) guards() []guard {
	all := slices.Clone(t.first)
	for _, path := range t.private {
		if _, info, next := resolve(path); info != nil {
			all = append(all, guard{info, next})
		}
	}
	return all
}

// resolve returns the real path of the longest existing part of path, its entry, and the missing names.
func resolve(path string) (real string, info fs.FileInfo, missing []string) {
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			if info, err := os.Stat(real); err == nil {
				return real, info, missing
			}
		}
		up := filepath.Dir(path)
		if up == path {
			return "", nil, nil
		}
		missing = slices.Insert(missing, 0, filepath.Base(path))
		path = up
	}
}

// fixed returns the roots, the private directories, and all their parents: none of these is removed, moved or replaced.
func (t *Tree) fixed() []fs.FileInfo {
	var all []fs.FileInfo
	for _, path := range t.kept {
		real, _, missing := resolve(path)
		if infos, err := chain(real); err == nil && len(missing) == 0 {
			all = append(all, infos...)
		}
	}
	return all
}

func (t *Tree) call(given string) (*call, error) {
	at, name, err := t.locate(given)
	if err != nil {
		return nil, err
	}
	return &call{t: t, given: given, name: name, at: at, guards: t.guards()}, nil
}

// again calls f until f does not fail because of a swap, at most maxSwaps times.
func (c *call) again(f func() error) error {
	var err error
	for range maxSwaps {
		c.links, c.steps = 0, 0
		if err = f(); !errors.Is(err, errSwapped) {
			break
		}
	}
	return explain(c.given, err)
}

// The ways to walk a path.
const (
	followLast = 1 << iota // follow a link at the end of the path
	makeWay                // make the missing directories on the way
)

// walk goes to the end of the path. The caller closes the spot's directory.
func (c *call) walk(how int) (spot, error) {
	at := c.at
	for {
		s, next, err := c.descend(at, how)
		if err == nil && next == nil {
			return s, nil
		}
		if s.dir != nil {
			s.dir.Close()
		}
		if err != nil {
			return spot{}, err
		}
		at = *next
	}
}

// descend goes down to the end of the path, or to the first link: then next is the location from which to begin anew, which is simpler
// than keeping every directory on the way open for the sake of "..".
func (c *call) descend(at location, how int) (s spot, next *location, err error) {
	if s, err = c.openTop(at.top); err != nil {
		return s, nil, err
	}
	for rest := at.segs; len(rest) > 0; rest = rest[1:] {
		if s.name = rest[0]; s.name == ".." {
			next, err = c.up(s, rest[1:])
			return s, next, err
		}
		if s.info, err = c.look(s.dir, s.self, s.name); err != nil {
			return s, nil, err
		}
		last := len(rest) == 1
		if isLink(s.info) && (!last || how&followLast != 0) {
			next, err = c.link(s, rest[1:])
			return s, next, err
		}
		if last {
			return s, nil, nil
		}
		if err = c.down(&s, how); err != nil {
			return s, nil, err
		}
	}
	s.name, s.info = ".", s.self
	return s, nil, nil
}

func isLink(info fs.FileInfo) bool { return info != nil && info.Mode()&fs.ModeSymlink != 0 }

func (c *call) down(s *spot, how int) error {
	if c.steps++; c.steps > maxSteps {
		return c.endless()
	}
	if s.info == nil && how&makeWay != 0 {
		if err := c.mkdir(s); err != nil {
			return err
		}
	}
	return c.goInto(s)
}

func (c *call) openTop(top int) (spot, error) {
	real := c.t.tops[top]
	info, err := os.Lstat(real)
	if err != nil {
		return spot{}, err
	}
	if !info.IsDir() {
		return spot{}, refuse(ErrOutside, c.given, "is in a root that is no directory any more")
	}
	dir, err := os.OpenRoot(real + string(filepath.Separator) + ".") // the dot: see enter
	if err != nil {
		return spot{}, swapped(err)
	}
	s := spot{dir: dir, top: top, real: real}
	switch s.self, err = dir.Stat("."); {
	case err != nil:
	case !os.SameFile(s.self, info):
		err = errSwapped
	case c.private(s.self):
		err = c.outside()
	}
	return s, err
}

// look returns the entry at a name, or nil when the name is free. A private directory is refused, whether it exists or not.
func (c *call) look(dir *os.Root, self fs.FileInfo, name string) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	reserved := func(g guard) bool { return g.reserves(self, name) }
	if info != nil && slices.ContainsFunc(c.guards, reserved) {
		c.guards = c.t.guards() // a missing directory has just been made
	}
	if info != nil && c.private(info) || slices.ContainsFunc(c.guards, func(g guard) bool { return len(g.next) == 1 && reserved(g) }) {
		return nil, c.outside()
	}
	return info, nil
}

func (c *call) private(info fs.FileInfo) bool {
	return slices.ContainsFunc(c.guards, func(g guard) bool { return g.private(info) })
}

// reserves reports whether a missing name in the directory self is on the way to the private directory.
func (g guard) reserves(self fs.FileInfo, name string) bool {
	return len(g.next) > 0 && sameName(g.next[0], name) && os.SameFile(g.dir, self)
}

// free fails when the name is reserved for the way to a private directory.
func (c *call) free(self fs.FileInfo, name string) error {
	if slices.ContainsFunc(c.guards, func(g guard) bool { return g.reserves(self, name) }) {
		return c.outside()
	}
	return nil
}

func (c *call) outside() error {
	return refuse(ErrOutside, c.given, "belongs to Deskhand itself")
}

func (c *call) endless() error {
	return refuse(ErrInvalid, c.given, "leads through too many links")
}

// up returns where ".." leads from a spot: to the directory above or, at the top, out of the top by its real path.
func (c *call) up(s spot, rest []string) (*location, error) {
	if n := len(s.way); n > 0 {
		return &location{s.top, slices.Concat(s.way[:n-1], rest)}, nil
	}
	known := segments(c.t.tops[s.top])
	if n := len(known); n > 0 {
		known = known[:n-1]
	}
	return c.found(c.t.find(known, rest))
}

func (c *call) found(at location, ok bool) (*location, error) {
	if !ok {
		return nil, refuse(ErrOutside, c.given, "leads outside of the roots")
	}
	return &at, nil
}

// link returns where the link at a spot leads.
func (c *call) link(s spot, rest []string) (*location, error) {
	if c.links++; c.links > maxLinks {
		return nil, c.endless()
	}
	target, err := s.dir.Readlink(s.name)
	if err != nil {
		return nil, errSwapped
	}
	further := slices.Concat(segments(target), rest)
	if filepath.IsAbs(target) {
		return c.found(c.t.find(nil, further))
	}
	if target == "" || os.IsPathSeparator(target[0]) || filepath.VolumeName(target) != "" {
		return c.found(location{}, false)
	}
	return &location{s.top, slices.Concat(s.way, further)}, nil
}

// swapped adds errSwapped to an error about an entry that was just seen, when a swap can cause the error.
func swapped(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) && !errors.Is(err, fs.ErrNotExist) && !isAny(err, syscall.ENOTDIR, syscall.ELOOP, syscall.ENXIO) {
		return err
	}
	return errors.Join(errSwapped, err)
}

// goInto opens the directory at a spot and makes the spot the "." in that directory.
func (c *call) goInto(s *spot) error {
	if s.info == nil {
		return refuse(ErrNotFound, c.given, "does not exist")
	}
	dir, err := c.enter(s.dir, s.name, s.info)
	if err != nil {
		return err
	}
	s.dir.Close()
	*s = s.inside(dir, ".")
	s.info = s.self
	return nil
}

// enter opens the directory that was seen as info.
func (c *call) enter(dir *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	switch {
	case !info.IsDir():
		return nil, refuse(ErrInvalid, c.given, "is not a directory, or leads through what is none")
	case c.private(info):
		return nil, c.outside()
	case c.avoid != nil && os.SameFile(info, c.avoid):
		return nil, refuse(ErrInvalid, c.given, "lies within what is to be moved")
	}
	// The dot asks the system for a directory. Without the dot, a pipe that is swapped in here would be opened, and the open would wait.
	next, err := dir.OpenRoot(name + "/.")
	if err != nil {
		return nil, swapped(err)
	}
	if self, err := next.Stat("."); err != nil || !os.SameFile(self, info) {
		next.Close()
		return nil, errSwapped
	}
	return next, nil
}

// mkdir makes a missing directory on the way, and records the directory for unmake.
func (c *call) mkdir(s *spot) error {
	err := s.dir.Mkdir(s.name, 0o777)
	if errors.Is(err, fs.ErrNotExist) { // the parent directory has been removed
		return errSwapped
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	made := err == nil
	if s.info, err = c.look(s.dir, s.self, s.name); err != nil {
		return err
	}
	if s.info == nil {
		return errSwapped
	}
	if made {
		c.made = append(c.made, spot{self: s.self, top: s.top, way: s.way, name: s.name, info: s.info})
		return syncDir(s.dir)
	}
	return nil
}

// unmake removes the directories that the call made, unless somebody else uses them by now.
func (c *call) unmake() {
	for _, m := range slices.Backward(c.made) {
		back := &call{t: c.t, given: c.given, at: location{m.top, slices.Concat(m.way, []string{m.name})}, guards: c.guards}
		s, err := back.walk(0)
		if err != nil {
			continue
		}
		if s.info != nil && os.SameFile(s.info, m.info) && os.SameFile(s.self, m.self) {
			_ = s.dir.Remove(s.name) // a directory that is not empty stays
		}
		s.dir.Close()
	}
	c.made = nil
}
