// Package undo owns what the turns of agents changed in the directories of sessions: the changes are recorded, shown, and taken back.
//
// A Snapshotter takes a snapshot of a session's directory before the prompt of a turn goes to the agent, and a second snapshot when the turn is
// over, however the turn ends. The difference of the two is the change of the turn. A Library shows the changes of a turn, or of all turns since
// the session began, by file and by hunk, and takes back hunks, files and whole turns. A restoration is stored with the snapshot of the directory
// as the directory was, before the first file is replaced: each restoration can be undone, and so can a restoration that broke off. A file that
// somebody else has changed since is left alone, and nothing is put back while an agent is at work in the directory.
//
// The package hides the tables turn_change, restoration and kept_hunk, and which trees of package snapshot belong to which turn.
package undo

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
	"deskhand/backend/store"
)

// Session is the part of a session that its changes depend on.
type Session struct {
	ID, Place, Workspace, Cwd string
	Directories               []string // in which the agent works beside Cwd
	Turn                      string   // the running turn; "" = none
}

// Deps is the surroundings of a Library.
type Deps struct {
	Store     *store.DB
	Logger    *slog.Logger
	Snapshots *snapshot.Library                              // nil = no snapshots are taken, and nothing can be taken back
	Host      func(place string) host.Capabilities           // a host without snapshots has its turns recorded as changes.elsewhere
	Enabled   func() bool                                    // the person wants snapshots
	Writable  func() error                                   // returns the reason when the data cannot be changed
	Publish   func(context.Context, string) error            // tells every surface of a turn that is over
	Running   func() []Session                               // the sessions whose turn runs
	Find      func(context.Context, string) (Session, error) // a session by its id, as of its last stored step

	// Unfinished returns the ids of the turns of all sessions that have not ended.
	Unfinished func(context.Context) ([]string, error)

	HoldPrompt time.Duration // how long a prompt waits for a snapshot at most; 0 = 300 ms
	LastLook   time.Duration // how long the snapshot at the end of a turn may take; 0 = 30 s
}

// Library is the recorded changes of all sessions in a data directory.
type Library struct {
	Deps

	late  map[string]bool // turns whose end is recorded only by this start of the program; set by Recover, before any turn begins
	adopt sync.Mutex      // one store at a time takes over the trees of another
	diffs diffCache
	all   composedCache
	busy  busy
}

// New returns the changes of a database.
func New(deps Deps) *Library { return &Library{Deps: deps} }

// reach returns the directories that a session's agent works in, with every link resolved; none for a host whose directories are elsewhere.
func (l *Library) reach(s *Session) []string {
	return l.Host(s.Place).Directories.Reach(s.Cwd, s.Directories)
}

// store returns the store of the snapshots of a session's directory.
func (l *Library) store(s *Session) *snapshot.Store { return l.Snapshots.Store(s.Workspace, s.Cwd) }

// Bytes returns the size of all snapshots on the disk.
func (l *Library) Bytes(ctx context.Context) (int64, error) {
	if l.Snapshots == nil {
		return 0, nil
	}
	return l.Snapshots.Size(ctx)
}

// gitFailed returns the refusal that a person is shown when git cannot compare two snapshots. Any other error is returned unchanged.
func (l *Library) gitFailed(s *Session, err error) error {
	if errors.Is(err, snapshot.ErrGit) || errors.Is(err, snapshot.ErrNoGit) {
		l.Logger.Error("the changes of a session cannot be shown", "session", s.ID, "error", err)
		return &refusal.Error{Code: refusedNoSnapshot, Params: map[string]string{"detail": err.Error()}}
	}
	return err
}
