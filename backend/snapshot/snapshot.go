// Package snapshot hides a private git store in which the contents of a directory are kept, as trees: how it was at a moment, what is
// different between two moments, and the way back.
//
// Nothing of it is in the directory, nor in a repository that the directory belongs to: git works with a folder of ours, without
// anybody's configuration, hooks, filters and attributes, and the files come back byte for byte. What .gitignore files leave out is not
// kept, unless a repository has it all the same; nor are files that are too long or cannot be read, which [Tree.Left] names. Repositories
// below the directory are kept like other folders, without their .git; links are kept as links.
//
// A directory has a store by an id; calls for one store wait for each other. A tree is kept until [Store.Prune] is told that nobody names
// it, and for an hour at least: whoever took it may still be about to write down its name. Taking one costs what has changed: the first of a directory reads all of it. What was done of it when its context ends is not done
// again the next time.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

// Errors of this package.
var (
	ErrNoGit   = git.ErrAbsent
	ErrGit     = git.ErrFailed
	ErrMissing = errors.New("the directory is not there")
	ErrWide    = errors.New("the directory is a home directory, a whole disk, or holds our own data")
	ErrClosed  = errors.New("the snapshots are closed")
)

// TooLargeError tells that a directory has more than is kept. One of the two is not 0.
type TooLargeError struct {
	Files int
	Bytes int64
}

func (e *TooLargeError) Error() string {
	if e.Files > 0 {
		return fmt.Sprintf("the directory has more than %d files", e.Files)
	}
	return fmt.Sprintf("the files of the directory are longer than %d bytes", e.Bytes)
}

// Config of a library. Dir, Beside, Environ and Replace are required.
type Config struct {
	Dir     string                         // ours alone; it is made when something is kept
	Beside  *proxy.Set                     // whose watchdog and ledger git's processes get
	Environ func(context.Context) []string // where git is looked for, and what it is started in
	Logger  *slog.Logger

	// Replace replaces a file atomically, unless last is against it when it is about to (files.ReplaceIf).
	Replace func(dir *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error

	MostFile  int64 // bytes of one file that is kept; 0 = 32 MiB
	MostBytes int64 // of all that a tree adds; 0 = 2 GiB
	MostFiles int   // of a tree; 0 = 100,000
	Unwatched bool  // every look is in full
}

// Library is the stores of one data directory.
type Library struct {
	cfg       Config
	processes *proxy.Set
	life      context.Context //nolint:containedctx // of every process
	stop      context.CancelFunc

	mu      sync.Mutex // protects what is below
	stores  map[string]*Store
	watched []*Store // whose directories are watched, and more
}

// Open makes a library. Nothing is made on the disk, and no process runs, before something is kept.
func Open(ctx context.Context, cfg Config) (*Library, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MostFile == 0 {
		cfg.MostFile = 32 << 20
	}
	if cfg.MostBytes == 0 {
		cfg.MostBytes = 2 << 30
	}
	if cfg.MostFiles == 0 {
		cfg.MostFiles = 100_000
	}
	processes, err := proxy.Open(proxy.Config{Beside: cfg.Beside, Logger: cfg.Logger, Purpose: "snapshots"})
	if err != nil {
		return nil, err
	}
	l := &Library{cfg: cfg, processes: processes, stores: map[string]*Store{}}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	return l, nil
}

// Close ends what runs, and waits for it.
func (l *Library) Close() error {
	l.stop()
	err := l.processes.Close()
	l.mu.Lock()
	watched := slices.Clone(l.watched)
	l.mu.Unlock()
	for _, s := range watched {
		s.turn <- struct{}{} // who has it has no process any more
		s.unwatch()
		s.watchNot = time.Now().Add(longestRun)
		<-s.turn
	}
	return err
}

// Store is what is kept of one directory. id is ours, and says under which name; dir is where the directory is now, or empty for who does
// not care.
func (l *Library) Store(id, dir string) *Store {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stores[id]
	if s == nil {
		s = &Store{l: l, path: filepath.Join(l.cfg.Dir, id), turn: make(chan struct{}, 1)}
		l.stores[id] = s
	}
	if dir != "" {
		s.setDir(dir)
	}
	return s
}

// IDs are those of the stores that are on the disk.
func (l *Library) IDs() ([]string, error) {
	entries, err := os.ReadDir(l.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Size is how many bytes all stores take of the disk.
func (l *Library) Size(ctx context.Context) (total int64, err error) {
	err = filepath.WalkDir(l.cfg.Dir, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // else git has removed it meanwhile
				total += info.Size()
			}
		}
		if err != nil && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}

// Store is what is kept of one directory.
type Store struct {
	l    *Library
	path string
	turn chan struct{} // holds a token while somebody works with the store

	early atomic.Pointer[earlyMark] // of the look that is the first; nil = there is none
	whole atomic.Pointer[place]     // of which the index has all that was there once; nil = of none

	mu      sync.Mutex // protects what is below
	dir     string
	waiting int            // who wants the turn
	yield   func()         // ends what can be done later; nil = nothing such is done
	hides   map[place]bool // whether the repository leaves the directory out

	// Of who has the turn.
	made      bool      // the folder is one that git can use
	last      Tree      // of the index as it is; without an id when that is not known
	lastOf    place     // where last was taken
	watching  *watching // nil = the directory is not watched
	watchNot  time.Time // before then the system is not asked to watch it again
	hiddenNow *hidden   // of the tree that was taken last; nil = it is not known
	nested    []string  // folders that are repositories of their own, by their paths from the top, with a slash at the end
}

func (s *Store) setDir(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir = dir
}

func (s *Store) directory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

// want tells who does something that can wait that somebody waits.
func (s *Store) want() (noMore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.yield != nil {
		s.yield()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting--
	}
}

// yielding is a context that ends as soon as somebody wants the store; over ends it.
func (s *Store) yielding(ctx context.Context) (_ context.Context, over func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 {
		cancel()
	}
	s.yield = cancel
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.yield = nil
		cancel()
	}
}

// enter waits for the store until ctx ends. What it gives ends with the library too; leave gives the store back.
func (s *Store) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	defer s.want()()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-s.l.life.Done():
		return nil, nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.l.life, cancel)
	return ctx, func() { stop(); cancel(); <-s.turn }, nil
}

// Forget removes the store and all that is kept in it.
func (s *Store) Forget(ctx context.Context) error {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.forget()
}

func (s *Store) forget() error {
	s.made, s.last = false, Tree{}
	s.unwatch()
	s.whole.Store(nil)
	return os.RemoveAll(s.path)
}

// place is where git works: below top, the folder of the repository that the directory belongs to, or the directory itself. prefix is the
// way from there, with a slash at its end where there is one: the rules of folders above the directory count in it.
type place struct{ top, prefix string }

func (p place) dir() string { return filepath.Join(p.top, filepath.FromSlash(p.prefix)) }

// find is where the directory is, if it may be kept.
func (s *Store) find(ctx context.Context) (place, error) {
	dir, err := filepath.EvalSymlinks(s.directory())
	if err != nil {
		return place{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return place{}, ErrMissing
	}
	if s.l.wide(dir) {
		return place{}, ErrWide
	}
	at := place{dir, ""}
	if above := repository(dir); above.prefix != "" && !s.leavesOut(ctx, above) { // else its rules would leave out all of it
		at = above
	}
	return at, nil
}

// repository is where a directory lies in the repository that it belongs to; the directory itself where it belongs to none.
func repository(dir string) place {
	for top := dir; ; top = filepath.Dir(top) {
		if _, found := os.Lstat(filepath.Join(top, ".git")); found == nil {
			way, err := filepath.Rel(top, dir)
			if err != nil || way == "." {
				return place{dir, ""}
			}
			return place{top, filepath.ToSlash(way) + "/"}
		}
		if top == filepath.Dir(top) {
			return place{dir, ""}
		}
	}
}

// wide tells of a directory that nobody works in as a whole.
func (l *Library) wide(dir string) bool {
	if filepath.Dir(dir) == dir {
		return true
	}
	own := []string{l.cfg.Dir}
	if home, err := os.UserHomeDir(); err == nil {
		own = append(own, home)
	}
	for _, o := range own {
		if real, err := filepath.EvalSymlinks(o); err == nil {
			o = real
		}
		if way, err := filepath.Rel(dir, o); err == nil && way != ".." && !strings.HasPrefix(way, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// A process of git that takes longer than this has come upon something that never ends.
const longestRun = 10 * time.Minute
