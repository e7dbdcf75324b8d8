// Package files reads and changes files inside of roots. The package hides how a path is confined to the roots.
//
// # Paths
//
// A relative path starts at the first root. An absolute path must be inside of a root, by the name that the root was given under or by
// its real path. A segment "..", NUL and a path over 4096 bytes are ErrInvalid; on Windows so are drive-relative and UNC paths, device
// names, alternate streams and names that end in a dot or a space. No call gives the system a whole path: every call opens one directory
// after the other through os.Root, and looks at each before the next. A name that is swapped for a link meanwhile therefore does no harm:
// a call acts in a directory that the call has seen, or fails with ErrChanged when the directories change again and again.
//
// Links on the way are followed, at most 40, while they stay inside of the roots; absolute links and links into another root are
// followed, too. A link at the end of the path is followed by all but Stat, Remove and Move, which act on the link itself. Two things
// look like an ordinary file: a hard link that somebody made inside of a root to a file outside of the root, and a mount.
//
// A root is opened anew by each call, at the real path that the root had when the Tree was opened: a root that is removed and made again
// is found, and a root that turned into a link is not followed. A root within another root is reached through the outer root.
//
// # Private directories
//
// Private directories are compared by identity, so that no second name (a link, a mount, another case) reaches them. A private directory
// that exists when the Tree is opened keeps its identity from then on, even when somebody moves the directory; in addition, whatever
// stands at its path during a call is private. Private directories are listed by name in their parent, and every other call on or below
// them is ErrOutside. So is the removal or the move of a directory that contains a private directory, and of a root and its parents. A
// private directory that does not exist yet cannot be made.
//
// # Failures
//
// An error says in words what is wrong, with the path as the caller gave it, and matches one of the sentinels below by errors.Is. The
// error of the system is wrapped, for a log, but is no part of the text.
//
// Write and Unpack put everything beside the target first, under names that begin with ".deskhand-", and then rename: a file has its old
// content or its new content. A call that fails leaves nothing, and removes the parents that the call made. Only the end of the process
// can leave something behind, under such a name. The changes of a call are on the disk when the call returns (except directories, on
// Windows).
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The sentinel errors of a call.
var (
	ErrInvalid    = errors.New("invalid path, kind or archive")
	ErrOutside    = errors.New("outside of the roots, or private")
	ErrNotFound   = errors.New("not found")
	ErrExists     = errors.New("exists already")
	ErrNotEmpty   = errors.New("not empty")
	ErrChanged    = errors.New("changed while it was used")
	ErrPermission = errors.New("not permitted by the system")
	ErrTooLarge   = errors.New("over a limit")
	ErrFull       = errors.New("no space left")
	ErrBroken     = errors.New("what was to be written broke off") // the reader's own error is wrapped as well
	ErrFailed     = errors.New("the file system failed")
)

// Config says where files may be.
type Config struct {
	Roots       []string // directories; none: the user's home
	Private     []string // directories that no call reaches; they need not exist
	MaxUnpacked int64    // bytes of an archive, unpacked; 0: 8 GiB
	MaxEntries  int      // entries of an archive; 0: 200,000
}

const (
	defaultUnpacked = 8 << 30
	defaultEntries  = 200_000
)

// Tree is the files inside of the roots. A Tree holds no descriptor and no lock, and any number of calls may run at once.
type Tree struct {
	names   []string // the roots as given, absolute
	aliases []alias
	tops    []string // the outermost roots, by their real paths
	kept    []string // the roots by their real paths, and the private directories
	private []string
	first   []guard // the private directories that existed when the tree was opened
	home    string
	bytes   int64
	entries int
}

// alias is a name of a root: an absolute path, and its location.
type alias struct {
	segs []string
	location
}

// Kind is the kind of an entry.
type Kind string

// The kinds of entries. Devices, pipes and sockets are files that cannot be opened.
const (
	File      Kind = "file"
	Directory Kind = "directory"
	Symlink   Kind = "symlink"
)

// Entry describes the entry at a name. The entry of a link describes the link, with its own size and time. Path is absolute, as the
// caller would name the entry.
type Entry struct {
	Name, Path string
	Kind       Kind
	Size       int64
	Modified   time.Time // zero when the system does not say
}

// Open opens the roots. Open fails when a root is missing or lies in a private directory.
func Open(cfg Config) (*Tree, error) {
	home, err := os.UserHomeDir()
	if len(cfg.Roots) == 0 {
		if err != nil {
			return nil, fmt.Errorf("files: no root is given: %w", err)
		}
		cfg.Roots = []string{home}
	}
	t := &Tree{home: home, bytes: cfg.MaxUnpacked, entries: cfg.MaxEntries}
	if err != nil {
		t.home = cfg.Roots[0]
	}
	if t.bytes <= 0 {
		t.bytes = defaultUnpacked
	}
	if t.entries <= 0 {
		t.entries = defaultEntries
	}
	for _, path := range cfg.Private {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("files: private directory: %w", err)
		}
		t.private = append(t.private, abs)
	}
	t.first = slices.DeleteFunc(t.guards(), func(g guard) bool { return len(g.next) > 0 })
	if err := t.addRoots(cfg.Roots); err != nil {
		return nil, err
	}
	t.kept = append(t.kept, t.private...)
	return t, nil
}

func (t *Tree) addRoots(paths []string) error {
	for _, path := range paths {
		name, real, err := t.openable(path)
		if err != nil {
			return fmt.Errorf("files: root %s: %w", path, err)
		}
		t.names, t.kept = append(t.names, name), append(t.kept, real)
	}
	for i, real := range t.kept {
		at := t.place(real, t.kept)
		t.aliases = append(t.aliases, alias{segments(t.names[i]), at}, alias{segments(real), at})
	}
	return nil
}

// openable returns a root's absolute name and its real path. openable fails when the path may not be a root.
func (t *Tree) openable(path string) (name, real string, err error) {
	if name, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	if real, err = filepath.EvalSymlinks(name); err != nil {
		return "", "", err
	}
	way, err := chain(real)
	if err != nil {
		return "", "", err
	}
	if !way[0].IsDir() {
		return "", "", errors.New("not a directory")
	}
	if slices.ContainsFunc(t.guards(), func(g guard) bool { return g.private(way...) }) {
		return "", "", errors.New("in a directory of Deskhand's own")
	}
	return name, real, nil
}

// place returns the location of a root, seen from the outermost root that contains it.
func (t *Tree) place(real string, reals []string) location {
	outer := real
	for _, other := range reals {
		if within(other, outer) {
			outer = other
		}
	}
	for i, top := range t.tops {
		if top == outer {
			return location{i, segments(real)[len(segments(outer)):]}
		}
	}
	t.tops = append(t.tops, outer)
	return location{len(t.tops) - 1, segments(real)[len(segments(outer)):]}
}

// chain returns the entries on a real path, from the path itself up to the top of the file system.
func chain(real string) ([]fs.FileInfo, error) {
	var infos []fs.FileInfo
	for {
		info, err := os.Stat(real)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
		up := filepath.Dir(real)
		if up == real {
			return infos, nil
		}
		real = up
	}
}

func kindOf(mode fs.FileMode) Kind {
	switch {
	case mode.IsDir():
		return Directory
	case mode&fs.ModeSymlink != 0:
		return Symlink
	default:
		return File
	}
}

func entryOf(path string, info fs.FileInfo) Entry {
	return Entry{filepath.Base(path), path, kindOf(info.Mode()), info.Size(), info.ModTime()}
}
