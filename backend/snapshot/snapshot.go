// Package snapshot hides a private git store of a directory's contents. The store records the directory at a moment as a tree, compares two
// trees, and restores files of a tree.
//
// The store lies neither in the directory nor in the directory's repository. git works on a folder of ours, without anybody's configuration,
// hooks, filters and attributes, and files come back byte for byte. A snapshot leaves out the files that .gitignore excludes, unless a
// repository tracks them, and files that are too long or unreadable, which [Tree.Left] lists. Repositories below the directory are kept like
// other folders, without their .git. Links are kept as links.
//
// Every directory has a store, named by an id. Calls on one store wait for each other. A tree is kept until [Store.Prune] runs without naming
// the tree, and for an hour at least, since the caller of [Store.Take] may not have stored the tree's name yet. A snapshot costs time for
// changed files; the first snapshot of a directory reads every file. A snapshot that ends with its context leaves its progress to the next
// snapshot.
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

// TooLargeError reports that a directory exceeds a limit. One of the two fields is not 0.
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

// Config configures a Library. Dir, Beside, Environ and Replace are required.
type Config struct {
	Dir     string                         // used by the library alone; created with the first snapshot
	Beside  *proxy.Set                     // provides the watchdog and the ledger of git's processes
	Environ func(context.Context) []string // the environment in which git is found and started
	Logger  *slog.Logger

	// Replace replaces a file atomically, unless last returns an error just before (files.ReplaceIf).
	Replace func(dir *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error

	MostFile  int64 // largest file in bytes; 0 = 32 MiB
	MostBytes int64 // bytes that a tree may add; 0 = 2 GiB
	MostFiles int   // files of a tree; 0 = 100,000
	Unwatched bool  // watch no directory: every snapshot looks at every file
}

// Library holds the stores of a data directory.
type Library struct {
	cfg       Config
	processes *proxy.Set
	life      context.Context //nolint:containedctx // ends every process of git
	stop      context.CancelFunc

	mu      sync.Mutex // protects the fields below
	stores  map[string]*Store
	watched []*Store // stores with a watched directory, the least recently used first
}

// Open makes a library. Open writes nothing and starts no process; the first snapshot does.
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

// Close ends the running processes, and waits for them.
func (l *Library) Close() error {
	l.stop()
	err := l.processes.Close()
	l.mu.Lock()
	watched := slices.Clone(l.watched)
	l.mu.Unlock()
	for _, s := range watched {
		s.turn <- struct{}{} // the holder of the store has no process any more
		s.unwatch()
		s.watchNot = time.Now().Add(longestRun)
		<-s.turn
	}
	return err
}

// Store returns the store of a directory. id names the store. dir is the present path of the directory, or empty for a caller that does not
// need the directory.
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

// IDs lists the stores on the disk.
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

// Size is the disk space of all stores in bytes.
func (l *Library) Size(ctx context.Context) (total int64, err error) {
	err = filepath.WalkDir(l.cfg.Dir, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil { // else git has removed the file meanwhile
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

// Store holds the snapshots of a directory.
type Store struct {
	l    *Library
	path string
	turn chan struct{} // holds a token while a call works with the store

	early atomic.Pointer[earlyMark] // the mark of the first snapshot; nil = none
	whole atomic.Pointer[place]     // the place of the last complete index; nil = none

	mu      sync.Mutex // protects the fields below
	dir     string
	waiting int            // calls that wait for the turn
	yield   func()         // ends work that can be postponed; nil = no such work
	hides   map[place]bool // whether the repository ignores the whole directory

	// The following fields belong to the call that holds the turn.
	made      bool      // the folder is a valid git repository
	last      Tree      // the tree of the present index; without an ID when unknown
	lastOf    place     // the place of last
	watching  *watching // nil = the directory is not watched
	watchNot  time.Time // no attempt to watch the directory before this time
	hiddenNow *hidden   // of the last tree; nil = unknown
	nested    []string  // folders with repositories of their own, as paths from the top with a final slash
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

// want announces that a call waits for the store, and ends work that can be postponed.
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

// yielding is a context that ends as soon as another call wants the store. The caller calls over when its work is done.
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

// enter waits for the store until ctx ends. The returned context also ends with the library. The caller calls leave to release the store.
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

// Forget removes the store with all its trees.
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

// place is the position of a directory in its repository: top is the repository's folder, or the directory itself outside any repository.
// prefix is the path from top to the directory, with a final slash unless empty. git works at top, since the ignore rules of the folders above
// the directory count.
type place struct{ top, prefix string }

func (p place) dir() string { return filepath.Join(p.top, filepath.FromSlash(p.prefix)) }

// find locates the directory, and fails when the directory may not be kept.
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
	if above := repository(dir); above.prefix != "" && !s.leavesOut(ctx, above) { // else the repository's rules would exclude every file
		at = above
	}
	return at, nil
}

// repository locates a directory in its repository, or makes the directory its own top outside any repository.
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

// wide reports whether nobody works in the directory as a whole: a disk's root, a home directory, or a directory that holds our data.
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

// A git process that takes longer has met an input without an end, such as a pipe.
const longestRun = 10 * time.Minute
