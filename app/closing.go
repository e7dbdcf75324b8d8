package app

import "sync"

// closing is the question whether the window may close. Only one question is open at a time.
type closing struct {
	mu sync.Mutex // held while a person is asked
}

// stays reports whether the window stays open. With apart, stays returns true, and quit closes the window once ask has returned true;
// nobody waits for that goroutine, since the system's own message box does not end before its answer. present is called when the person
// closes the window while the question is open.
func (c *closing) stays(apart bool, ask func() bool, quit, present func()) bool {
	if !c.mu.TryLock() {
		present() // the question is on the screen
		return true
	}
	if !apart {
		defer c.mu.Unlock()
		return !ask()
	}
	go func() {
		defer c.mu.Unlock()
		if ask() {
			quit()
		}
	}()
	return true
}
