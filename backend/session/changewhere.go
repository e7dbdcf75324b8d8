package session

import (
	"context"
	"slices"

	"deskhand/backend/host"
)

// Where agents are at work. Directories may lie within each other and have several names, so their paths are compared, with no link in them;
// the id of a workspace tells too little.

// reaching is a turn whose agent may change files.
type reaching struct {
	session string
	reach   []string // its directory first, which is the one that is looked at
	mixed   bool     // another one reached into that meanwhile
}

// reachOf returns the directories that a session's agent works in, with every link resolved; none for a host whose directories are elsewhere.
func (c *Client) reachOf(s Session) []string {
	return c.hosts.At(s.Place).Directories.Reach(s.Cwd, s.Directories)
}

// begins takes note of a turn whose agent is about to be let loose in the directories of reach.
func (l *looks) begins(turn, session string, reach []string) {
	w := &reaching{session: session, reach: reach}
	if len(w.reach) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.working {
		if other.session != w.session {
			other.mixed = other.mixed || host.Overlap(w.reach, other.reach[0])
			w.mixed = w.mixed || host.Overlap(other.reach, w.reach[0])
		}
	}
	if l.working == nil {
		l.working = map[string]*reaching{}
	}
	l.working[turn] = w
}

// ends takes note that the end of a turn was looked at.
func (l *looks) ends(turn string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.working, turn)
}

func (l *looks) mixed(turn string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.working[turn]
	return w != nil && w.mixed
}

// puttingBack is a directory in which files are being put back.
type puttingBack struct {
	dir  string
	over chan struct{}
}

// putsBack takes note that files are about to be put back in the first directory of reach, before it is asked whether an agent is at work there: of
// the two one sees the other. end is for when that is over.
func (l *looks) putsBack(reach []string) (end func()) {
	if len(reach) == 0 {
		return func() {}
	}
	now := &puttingBack{reach[0], make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.puts = append(l.puts, now)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.puts = slices.DeleteFunc(l.puts, func(p *puttingBack) bool { return p == now })
		close(now.over)
	}
}

// putting tells whether files are being put back anywhere.
func (l *looks) putting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.puts) > 0
}

// putIn is closed when what is being put back where an agent works is over; nil = nothing is.
func (l *looks) putIn(reach []string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.puts {
		if host.Overlap(reach, p.dir) {
			return p.over
		}
	}
	return nil
}

// awaitPuts waits until nothing is being put back where an agent works.
func (l *looks) awaitPuts(ctx context.Context, reach []string) {
	for over := l.putIn(reach); over != nil; over = l.putIn(reach) {
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}

// atWork tells whether an agent is at work where the session's files are.
func (c *Client) atWork(s Session) bool {
	c.mu.Lock()
	live := make([]*conversation, 0, len(c.live))
	for _, v := range c.live {
		live = append(live, v)
	}
	c.mu.Unlock()
	own := c.reachOf(s)
	return len(own) > 0 && slices.ContainsFunc(live, func(v *conversation) bool {
		other := v.look()
		return other.Turn != nil && host.Overlap(c.reachOf(other), own[0])
	})
}
