package agents

import "sync/atomic"

// News is an event of an installation, for the callback of Watch.
type News struct {
	Agent string
	Progress
	Ended bool  // the installation is over, and has left nothing behind unless it succeeded
	Err   error // why the installation failed; ErrCancelled is among the reasons
	Aside bool  // no installation: another fact about the agent changed; Ended is set too
}

// announcer calls the callback of Watch.
type announcer struct{ watch atomic.Pointer[func(News)] }

func (a *announcer) announce(n News) {
	if f := a.watch.Load(); f != nil {
		(*f)(n)
	}
}
