package proxy

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// census counts the processes under one guard, over all Sets that share the guard.
type census struct {
	mu      sync.Mutex // protects the fields below; no other lock is taken while held
	sets    map[*Set]struct{}
	running int
	changed wakeup
}

func (c *census) join(s *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sets == nil {
		c.sets = map[*Set]struct{}{}
	}
	c.sets[s] = struct{}{}
}

func (c *census) leave(s *Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sets, s)
}

func (c *census) count(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running += change
	c.changed.fire()
}

// Running returns how many instances and programs run in this Set and in all Sets that share its watchdog. The watchdog itself does not
// count. changed is closed when the number changes.
func (s *Set) Running() (n int, changed <-chan struct{}) {
	c := &s.guard.census
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.changed.wait()
}

// Overview is everything that runs because of Deskhand.
type Overview struct {
	Self      Member    // this process, with the engine of its window
	StartedAt time.Time // of this process; where the system does not tell, of its first Set
	Watchdog  Member    // PID is 0 when there is no watchdog
	Usage     []Usage   // all instances and programs; those of a Set are adjacent, but the Sets have no order
}

// Overview surveys this Set and all Sets that share its watchdog, with the watchdog.
func (s *Set) Overview(pss bool) (Overview, error) {
	c := &s.guard.census
	c.mu.Lock()
	sets := slices.Collect(maps.Keys(c.sets))
	c.mu.Unlock()
	self, usage, err := Survey(pss, sets...)
	o := Overview{Self: self, StartedAt: self.StartedAt, Usage: slices.Concat(usage...)}
	if o.StartedAt.IsZero() {
		o.StartedAt = s.guard.began
	}
	if err != nil {
		return o, err
	}
	if dog, ok := s.guard.watching(); ok {
		o.Watchdog = dog
		if measured, err := measureOne(dog.PID, pss); err == nil && measured.RSS > 0 {
			o.Watchdog = measured
		}
	}
	return o, nil
}

// watching returns the watchdog. ok is false when no watchdog runs.
func (g *guard) watching() (Member, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dog == nil || !g.dog.alive() {
		return Member{}, false
	}
	return Member{PID: g.dog.process.Pid, Name: "watchdog", StartedAt: g.dog.began}, true
}
