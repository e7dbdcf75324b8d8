package session

import (
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
