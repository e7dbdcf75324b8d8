package app

import "sync"

// closing is the question whether the window may close. It is asked once at a time.
type closing struct {
	mu sync.Mutex // held while a person is asked
}

// stays answers whether the window stays. With apart it does for now, and quit closes it once ask says that it may; who asks then is waited
// for by nobody, since the system's own message box does not end before it is answered. present is for who closes the window meanwhile.
func (c *closing) stays(apart bool, ask func() bool, quit, present func()) bool {
	if !c.mu.TryLock() {
		present() // it is already on the screen
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
