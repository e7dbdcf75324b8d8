package session

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
)

// Where agents are at work. Directories may lie within each other and have several names, so their paths are compared, with no link in them;
// the id of a workspace tells too little.

// reaching is a turn whose agent may change files.
type reaching struct {
	session string
	reach   []string // its directory first, which is the one that is looked at
	mixed   bool     // another one reached into that meanwhile
}

// reachOf are the directories that a session's agent works in, with no link in their paths.
func reachOf(s Session) []string {
	if s.Place != LocalPlace {
		return nil
	}
	var list []string
	for _, dir := range append([]string{s.Cwd}, s.Directories...) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		list = append(list, filepath.Clean(dir))
	}
	return list
}

// touches tells whether one of the directories holds the other one, or is it.
func touches(reach []string, dir string) bool {
	within := func(a, b string) bool {
		way, err := filepath.Rel(a, b)
		return err == nil && way != ".." && !strings.HasPrefix(way, ".."+string(filepath.Separator))
	}
	return slices.ContainsFunc(reach, func(r string) bool { return within(r, dir) || within(dir, r) })
}

// begins takes note of a turn whose agent is about to be let loose.
func (l *looks) begins(turn string, s Session) {
	w := &reaching{session: s.ID, reach: reachOf(s)}
	if len(w.reach) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.working {
		if other.session != w.session {
			other.mixed = other.mixed || touches(w.reach, other.reach[0])
			w.mixed = w.mixed || touches(other.reach, w.reach[0])
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

// putsBack takes note that files are about to be put back in a session's directory, before it is asked whether an agent is at work there: of
// the two one sees the other. end is for when that is over.
func (l *looks) putsBack(s Session) (end func()) {
	reach := reachOf(s)
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
		if touches(reach, p.dir) {
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
	own := reachOf(s)
	return len(own) > 0 && slices.ContainsFunc(live, func(v *conversation) bool {
		other := v.look()
		return other.Turn != nil && touches(reachOf(other), own[0])
	})
}
