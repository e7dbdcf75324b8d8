package proxy

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// census is what runs under one guard, over all Sets that share it.
type census struct {
	mu      sync.Mutex // protects the fields below; nothing else is locked under it
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

// Running tells how many instances and programs run of this Set and of all that share its watchdog, which is not counted. The channel is closed when
// one comes or goes.
func (s *Set) Running() (n int, changed <-chan struct{}) {
	c := &s.guard.census
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.changed.wait()
}

// Overview is everything that runs because of us.
type Overview struct {
	Self      Member    // this process, with the engine of its window
	StartedAt time.Time // of this process; where the system does not tell, of its first Set
	Watchdog  Member    // its PID is 0 when there is none
	Usage     []Usage   // of all instances and programs; those of one Set together, in no order of the Sets
}

// Overview is Survey of this Set and of all that share its watchdog, with the watchdog.
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

// watching is the watchdog, while there is one.
func (g *guard) watching() (Member, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dog == nil || !g.dog.alive() {
		return Member{}, false
	}
	return Member{PID: g.dog.process.Pid, Name: "watchdog", StartedAt: g.dog.began}, true
}
