package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// merge moves an unpacked tree into its target.
type merge struct {
	*call
	*syncer
	to    spot // the target, as "." of itself
	done  []landing
	extra []spot // remains on other file systems, to be removed
	kept  bool   // remove nothing: a replaced file could not be put back
}

// landing is an entry that was put in its place, and has the identity of from.info. The directories of its spots are not open.
type landing struct {
	from, at spot
	swapped  bool   // the replaced entry is now at from
	aside    string // the name of the replaced entry, beside from
}

func (m *merge) run(from spot, names *node) error {
	if err := m.check(m.to.dir, m.to.info, names); err != nil {
		return err
	}
	if err := m.syncDirs(from.dir, names); err != nil {
		return err
	}
	if err := m.flush(m.to.dir); err != nil {
		return err
	}
	err := m.put(from, m.to, names)
	if err != nil {
		err = m.fail(from, err)
	}
	for _, s := range m.extra {
		m.discard(s)
	}
	return err
}

// fail undoes the merge. A replaced entry that cannot be put back is not removed with the rest, because no other copy exists.
func (m *merge) fail(from spot, err error) error {
	if m.kept = !m.undo(); !m.kept {
		return err
	}
	at := filepath.Join(m.name, from.way[len(from.way)-1])
	text := "the archive could be put in its place in part only, and what it replaced could not be put back, but is kept in " + shown(at)
	return &refusal{ErrChanged, text, err} // whoever moved the directories has to look at the remains
}

// check reports, before anything is changed, whether every entry can go where it belongs.
func (m *merge) check(dir *os.Root, self fs.FileInfo, names *node) error {
	if err := removable(dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(names.under)) {
		if err := m.checkName(dir, self, name, names.under[name]); err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) checkName(dir *os.Root, self fs.FileInfo, name string, n *node) error {
	if slices.ContainsFunc(m.guards, func(g guard) bool { return g.reserves(self, name) && n.blocks(g.next[1:]) }) {
		return m.outside()
	}
	info, err := m.look(dir, self, name)
	switch {
	case err != nil:
		return err
	case info == nil:
		return nil
	case info.IsDir() != n.dir:
		return otherKind(name)
	case !n.dir:
		return nil
	}
	next, err := m.enter(dir, name, info)
	if err != nil {
		return err
	}
	defer next.Close()
	return m.check(next, info, n)
}

func otherKind(name string) error {
	return refuse(ErrExists, name, "of the archive is a file and stands for a directory there, or the reverse")
}

// blocks reports whether n, or a name below n, takes the place of a private directory that is missing, or makes that directory
// impossible.
func (n *node) blocks(next []string) bool {
	if !n.dir || len(next) == 0 {
		return true
	}
	for name, under := range n.under {
		if sameName(name, next[0]) && under.blocks(next[1:]) {
			return true
		}
	}
	return false
}

// syncDirs syncs the unpacked directories.
func (m *merge) syncDirs(dir *os.Root, names *node) error {
	for name, n := range names.under {
		if !n.dir || m.late {
			continue
		}
		next, err := dir.OpenRoot(name + "/.")
		if err != nil {
			return err
		}
		err = m.syncDirs(next, n)
		next.Close()
		if err != nil {
			return err
		}
	}
	return m.dir(dir)
}

// put moves the entries of a directory into another directory. Both are spots "." in themselves.
func (m *merge) put(from, to spot, names *node) error {
	for _, name := range slices.Sorted(maps.Keys(names.under)) {
		src, dst := from.inside(from.dir, name), to.inside(to.dir, name)
		var err error
		if dst.info, err = m.look(to.dir, to.self, name); err != nil {
			return err
		}
		switch n := names.under[name]; {
		case dst.info == nil:
			err = m.land(src, dst)
		case dst.info.IsDir() != n.dir:
			err = otherKind(name)
		case n.dir:
			err = m.putInto(src, dst, n)
		default:
			err = m.land(src, dst)
		}
		if err != nil {
			return explain(name, err)
		}
	}
	return syncDir(to.dir)
}

func (m *merge) putInto(src, dst spot, names *node) error {
	var err error
	if src.info, err = src.dir.Lstat(src.name); err != nil {
		return err
	}
	from, err := m.enter(src.dir, src.name, src.info)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := m.enter(dst.dir, dst.name, dst.info)
	if err != nil {
		return err
	}
	defer to.Close()
	src, dst = src.inside(from, "."), dst.inside(to, ".")
	src.info, dst.info = src.self, dst.self
	return m.put(src, dst, names)
}

// land puts an entry in its place, which is free or holds a file to be replaced.
func (m *merge) land(src, dst spot) error {
	var err error
	if src.info, err = src.dir.Lstat(src.name); err != nil {
		return err
	}
	l := landing{from: src, at: dst}
	if dst.info == nil {
		err = rename(src, dst, false)
	} else if err = exchange(src, dst); err == nil {
		l.swapped = true
	} else if isAny(err, syscall.EINVAL, syscall.ENOSYS, syscall.ENOTSUP, errors.ErrUnsupported) {
		l.aside = hidden()
		err = step(src, dst, l.aside)
	}
	if errors.Is(err, syscall.EXDEV) {
		return m.landFar(src, dst)
	}
	if err == nil {
		m.done = append(m.done, l)
		err = m.confirm(src, l)
	}
	return err
}

// step replaces an entry without an exchange: the old entry is renamed to aside first.
func step(src, dst spot, aside string) error {
	old := src
	old.name = aside
	err := rename(dst, old, false)
	if err != nil {
		return err
	}
	if err = rename(src, dst, false); err != nil {
		return errors.Join(err, rename(old, dst, false))
	}
	return nil
}

// confirm fails when the replaced entry is a directory, which came there only just now: replaced entries are removed in the end.
func (m *merge) confirm(src spot, l landing) error {
	name := src.name
	if l.aside != "" {
		name = l.aside
	}
	if l.swapped || l.aside != "" {
		if old, err := src.dir.Lstat(name); err != nil || old.IsDir() {
			return errSwapped
		}
	}
	return nil
}

// landFar lands an entry in a directory that lies on another file system: a copy goes beside the place first.
func (m *merge) landFar(src, dst spot) error {
	near := dst
	near.name = hidden()
	m.extra = append(m.extra, near)
	c := &copier{ctx: context.Background(), call: m.call, seen: sightings{}}
	err := c.copy(src, near, 0)
	if err == nil {
		err = c.flush(dst.dir)
	}
	if err != nil {
		return err
	}
	c.complete(near, near.name)
	return m.land(near, dst)
}

// undo reverts all landings, the last first, and reports whether every replaced entry is back.
func (m *merge) undo() bool {
	all := true
	for _, l := range slices.Backward(m.done) {
		if !m.undoOne(l) && (l.swapped || l.aside != "") {
			all = false
		}
	}
	return all
}

func (m *merge) undoOne(l landing) bool {
	from, ok := m.back(l.from)
	if !ok {
		return false
	}
	defer from.dir.Close()
	at, ok := m.back(l.at)
	if !ok {
		return false
	}
	defer at.dir.Close()
	return l.undo(from, at) == nil
}

func (l landing) undo(from, at spot) error {
	switch {
	case at.info == nil || !os.SameFile(at.info, l.from.info):
		return nil // somebody has replaced or removed the entry since: that is newer than both
	case l.swapped:
		return exchange(from, at)
	case l.aside != "":
		if err := rename(at, from, false); err != nil {
			return err
		}
		from.name = l.aside
		return rename(from, at, false)
	default:
		return rename(at, from, false)
	}
}

// back opens the directory of a spot again. ok is false unless the directory is where it was.
func (m *merge) back(old spot) (spot, bool) {
	c := &call{t: m.t, given: m.given, at: location{old.top, slices.Concat(old.way, []string{old.name})}, guards: m.guards}
	s, err := c.walk(0)
	if err != nil {
		return s, false
	}
	if !os.SameFile(s.self, old.self) || s.name != old.name {
		s.dir.Close()
		return s, false
	}
	return s, true
}

func (m *merge) discard(old spot) {
	s, ok := m.back(old)
	if !ok {
		return
	}
	if s.info != nil && !m.kept {
		_ = m.removeAll(s)
	}
	s.dir.Close()
}
