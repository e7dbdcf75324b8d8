package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/snapshot/watch"
)

// A watched directory is read in full once; later snapshots look only at the touched files. When no file was touched, the last tree is the
// present tree, and no process runs. Files outside the directory that count all the same (the repository's index, ignore rules) are compared
// by size and time.

const (
	mostTouched  = 200              // files looked at individually; with more, the snapshot looks at every file
	mostIgnored  = 100_000          // ignored names of a watched directory
	watchAgain   = 10 * time.Minute // pause before the next attempt, after the system could not watch a directory
	unseenAgain  = time.Second      // the same pause for a directory with folders that became known late
	mostWatching = 8                // watched directories at a time; the least recently used is dropped
)

// watching is the state of a watched directory.
type watching struct {
	*watch.Watch
	at place

	// The following fields belong to the call that holds the store.
	folders map[string]bool        // the watched folders
	perms   map[string]fs.FileMode // permissions of the tree's files
	outside string                 // fingerprint of the files outside that count, as of the tree

	mu      sync.Mutex           // protects the fields below
	touched map[string]bool      // since the tree was taken, by paths from the top
	lost    bool                 // further files were touched
	linked  map[string]time.Time // files of the tree with further names, which may lie in unwatched folders, and the times of their last change
}

// pending reads the touched files, and keeps them until a tree is taken. lost reports that further files were touched.
func (w *watching) pending() (touched map[string]bool, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, err := w.Touched()
	w.lost = w.lost || t.Lost || err != nil
	for _, name := range t.Paths {
		w.touched[name] = true
	}
	for name, was := range w.linked {
		info, err := os.Lstat(filepath.Join(w.at.top, filepath.FromSlash(name)))
		if err != nil {
			w.touched[name] = true
		} else if at, _, known := changedAt(info); !known || !at.Equal(was) {
			w.touched[name] = true
		}
	}
	return maps.Clone(w.touched), w.lost
}

// unwatch ends the watch of the directory.
func (s *Store) unwatch() {
	if s.watching != nil {
		if err := s.watching.Close(); err != nil {
			s.l.cfg.Logger.Warn("a watch cannot be closed", "error", err)
		}
		s.watching = nil
	}
	s.hiddenNow = nil
}

// unchanged returns the last tree when no file was touched since. Otherwise unchanged returns the touched files, or none when the snapshot has
// to look at every file.
func (s *Store) unchanged(at place) (tree Tree, same bool, only []string) {
	w := s.watching
	if w == nil {
		return Tree{}, false, nil
	}
	touched, lost := w.pending()
	known := w.at == at && s.last.ID != "" && s.lastOf == at && w.perms != nil
	switch {
	case !known, lost:
		s.unwatch()
		return Tree{}, false, nil
	case w.outside != s.outside(at):
		s.hiddenNow = nil
		return Tree{}, false, nil
	case len(touched) == 0:
		return s.last, true, nil
	}
	s.hiddenNow = nil
	only = slices.Sorted(maps.Keys(touched))
	if slices.ContainsFunc(only, rules) {
		s.unwatch()
		return Tree{}, false, nil
	}
	if len(only) > mostTouched || slices.ContainsFunc(only, func(name string) bool {
		return slices.ContainsFunc(s.nested, func(nested string) bool { return strings.HasPrefix(name+"/", nested) })
	}) {
		return Tree{}, false, nil
	}
	return Tree{}, false, only
}

// rules reports whether a file changes the set of kept files.
func rules(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return base == ".git" || base == ".gitignore"
}

// outside is a fingerprint of the files that lie in no watched directory and affect the set of kept files.
func (s *Store) outside(at place) string {
	var text strings.Builder
	add := func(name string) {
		if info, err := os.Stat(name); err == nil {
			fmt.Fprintf(&text, "%s %d %d %v\n", name, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
	}
	for _, top := range append([]string{""}, s.nested...) {
		own, all := gitDir(filepath.Join(at.top, filepath.FromSlash(top)))
		if own != "" {
			add(filepath.Join(own, "index"))
			add(filepath.Join(all, "info", "exclude"))
		}
	}
	for dir := at.dir(); len(dir) >= len(at.top) && at.prefix != ""; dir = filepath.Dir(dir) {
		add(filepath.Join(dir, ".gitignore"))
		if dir == at.top {
			break
		}
	}
	return text.String()
}

// watch begins to watch a directory before the snapshot looks at the directory. Where the system cannot watch, every snapshot looks at every
// file.
func (s *Store) watch(ctx context.Context, at place) {
	if s.watching != nil {
		return
	}
	if time.Now().Before(s.watchNot) {
		return
	}
	err := s.watchAll(ctx, at)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, watch.ErrUnsupported):
		s.watchNot = time.Now().Add(24 * time.Hour)
	default:
		s.watchNot = time.Now().Add(watchAgain)
		s.l.cfg.Logger.Info("a directory is not watched, but looked at in full each time", "dir", at.dir(), "error", err)
	}
}

var errNotLocal = errors.New("the directory is not, or not all of it, on a disk of this computer")

func (s *Store) watchAll(ctx context.Context, at place) error {
	if s.l.cfg.Unwatched {
		return watch.ErrUnsupported
	}
	device, local := localDisk(at.dir())
	if !local {
		return errNotLocal
	}
	w, err := watch.New()
	if err != nil {
		return err
	}
	walk := &watchWalk{Watch: w, at: at, device: device, watched: map[string]bool{}}
	if walk.ignored, err = s.ignoredFolders(ctx, at); err == nil {
		err = filepath.WalkDir(at.dir(), func(name string, e fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return walk.visit(name, e, err)
		})
	}
	if err != nil {
		return errors.Join(err, w.Close())
	}
	s.watching = &watching{Watch: w, at: at, touched: map[string]bool{}, folders: walk.watched}
	s.l.spareWatches(s)
	return nil
}

// watchWalk adds the folders of a directory to a watch.
type watchWalk struct {
	*watch.Watch
	at               place
	device           uint64
	ignored, watched map[string]bool
}

func (w *watchWalk) visit(name string, e fs.DirEntry, err error) error {
	if err != nil {
		return orUnread(err)
	}
	if !e.IsDir() {
		return nil
	}
	way, err := filepath.Rel(w.at.top, name)
	if err != nil {
		return err
	}
	if way = filepath.ToSlash(way); way == "." {
		way = ""
	}
	if e.Name() == ".git" && name != w.at.dir() || w.ignored[way+"/"] {
		return fs.SkipDir
	}
	if on, known := deviceOf(name); !known || on != w.device {
		return errNotLocal
	}
	w.watched[way] = true
	return orUnread(w.Add(name, way))
}

// orUnread drops the error of a file that is gone or unreadable, which no snapshot keeps.
func orUnread(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// ignoredFolders lists the folders that rules ignore as a whole. A folder whose present files are all ignored is not among them, since a new
// file may not be ignored.
func (s *Store) ignoredFolders(ctx context.Context, at place) (map[string]bool, error) {
	names, err := s.ignored(ctx, at, mostIgnored)
	if err != nil {
		return nil, err
	}
	if len(names) >= mostIgnored {
		return nil, watch.ErrFull
	}
	var in strings.Builder
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			in.WriteString("./" + name + "\x00")
		}
	}
	folders := map[string]bool{}
	if in.Len() == 0 {
		return folders, nil
	}
	err = s.git(ctx, run{top: at.top, magic: true, in: []byte(in.String()), read: func(out io.Reader) error {
		return eachRecord(out, func(name []byte) error {
			folders[strings.TrimPrefix(string(name), "./")] = true
			return ctx.Err()
		})
	}}, "check-ignore", "--no-index", "-z", "--stdin")
	if status := (*git.StatusError)(nil); errors.As(err, &status) && status.Code == 1 {
		err = nil // the folder is gone
	}
	return folders, err
}

// spareWatches ends the least recently used watch when there are too many, since the system's watches are few.
func (l *Library) spareWatches(newest *Store) {
	l.mu.Lock()
	l.watched = slices.DeleteFunc(l.watched, func(s *Store) bool { return s == newest })
	l.watched = append(l.watched, newest)
	var old *Store
	if len(l.watched) > mostWatching {
		old = l.watched[0]
		l.watched = l.watched[1:]
	}
	l.mu.Unlock()
	if old == nil {
		return
	}
	select {
	case old.turn <- struct{}{}:
		old.unwatch()
		<-old.turn
	default: // it is being looked at, and comes to the front
		l.mu.Lock()
		l.watched = append(l.watched, old)
		l.mu.Unlock()
	}
}

// settled records a tree that includes every change reported before the snapshot began.
func (t *taking) settled(outside string, touched map[string]bool) {
	w := t.s.watching
	if w == nil {
		return
	}
	for folder := range t.folders { // an ignored folder may hold kept files
		if !w.folders[folder] && (folder+"/" == t.at.prefix || strings.HasPrefix(folder+"/", t.at.prefix)) {
			t.s.unwatch()
			t.s.watchNot = time.Now().Add(unseenAgain)
			return
		}
	}
	w.mu.Lock()
	for name := range touched {
		delete(w.touched, name)
	}
	w.linked = t.linked
	w.mu.Unlock()
	w.perms, w.outside = t.perms, outside
	if len(t.linked) > mostTouched {
		t.s.unwatch()
		t.s.watchNot = time.Now().Add(watchAgain)
	}
}

// named records a file that has further names. A watch tells of a change by one name alone, so a name that was not known is a reason to look at
// every file.
func (t *taking) named(name string, info fs.FileInfo) {
	if !several(info) {
		return
	}
	t.linked[name], _, _ = changedAt(info)
	if t.only != nil {
		w := t.s.watching
		w.mu.Lock()
		_, known := w.linked[name]
		w.mu.Unlock()
		t.twin = t.twin || !known
	}
}

// resume starts from the files of the last tree, less the touched files, which alone are looked at.
func (t *taking) resume() {
	w := t.s.watching
	t.perms, t.linked = w.perms, maps.Clone(w.linked)
	w.perms = nil // until the tree is complete again
	touched := map[string]bool{}
	for _, name := range t.only {
		touched[name] = true
	}
	is := func(name string) bool {
		for ; name != "."; name = parent(name) {
			if touched[name] {
				return true
			}
		}
		return false
	}
	maps.DeleteFunc(t.perms, func(name string, _ fs.FileMode) bool { return is(name) })
	maps.DeleteFunc(t.linked, func(name string, _ time.Time) bool { return is(name) })
	for _, l := range t.s.last.Left {
		if !is(t.at.prefix + l.Path) {
			t.left = append(t.left, l)
		}
	}
}

func parent(name string) string {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "."
	}
	return name[:i]
}
