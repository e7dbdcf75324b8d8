// Package files reads and changes files inside of roots; how a path is kept inside of them is hidden here.
//
// # Paths
//
// A relative path starts at the first root. An absolute one must be inside of a root, by the name that the root was given under or
// by its real path. A segment "..", NUL and a path over 4096 bytes are ErrInvalid; on Windows so are drive-relative and UNC paths,
// device names, alternate streams and names that end in a dot or a space. A path is never given to the system as a whole: every
// call opens one directory after the other through os.Root, and looks at each before it goes on. So it does not matter what is
// swapped for a link meanwhile: a call acts in a directory that it has seen, or fails with ErrChanged when it is outrun again and
// again.
//
// Links on the way are followed while they stay inside of the roots, absolute ones and ones into another root too; at most 40. A
// link that is the end of the path is followed by all but Stat, Remove and Move, which act on the link itself. Two things cannot
// be told from an ordinary file: a hard link that somebody made inside of a root to a file outside of it, and a mount.
//
// A root is opened anew by each call, at the real path that it had when the Tree was opened: one that is removed and made again is
// found, one that turned into a link is not followed. A root within another root is reached through the outer one.
//
// # Private directories
//
// Private directories are compared by identity, so that no second name reaches them: a link, a mount, another case. One that is
// there when the Tree is opened is known by that from then on, even where somebody moves it to; beyond that it is what stands at
// its path when a call comes. They are listed by name in their parent, and every other call on them or below is ErrOutside. So is
// the removal or the move of whatever contains one, and of a root and what contains it. One that does not exist yet cannot be made.
//
// # Failures
//
// An error says in words what is wrong, with the path as the caller gave it, and is one of the sentinels below by errors.Is. What
// the system said is wrapped, for a log, but is no part of the text.
//
// Write and Unpack put everything beside the target first, under names that begin with ".deskhand-", and then rename: a file has
// its old content or its new one. A call that fails leaves nothing, and removes the parents that it made. Only the end of the
// process can leave something behind, under such a name. What a call has changed is on the disk when it returns (not the
// directories, on Windows).
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

// What can be wrong with a call.
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

// Config is where files may be.
type Config struct {
	Roots       []string // directories; none: the user's home
	Private     []string // directories that are never reached; they need not exist
	MaxUnpacked int64    // bytes of one archive, unpacked; 0: 8 GiB
	MaxEntries  int      // entries of one archive; 0: 200,000
}

const (
	defaultUnpacked = 8 << 30
	defaultEntries  = 200_000
)

// Tree is the files inside of the roots. It holds no descriptor and no lock, and any number of calls may run at once.
type Tree struct {
	names   []string // the roots as they were given, absolute
	aliases []alias
	tops    []string // the outermost roots, by their real paths
	kept    []string // the roots by their real paths, and the private directories
	private []string
	first   []guard // the private directories that were there in the beginning
	home    string
	bytes   int64
	entries int
}

// alias is a way to name a root: an absolute path, and where that is.
type alias struct {
	segs []string
	location
}

// Kind is what an entry is.
type Kind string

// The kinds of entries. Devices, pipes and sockets are files that cannot be opened.
const (
	File      Kind = "file"
	Directory Kind = "directory"
	Symlink   Kind = "symlink"
)

// Entry is what a name stands for. A link is itself, with its own size and time. Path is absolute, as the caller would name it.
type Entry struct {
	Name, Path string
	Kind       Kind
	Size       int64
	Modified   time.Time // zero when the system does not say
}

// Open finds the roots. It fails when one is missing or lies in a private directory.
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

// openable finds a root's absolute name and its real path, and that it may be one.
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

// place is where a root is: at the outermost of the roots that hold it.
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

// chain is what a real path goes through, from itself up to the top of the file system.
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
