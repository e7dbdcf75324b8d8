package session

import (
	"sync"
	"time"
)

// erasing holds the sessions that wait to be erased or were erased in this run of the program; no conversation is made for them. Any
// goroutine may call the methods of erasing.
type erasing struct {
	more chan struct{} // has room for one token; holds it when a session waits

	mu      sync.Mutex               // protects the fields below
	known   map[string]chan struct{} // by session, closed when the session is erased
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

// done returns a channel that is closed when the session is erased; nil for a session that was not handed to the eraser.
func (e *erasing) done(id string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[id]
}

// first returns the session to erase next, or "".
func (e *erasing) first() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) == 0 {
		return ""
	}
	return e.waiting[0]
}

// erased removes the first waiting session, which is erased. Only the eraser calls erased.
func (e *erasing) erased() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.known[e.waiting[0]])
	e.waiting = e.waiting[1:]
}

// undoTime is how long a deletion can be undone. The window offers the undo for five seconds from the answer to the deletion, and a click
// in the last second must arrive in time on a slow connection.
const undoTime = 15 * time.Second
