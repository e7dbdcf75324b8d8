package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Move gives an entry another name, and makes the missing parents of that name. A link is moved itself. Without overwrite nothing is
// replaced (on Windows, and on file systems that know no such rename, an entry put there in that instant may be). With overwrite a file
// replaces a file atomically, and a directory replaces an empty directory; a full directory is ErrNotEmpty, and an entry of another kind
// is ErrExists. A directory cannot be moved into itself.
//
// An entry that cannot be renamed because the target lies on another file system is copied beside the target, synced, renamed and then
// removed at its old place: modes, times and links stay, owners and extended attributes do not, and a device, a pipe or a socket is
// ErrInvalid. When that removal fails, the error says that both are there. The same happens, as ErrChanged, when somebody wrote at the
// old place meanwhile: the newer files are not removed. The end of ctx ends a copy, and nothing of the copy stays.
func (t *Tree) Move(ctx context.Context, from, to string, overwrite bool) (string, string, error) {
	src, err := t.call(from)
	if err != nil {
		return "", "", err
	}
	dst, err := t.call(to)
	if err != nil {
		return "", "", err
	}
	m := &move{ctx: ctx, src: src, dst: dst, overwrite: overwrite}
	if err = src.again(m.run); err != nil {
		dst.unmake()
		return "", "", err
	}
	return src.name, dst.name, nil
}

type move struct {
	ctx       context.Context
	src, dst  *call
	overwrite bool
}

func (m *move) run() error {
	from, err := m.src.walk(0)
	if err != nil {
		return err
	}
	defer from.dir.Close()
	if err = m.src.loose(from.info); err != nil {
		return err
	}
	m.dst.links, m.dst.steps, m.dst.avoid = 0, 0, nil
	if from.info.IsDir() {
		m.dst.avoid = from.info
	}
	to, err := m.dst.walk(makeWay)
	if err != nil {
		return m.about(err)
	}
	defer to.dir.Close()
	same, err := m.check(from, to)
	if err != nil || same {
		return m.about(err)
	}
	if err = m.rename(from, to); err != nil {
		return err
	}
	return errors.Join(syncDir(to.dir), syncDir(from.dir))
}

// about turns err into an error about the target.
func (m *move) about(err error) error {
	if errors.Is(err, errSwapped) {
		return err
	}
	return explain(m.dst.given, err)
}

// check reports an error unless the target is free or may be replaced. same says that nothing has to be done.
func (m *move) check(from, to spot) (same bool, err error) {
	if to.info == nil {
		return false, m.dst.free(to.self, to.name)
	}
	if again, err := respelled(from, to); err != nil || again {
		return false, err
	}
	if !m.overwrite {
		return false, fs.ErrExist
	}
	if err = m.dst.loose(to.info); err != nil {
		return false, err
	}
	if from.info.IsDir() != to.info.IsDir() {
		return false, m.otherKind()
	}
	return os.SameFile(from.self, to.self) && from.name == to.name, nil
}

// respelled reports whether both names are the same name in other letters: the file is the same, and the directory lists at most one of
// both names, because the disk ignores case or treats different signs as the same letter. The listing decides because the program cannot
// know which spellings a disk takes for the same. Taking a respelled name for a second name would remove the file.
func respelled(from, to spot) (bool, error) {
	if from.name == to.name || !os.SameFile(from.info, to.info) || !os.SameFile(from.self, to.self) {
		return false, nil
	}
	list, err := readDir(from.dir)
	if err != nil {
		return false, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	return !has(from.name) || !has(to.name), nil
}

func (m *move) otherKind() error {
	return refuse(ErrExists, m.dst.given, "exists and is of another kind, which is not replaced")
}

func (m *move) rename(from, to spot) error {
	if to.info != nil && !to.info.IsDir() && os.SameFile(from.info, to.info) {
		again, err := respelled(from, to)
		if err != nil {
			return err
		}
		if !again {
			return from.dir.Remove(from.name) // two names of one file, both of which a rename would leave
		}
	}
	err := rename(from, to, m.overwrite || to.info != nil)
	switch {
	case err == nil:
		return m.confirm(from, to)
	case errors.Is(err, syscall.EXDEV):
		return m.copy(from, to)
	case errors.Is(err, fs.ErrNotExist):
		return errSwapped // walking there again finds out which entry is missing
	case errors.Is(err, syscall.EINVAL):
		return refuse(ErrInvalid, m.dst.given, "lies within what is to be moved")
	case isAny(err, syscall.ENOTDIR, syscall.EISDIR):
		return m.otherKind()
	case errors.Is(err, fs.ErrExist):
		return m.about(err)
	default:
		return err
	}
}

// confirm moves the entry back when somebody swapped the source after the check for an entry that must not be moved.
func (m *move) confirm(from, to spot) error {
	moved, err := to.dir.Lstat(to.name)
	if err != nil || os.SameFile(moved, from.info) || m.src.loose(moved) == nil {
		return nil //nolint:nilerr // the entry was moved; that somebody moved it on since is no fault
	}
	return errors.Join(errSwapped, rename(to, from, false))
}

// copy moves to another file system.
func (m *move) copy(from, to spot) error {
	if err := removable(from.dir); err != nil {
		return err // fails early, before the content is copied in vain
	}
	draft := to
	draft.name = hidden()
	c := &copier{ctx: m.ctx, call: m.src, seen: sightings{}}
	err := c.copy(from, draft, 0)
	if err == nil {
		err = c.flush(to.dir)
	}
	if err == nil {
		draft.info, err = to.dir.Lstat(draft.name)
	}
	if err != nil {
		m.clear(draft)
		return explain(m.src.given, err)
	}
	if err = rename(draft, to, m.overwrite); err != nil {
		m.clear(draft)
		return m.about(err)
	}
	c.complete(to, draft.name)
	if err = syncDir(to.dir); err != nil { // before the old copy is removed
		return err
	}
	switch err = m.src.removeSeen(from, c.seen); {
	case errors.Is(err, errNewer):
		return &refusal{ErrChanged, shown(m.src.given) + " was copied to its new place, and what changed at the old one meanwhile was left there", err}
	case err != nil:
		return &refusal{ErrPermission, shown(m.src.given) + " was copied to its new place, but could not be removed from the old one", err}
	}
	return nil
}

// clear removes an unfinished copy.
func (m *move) clear(draft spot) {
	var err error
	if draft.info, err = draft.dir.Lstat(draft.name); err == nil {
		_ = m.dst.removeAll(draft)
	}
}
