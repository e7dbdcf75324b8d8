// Package landing brings the work in a session's directory into the history of its repository: what is not committed yet, commits of
// chosen files, pushes of the branch, its comparison with another branch, the base, and merges of the two.
//
// A commit is made as git makes it for the person: with the person's name, signature and filters, and with the hooks of the repository, which
// run only while all of them are approved for the directory (see package launch). What the person has staged, and files that were not
// chosen, stay as they are. A commit writes and deletes nothing in the worktree, and a commit that fails leaves everything as it was. A merge
// changes only files without uncommitted changes, and files that the merge has stashed before.
package landing

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
	"deskhand/backend/refusal"
)

// The longest runs of git: a hook may build and test, and a push may send much.
const (
	longestLook = time.Minute
	longestWork = 30 * time.Minute
)

const (
	indexWait  = 10 * time.Second
	indexPause = 50 * time.Millisecond
)

// Session is what a Library knows of a session.
type Session struct {
	Cwd   string
	Local bool   // runs on this machine
	Title string // "" until the first prompt names the session
	Base  string // the branch with which the session's worktree began, "" where nobody knows
}

// Deps are the parts of the program that a Library uses.
type Deps struct {
	Beside     *proxy.Set                                              // shares its watchdog and ledger with git's processes
	Environ    func(context.Context) []string                          // the environment of git, in which git is searched for, too
	Find       func(ctx context.Context, id string) (Session, error)   // finds a session
	Unapproved func(ctx context.Context, dir string) ([]string, error) // names the programs that git would run in a directory and that nobody has approved
	Clean      func(text string) string                                // takes secrets out of a text
	Writable   func() error                                            // refuses a change of data that a newer version has written
	Logger     *slog.Logger
	IndexWait  time.Duration // how long a commit that is made waits for the index while another git has it; 0 = 10 s
}

// Library looks at repositories, commits and pushes. A Library may be used by any goroutine.
type Library struct {
	deps      Deps
	processes *proxy.Set
	life      context.Context //nolint:containedctx // of every process
	stop      context.CancelFunc

	mu   sync.Mutex // protects busy
	busy map[string]bool
}

// Open makes a Library. No process runs before the first call.
func Open(ctx context.Context, deps Deps) (*Library, error) {
	processes, err := proxy.Open(proxy.Config{Beside: deps.Beside, Logger: deps.Logger, Purpose: "landing"})
	if err != nil {
		return nil, err
	}
	l := &Library{deps: deps, processes: processes, busy: map[string]bool{}}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	return l, nil
}

// Close ends all running processes, and waits for their end.
func (l *Library) Close() error {
	l.stop()
	return l.processes.Close()
}

// place is the repository of a session.
type place struct {
	session Session
	top     string // the worktree that contains the session's directory
	gitDir  string // of top
}

// open finds the repository of a session.
func (l *Library) open(ctx context.Context, id string) (place, error) {
	s, err := l.deps.Find(ctx, id)
	if err != nil {
		return place{}, err
	}
	if !s.Local {
		return place{}, &refusal.Error{Code: refusedElsewhere}
	}
	p := place{session: s, top: s.Cwd}
	const asked = 2
	said, err := l.lines(ctx, p, run{}, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir")
	switch {
	case failedWith(err, "not a git repository"), failedWith(err, "must be run in a work tree"):
		return place{}, &refusal.Error{Code: refusedRepository, Params: map[string]string{"path": s.Cwd}}
	case errors.Is(err, proxy.ErrSpawn) && !isDirectory(s.Cwd):
		return place{}, &refusal.Error{Code: "directory.missing", Params: map[string]string{"path": s.Cwd}}
	case err != nil:
		return place{}, l.refused(err)
	case len(said) != asked:
		return place{}, &refusal.Error{Code: refusedRepository, Params: map[string]string{"path": s.Cwd}}
	}
	p.top, p.gitDir = filepath.FromSlash(said[0]), filepath.FromSlash(said[1])
	return p, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ended reports whether git ran and failed, rather than not being run at all.
func ended(err error) bool {
	_, is := errors.AsType[*git.StatusError](err)
	return is
}

// claim makes the caller the only one that changes a repository's worktree, until release is called.
func (l *Library) claim(p place) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[p.gitDir] {
		return nil, &refusal.Error{Code: refusedWorking}
	}
	l.busy[p.gitDir] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.busy, p.gitDir)
	}, nil
}

// run describes a run of git beside its arguments.
type run struct {
	index  string // the index file; "" = the worktree's own
	in     []byte
	person bool // the run makes a commit of the person's
	hooks  bool // the repository's hooks run
	fetch  bool // the run reaches other machines
	config []string
	read   func(io.Reader) error
}

func (l *Library) git(ctx context.Context, p place, r run, args ...string) error {
	limit := longestLook
	if r.person || r.fetch {
		limit = longestWork
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)() //nolint:contextcheck // every run ends with the library, too
	c := git.Command{
		Whose: git.Theirs, Environ: l.deps.Environ(ctx), Dir: p.top, Index: r.index, Person: r.person, Hooks: r.hooks,
		Config: slices.Concat([]string{"core.safecrlf=false", "status.relativePaths=false", "push.recurseSubmodules=no", "push.gpgSign=false"}, r.config),
		Args:   args, In: r.in, Read: r.read,
	}
	if r.fetch || r.hooks {
		c.Fetch = git.Safe
	}
	c.Patterns = r.hooks || args[0] == "stash" // a hook may run git with patterns, and stash does; none of these runs names a path
	err := git.Run(ctx, l.processes, c)
	if errors.Is(err, proxy.ErrClosed) || err != nil && l.life.Err() != nil {
		return refusal.ErrClosed
	}
	return err
}

// all returns the whole output of git.
func (l *Library) all(ctx context.Context, p place, r run, args ...string) ([]byte, error) {
	const most = 64 << 20
	var out []byte
	r.read = func(from io.Reader) (err error) {
		if out, err = io.ReadAll(io.LimitReader(from, most+1)); err == nil && len(out) > most {
			err = &refusal.Error{Code: refusedTooMuch}
		}
		return err
	}
	err := l.git(ctx, p, r, args...)
	return out, err
}

// lines returns the lines of git's output.
func (l *Library) lines(ctx context.Context, p place, r run, args ...string) ([]string, error) {
	out, err := l.all(ctx, p, r, args...)
	text := strings.TrimRight(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n")
	if text == "" {
		return nil, err
	}
	return strings.Split(text, "\n"), err
}

// records returns git's output, split at NULs.
func (l *Library) records(ctx context.Context, p place, r run, args ...string) ([]string, error) {
	out, err := l.all(ctx, p, r, args...)
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil, err
	}
	return strings.Split(text, "\x00"), err
}

// say returns the first line of git's output; "" where git has failed, because what it was asked for is not there.
func (l *Library) say(ctx context.Context, p place, r run, args ...string) (string, error) {
	said, err := l.lines(ctx, p, r, args...)
	if ended(err) || len(said) == 0 {
		return "", nil
	}
	return said[0], err
}
