// Package worktrees keeps the worktrees of sessions: second directories of a repository, each on a branch of its own, next to the repository.
//
// A worktree and its branch belong to the person like any other directory and branch; the table worktree, which the package owns, has what the
// program knows beside. A session works in a worktree as long as the session's directory lies there, whichever session it was made for: a fork
// works there too. Each change is stored before it begins, so that the next start knows what a crash may have left half done; see settle.go.
package worktrees

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"sync"

	"deskhand/backend/host"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/workspace"
	"deskhand/backend/worktree"
)

// Worktree is the worktree that a session works in.
type Worktree struct {
	Path       string    `json:"path"`
	Branch     string    `json:"branch" doc:"Branch that was made for the worktree; another branch may be checked out by now"`
	Repository string    `json:"repository" doc:"Worktree from which this worktree was made"`
	From       string    `json:"from" doc:"Directory of the repository that the session's directory stands for"`
	Base       string    `json:"base" doc:"Commit with which the worktree began"`
	BaseBranch string    `json:"baseBranch,omitempty" doc:"Branch with which the worktree began; absent where it began with a commit"`
	State      string    `json:"state" enum:"ready,removed,missing" doc:"missing: another program has removed the directory"`
	Kept       *KeptWork `json:"kept,omitempty" doc:"Of a removed worktree: the files that nobody had committed"`
	Left       string    `json:"left,omitempty" doc:"Of a removed worktree: the folder with the files that could not be deleted. Nothing there is needed"`
}

// KeptWork is the uncommitted work that the removal of a worktree has kept.
type KeptWork struct {
	Ref    string      `json:"ref" doc:"Ref of the repository, with the shape of a stash: git stash apply brings the files back"`
	Commit string      `json:"commit"`
	Files  int         `json:"files"`
	At     record.Time `json:"at"`
}

// Deps are the parts of the program that a Library uses.
type Deps struct {
	Store       *store.DB
	Git         *worktree.Library // is closed with the Library
	Logger      *slog.Logger
	Directories *host.Directories // of this machine
	Writable    func() error      // refuses a change of data that a newer version has written
	Sessions    Sessions

	// Removed deletes what another package has stored of a worktree, in the transaction that stores its removal; nil = there is nothing.
	Removed func(ctx context.Context, tx *sql.Tx, id string) error
}

// Sessions are the functions of the sessions that a Library calls.
type Sessions struct {
	Clean     func(text string) string                                   // takes secrets out of a text
	Find      func(ctx context.Context, id string) (Session, error)      // finds a session
	Occupants func(ctx context.Context, path string) ([]Occupant, error) // the sessions that work in a directory, or have it as a further directory
	End       func(ctx context.Context, path string) error               // ends the agents and terminals in a directory, and waits for them. End refuses where a turn runs
	Show      func(ctx context.Context, path string)                     // publishes the sessions in a directory anew
	Record    func(ctx context.Context, paths ...string) error           // renews the records of directories, and of the directories above, that were renamed
}

// Session is the part of a session that its worktree depends on.
type Session struct {
	ID    string
	Cwd   string
	Local bool // runs on this machine
}

// Occupant is a session that works in a worktree.
type Occupant struct {
	ID      string
	Title   string
	Running bool // a turn runs
}

// Library is all worktrees. A Library may be used by any goroutine once Load has returned.
type Library struct {
	deps Deps
	git  *worktree.Library

	mu   sync.Mutex // protects the fields below
	all  map[string]row
	busy map[string]chan struct{} // the claimed worktrees; a channel is closed when its claim is over
}

// New returns a Library without worktrees.
func New(deps Deps) *Library {
	return &Library{deps: deps, git: deps.Git, all: map[string]row{}, busy: map[string]chan struct{}{}}
}

// Close ends the git processes, and waits for them.
func (l *Library) Close() error { return l.git.Close() }

// keptRef returns the ref for the uncommitted work of a worktree.
func keptRef(id string) string { return "refs/deskhand/kept/" + id }

// of finds the worktree that a directory lies in.
func (l *Library) of(dir string) (row, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		if host.Within(r.path, dir) {
			return r, true
		}
	}
	return row{}, false
}

// Place is where a worktree is.
type Place struct {
	ID         string
	Path       string
	Repository string // the worktree from which it was made
	Main       string // the first worktree of the repository
}

// At returns the worktree that a directory lies in, while it is there.
func (l *Library) At(dir string) (Place, bool) {
	r, ok := l.of(dir)
	return Place{ID: r.id, Path: r.path, Repository: r.repository, Main: r.main}, ok && (r.state == stateReady || r.state == stateMaking)
}

// get returns the row of a worktree.
func (l *Library) get(id string) row {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[id]
}

// reserve adds and claims a row whose path lies in no other worktree. Of two callers with the same path one gets false, before anything is made
// or stored.
func (l *Library) reserve(r row) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.all {
		if host.Within(other.path, r.path) {
			return false
		}
	}
	l.all[r.id], l.busy[r.id] = r, make(chan struct{})
	return true
}

// shared reports whether a second row stands for the same directory, under this path or another.
func (l *Library) shared(r row) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, err := os.Stat(r.path)
	for _, other := range l.all {
		there, missing := os.Stat(other.path)
		if other.id != r.id && (other.path == r.path || err == nil && missing == nil && os.SameFile(at, there)) {
			return true
		}
	}
	return false
}

// Show returns the worktree in which a session of this machine works; nil when the session works in none. missing says that the session's
// directory is missing.
func (l *Library) Show(cwd string, missing bool) *Worktree {
	r, ok := l.of(cwd)
	if !ok || r.state == stateMaking {
		return nil
	}
	t := &Worktree{Path: r.path, Branch: r.branch, Repository: r.repository, From: workspace.Rebase(cwd, r.path, r.repository), Base: r.base, BaseBranch: r.baseBranch, State: stateReady}
	switch {
	case r.state == stateRemoved, r.state == stateRestoring:
		t.State = stateRemoved
		if r.kept != nil {
			t.Kept, t.Left = r.keptWork(), r.kept.Left
		}
	case missing && r.state == stateReady && l.deps.Directories.Missing(r.path):
		t.State = stateMissing
	}
	return t
}

// Closed reports whether nothing may start in a directory, because the directory's worktree is being removed or restored. dir may be any path
// of the directory.
func (l *Library) Closed(dir string) bool {
	r, ok := l.of(dir)
	if !ok {
		r, ok = l.of(host.Resolve(dir))
	}
	return ok && (r.state == stateRemoving || r.state == stateRestoring)
}

// StandsFor returns the directory of the repository that a directory in a worktree stands for, and any other directory as it is.
func (l *Library) StandsFor(dir string) string {
	r, ok := l.of(dir)
	if !ok {
		return dir
	}
	return workspace.Rebase(dir, r.path, r.repository)
}

// ErrWorking is the refusal of a command for a worktree that another command changes.
func ErrWorking() error { return &refusal.Error{Code: refusedWorking} }
