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

// A directory of which the system tells what was touched is looked at in full once; from then on a look is at what was touched. Where nothing
// was, the tree that was taken last is that of now, and no process runs. What is touched outside of the directory and counts all the same (the
// index of its repository, rules) is compared by its size and its time.

const (
	mostTouched  = 200              // files that are looked at one by one; of more all are
	mostIgnored  = 100_000          // names that rules leave out, of a directory that is watched
	watchAgain   = 10 * time.Minute // how long a directory is not tried again that the system could not watch
	unseenAgain  = time.Second      // the same, of one with folders that are known only now
	mostWatching = 8                // directories at a time; the one that was looked at least lately is watched no more
)

// watching is what is known of a directory that is watched.
type watching struct {
	*watch.Watch
	at place

	// Of who has the store.
	folders map[string]bool        // that are watched
	perms   map[string]fs.FileMode // of what the tree has
	outside string                 // what else counts, as it was when the tree was taken

	mu      sync.Mutex           // protects what is below
	touched map[string]bool      // since the tree was taken, by their paths from the top
	lost    bool                 // more was
	linked  map[string]time.Time // files of the tree with further names, which may lie where nobody watches, and when they were changed
}

// pending reads what was touched, and keeps it until a tree was taken; lost is that more was.
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

// unchanged is the tree that was taken last, if nothing was touched since. Else it says what was, or nothing where all is to be looked at.
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

// rules tells of a file by which others than these are kept from now on.
func rules(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return base == ".git" || base == ".gitignore"
}

// outside are files that lie in no watched directory, and decide what is kept.
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

// watch begins to watch a directory, before it is looked at. Where the system cannot, looks are in full.
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

// watchWalk goes through the folders of a directory.
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

// orUnread is nothing for what is gone, or what nobody can read, and so is not kept.
func orUnread(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// ignoredFolders are those that rules leave out whole. A folder with nothing but files that rules leave out is none: another file may come.
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
		err = nil // there is none
	}
	return folders, err
}

// spareWatches ends the watch that is used least lately, where there are too many: the system has few.
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

// settled takes note of a tree that was taken with everything that was told of until it was begun.
func (t *taking) settled(outside string, touched map[string]bool) {
	w := t.s.watching
	if w == nil {
		return
	}
	for folder := range t.folders { // one that rules leave out may have files that are kept all the same
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

// named takes note of a file that has further names.
func (t *taking) named(name string, info fs.FileInfo) {
	if several(info) {
		t.linked[name], _, _ = changedAt(info)
	}
}

// resume begins with what the tree before had, but for what was touched: only that is looked at.
func (t *taking) resume() {
	w := t.s.watching
	t.perms, t.linked = w.perms, maps.Clone(w.linked)
	w.perms = nil // until it is whole again
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
