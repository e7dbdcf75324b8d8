// Package setup makes new worktrees ready: it copies and links the ignored files that a project names, runs the commands of its set-up, and
// gives each worktree ports of its own. It also runs the tests of a project in a worktree.
//
// The first start of an agent in a worktree waits for the set-up, see [Library.Ready]. Nothing that a project names runs before a person has
// approved its content (package launch). A set-up that fails or is stopped holds the start until a person has it run again or goes on without
// it; a person may also have the agent start while the set-up runs on. What a set-up has written is kept with the worktree.
//
// A set-up outlives the conversation that has begun it, and ends with the program, and with its worktree: the processes of a command end as
// soon as the command does, or Deskhand does, and the next Load says that the set-up was cut off. Every step can be repeated. The package owns
// the table setup; the ports of a worktree are free again in the transaction that removes the worktree.
package setup

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"

	"deskhand/backend/launch"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/shells"
	"deskhand/backend/store"
	"deskhand/backend/worktrees"
)

// The states of a set-up.
const (
	Running = "running"
	Done    = "done"
	Failed  = "failed"
	Stopped = "stopped" // by a person, or with the program
	Without = "without" // a person goes on without it
	None    = "none"    // there is none
)

// Setup is the set-up of a worktree.
type Setup struct {
	State    string       `json:"state" enum:"running,done,failed,stopped,without" doc:"stopped: by a person, or with Deskhand. without: a person goes on without it"`
	Waiting  bool         `json:"waiting,omitempty" doc:"The start of an agent waits for it"`
	Commands []string     `json:"commands,omitempty" doc:"Commands that run, in this order"`
	At       int          `json:"at,omitempty" doc:"Number of the command that runs or ran last, from 1 on; absent before the first"`
	ExitCode *int         `json:"exitCode,omitempty" doc:"Of a command that has failed; absent when a signal ended it"`
	Signal   string       `json:"signal,omitempty"`
	Problem  string       `json:"problem,omitempty" doc:"Why it has failed other than by a command"`
	Copied   int          `json:"copied,omitempty" doc:"Number of copied files"`
	Linked   int          `json:"linked,omitempty" doc:"Number of linked files and folders"`
	Notes    []string     `json:"notes,omitempty" doc:"Files that were not brought, and why"`
	Port     int          `json:"port,omitempty" doc:"First port of the worktree"`
	Ports    int          `json:"ports,omitempty" doc:"Number of its ports"`
	Started  *record.Time `json:"startedAt,omitempty"`
	Ended    *record.Time `json:"endedAt,omitempty"`
}

// Session is the part of a session that its set-up depends on.
type Session struct {
	Cwd   string
	Local bool // runs on this machine
}

// Sessions are the parts of the sessions that a Library uses.
type Sessions struct {
	Gate      *launch.Gate
	Worktrees *worktrees.Library
	Shells    *shells.Library
	Find      func(ctx context.Context, id string) (Session, error)
	Show      func(ctx context.Context, path string) // publishes the sessions in a directory anew
	Clean     func(text string) string               // takes secrets out of a text
	Writable  func() error                           // refuses a change of data that a newer version has written
}

// Deps are the parts of the program that a Library uses.
type Deps struct {
	Store     *store.DB
	Processes *proxy.Set                     // in which the commands and git run
	Environ   func(context.Context) []string // their environment
	Logger    *slog.Logger
	Free      func(port int) bool // reports whether nothing listens on a port; nil = asks the system
}

// Library is the set-ups of all worktrees. A Library may be used by any goroutine once Use and Load have returned.
type Library struct {
	deps     Deps
	sessions Sessions
	life     context.Context //nolint:containedctx // of every set-up
	stop     context.CancelFunc
	wg       sync.WaitGroup

	mu     sync.Mutex // protects the fields below, and each work
	all    map[string]*work
	closed bool
}

// work is the set-up of one worktree.
type work struct {
	setup   Setup
	output  *output
	asking  bool          // a start asks a person, or looks at the project
	waiting int           // starts that wait
	early   bool          // a person has the agents start while the set-up runs
	cancel  func()        // ends the commands; nil when none runs
	ended   chan struct{} // closed when nothing of the last run is left; nil when there was none
	tests   *testRun      // nil when there was none
	changed chan struct{} // closed at the next change
}

// New makes a Library without set-ups. No process runs before the first call.
func New(deps Deps) *Library {
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if deps.Free == nil {
		deps.Free = free
	}
	l := &Library{deps: deps, all: map[string]*work{}}
	l.life, l.stop = context.WithCancel(context.Background())
	return l
}

// Use gives the Library the sessions. Use is called once, before all others.
func (l *Library) Use(s Sessions) { l.sessions = s }

// Close ends all set-ups, and waits for their end. The next Load tells of them as cut off.
func (l *Library) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.wg.Wait()
}

// Show returns the set-up of the worktree that a directory lies in; nil when it has none.
func (l *Library) Show(dir string) *Setup {
	at, is := l.sessions.Worktrees.At(dir)
	if !is {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.all[at.ID]
	if w == nil || w.setup.State == "" || w.setup.State == None {
		return nil
	}
	s := w.setup
	s.Waiting = w.waiting > 0 && !w.early
	return &s
}

// EndIn ends the set-ups and the tests in a directory. Each returned channel is closed when nothing of what ran is left.
func (l *Library) EndIn(dir string) (ends []<-chan struct{}) {
	at, is := l.sessions.Worktrees.At(dir)
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.all[at.ID]
	if !is || w == nil {
		return nil
	}
	if w.cancel != nil {
		w.cancel()
		ends = append(ends, w.ended)
	}
	if w.tests != nil && w.tests.cancel != nil {
		w.tests.cancel()
		ends = append(ends, w.tests.ended)
	}
	return ends
}

// Forget deletes what is stored of a worktree, in the transaction that removes the worktree.
func (l *Library) Forget(ctx context.Context, tx *sql.Tx, worktree string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM setup WHERE worktree = ?`, worktree)
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.all[worktree]; w != nil && w.waiting > 0 { // a start will find that the worktree is gone
		w.setup, w.output = Setup{}, nil
		w.tellLocked()
	} else {
		delete(l.all, worktree)
	}
	return err
}

// ofLocked returns the work of a worktree, and makes it when there is none.
func (l *Library) ofLocked(id string) *work {
	w := l.all[id]
	if w == nil {
		w = &work{changed: make(chan struct{})}
		l.all[id] = w
	}
	return w
}

// tellLocked wakes everybody who waits for a change.
func (w *work) tellLocked() {
	close(w.changed)
	w.changed = make(chan struct{})
}
