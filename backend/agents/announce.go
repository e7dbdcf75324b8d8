package agents

import (
	"reflect"
	"slices"
	"sync/atomic"
)

// News is an event of an installation, for the callback of Watch.
type News struct {
	Agent string
	Progress
	Ended bool  // the installation is over, and has left nothing behind unless it succeeded
	Err   error // why the installation failed; ErrCancelled is among the reasons
	Aside bool  // no installation: another fact about the agent changed; Ended is set too
}

// Watch has f called with the news of all installations, in the order of each. f must not block.
func (c *Catalogue) Watch(f func(News)) { c.news.watch.Store(&f) }

// announcer calls the callback of Watch.
type announcer struct{ watch atomic.Pointer[func(News)] }

func (a *announcer) announce(n News) {
	if f := a.watch.Load(); f != nil {
		(*f)(n)
	}
}

// changing runs f, and announces the agents that f changed to the callback of Watch.
func (c *Catalogue) changing(f func()) {
	before, _ := c.List() // other callers of List get the error of agents.json
	f()
	after, _ := c.List()
	for _, a := range after {
		if !slices.ContainsFunc(before, func(b Agent) bool { return reflect.DeepEqual(a, b) }) {
			c.news.announce(News{Agent: a.ID, Ended: true, Aside: true})
		}
	}
}
