package undo

import (
	"context"
	"slices"
	"sync"

	"deskhand/backend/host"
)

// busy knows where agents work and where files are put back. Directories may lie within each other and have several names, so resolved paths
// are compared: the id of a workspace does not tell that two sessions share files.
type busy struct {
	mu       sync.Mutex // protects the fields below
	turns    map[string]*workingTurn
	restores []*restoring
}

// workingTurn is a turn whose agent may change files.
type workingTurn struct {
	session string
	reach   []string // the directory of the session first: its snapshots are compared
	mixed   bool     // another session's agent reached into that directory meanwhile
}

// turnBegins records a turn whose agent is about to work in the directories of reach.
func (b *busy) turnBegins(turn, session string, reach []string) {
	if len(reach) == 0 {
		return
	}
	w := &workingTurn{session: session, reach: reach}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, other := range b.turns {
		if other.session != w.session {
			other.mixed = other.mixed || host.Overlap(w.reach, other.reach[0])
			w.mixed = w.mixed || host.Overlap(other.reach, w.reach[0])
		}
	}
	if b.turns == nil {
		b.turns = map[string]*workingTurn{}
	}
	b.turns[turn] = w
}

// turnEnded forgets a turn, after its last snapshot was compared.
func (b *busy) turnEnded(turn string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, turn)
}

// mixed reports whether another session's agent worked in the directory of a turn.
func (b *busy) mixed(turn string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.turns[turn]
	return w != nil && w.mixed
}

// restoring is a directory in which files are being put back.
type restoring struct {
	dir  string
	over chan struct{}
}

// restoreBegins records that files are about to be put back in the first directory of reach. A caller that asks Library.atWork afterwards misses
// no agent: either the caller sees the agent's turn, or the agent's prompt waits for end.
func (b *busy) restoreBegins(reach []string) (end func()) {
	if len(reach) == 0 {
		return func() {}
	}
	now := &restoring{reach[0], make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restores = append(b.restores, now)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.restores = slices.DeleteFunc(b.restores, func(r *restoring) bool { return r == now })
		close(now.over)
	}
}

// restoringAnywhere reports whether files are being put back in any directory. Unlike restoringIn it needs no resolved paths.
func (b *busy) restoringAnywhere() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.restores) > 0
}

// restoringIn returns a channel that is closed when a restoration that overlaps reach is over; nil when there is no such restoration.
func (b *busy) restoringIn(reach []string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.restores {
		if host.Overlap(reach, r.dir) {
			return r.over
		}
	}
	return nil
}

// awaitRestores waits until no restoration overlaps reach, or for the end of ctx.
func (b *busy) awaitRestores(ctx context.Context, reach []string) {
	for over := b.restoringIn(reach); over != nil; over = b.restoringIn(reach) {
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}

// atWork reports whether an agent is at work in the files of a session.
func (l *Library) atWork(s *Session) bool {
	own := l.reach(s)
	return len(own) > 0 && slices.ContainsFunc(l.Running(), func(other Session) bool { return host.Overlap(l.reach(&other), own[0]) })
}
