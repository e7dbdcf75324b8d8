package session

import (
	"sync"
	"time"
)

// erasing is the sessions that are erased, or were in this run of the program: they are not made live again.
type erasing struct {
	more chan struct{} // of one: a token when something waits

	mu      sync.Mutex               // protects what is below
	known   map[string]chan struct{} // closed when it is erased
	waiting []string
}

func newErasing() *erasing {
	return &erasing{known: map[string]chan struct{}{}, more: make(chan struct{}, 1)}
}

func (e *erasing) add(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[id] = make(chan struct{})
	e.waiting = append(e.waiting, id)
	select {
	case e.more <- struct{}{}:
	default:
	}
}

func (e *erasing) knows(id string) bool { return e.done(id) != nil }

// done is closed when the session is erased; nil while nobody has said that it is to be.
func (e *erasing) done(id string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[id]
}

// first is the session to be erased next, "" when there is none.
func (e *erasing) first() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return ""
	}
	return e.waiting[0]
}

func (e *erasing) erased() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.known[e.waiting[0]])
	e.waiting = e.waiting[1:]
}

// undoTime is how long a deletion can be undone. The window offers it for five seconds from when it has our answer, and what a person
// presses in the last of them has to get here by a slow line too.
const undoTime = 15 * time.Second
