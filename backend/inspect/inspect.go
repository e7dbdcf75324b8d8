// Package inspect shows what went between Deskhand and the agent of a session: the frames of the session's journal, what the agent was started
// with, the end of its stderr, and the whole of a tool call that a person decides about. The package hides how a long journal is looked through
// in bounded parts, how a response finds its request, and how a reader follows a journal that grows. It stores nothing.
package inspect

import (
	"context"
	"sync"

	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/proxy"
	"deskhand/backend/redact"
	"deskhand/backend/store"
)

// Deps are the surroundings of an Inspector.
type Deps struct {
	Store     *store.DB
	Redactor  redact.Redactor
	Processes func() []proxy.Status                          // the agents on this machine
	Find      func(context.Context, string) (Session, error) // a session by its id, as of its last stored step
	Call      func(context.Context, string) (Call, error)    // the tool call of a permission request, by the id of the request
}

// Session is the part of a session that an Inspector shows or needs.
type Session struct {
	Generation int64
	ServerID   string          // of the newest agent process
	Remote     bool            // the process runs at a place elsewhere
	Skills     bool            // the agent is known to read skills
	Tools      bool            // agents of the session's place are given our own tools
	Growth     *Growth         // of the session's journal
	Ended      <-chan struct{} // closed when nothing is added to the journal any more
}

// Inspector reads the journals of a database. An Inspector has no state of its own.
type Inspector struct {
	deps    Deps
	journal journal.Journal
	entries *entries.Library
}

// New returns the Inspector of a database.
func New(deps Deps) *Inspector {
	return &Inspector{deps, journal.Of(deps.Store), entries.New(deps.Store)}
}

// Growth tells the readers of a journal that frames were added. The zero Growth is ready for use.
type Growth struct {
	mu    sync.Mutex // protects grown
	grown chan struct{}
}

// Next returns a channel that the next call of Grew closes.
func (g *Growth) Next() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.grown == nil {
		g.grown = make(chan struct{})
	}
	return g.grown
}

// Grew wakes the readers; the writer of the journal calls Grew once new frames are stored.
func (g *Growth) Grew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.grown != nil {
		close(g.grown)
		g.grown = nil
	}
}
