package agents

import (
	"context"
	"strings"
	"sync"
	"time"

	"deskhand/backend/background"
	"deskhand/backend/probe"
	"deskhand/backend/proxy"
)

// Time limits of asking. Claude's session/new has taken 19 s; the end of the process is noticed at once.
const (
	askLimit = 90 * time.Second
	// A failure is asked again after a while: a login may have cured the cause.
	failureLife = 30 * time.Second
)

// answer holds an agent's answer, perhaps still awaited.
type answer struct {
	done  chan struct{}
	at    time.Time // valid once done is closed, like offer and err
	offer probe.Offer
	err   error
}

// old reports whether the answer must be asked again.
func (a *answer) old(fresh bool) bool {
	select {
	case <-a.done:
		return fresh || a.err != nil && time.Since(a.at) > failureLife
	default:
		return false // an awaited answer is fresh
	}
}

// offers asks agents for their offers, and keeps the answers.
type offers struct {
	launcher   *launcher
	background *background.Group
	notes      *loginNotes
	asking     chan struct{} // a slot for each agent that is asked

	mu      sync.Mutex         // protects answers
	answers map[string]*answer // by entry.key
}

// of asks an agent for its offer, or returns the earlier answer. Concurrent callers for the same agent share the answer.
func (o *offers) of(ctx context.Context, e entry, at place, fresh bool) (probe.Offer, error) {
	cmd := o.launcher.command(ctx, e, at, "")
	if ctx.Err() != nil {
		return probe.Offer{}, ctx.Err() // cmd may lack values
	}
	key := e.key(at)
	o.mu.Lock()
	a := o.answers[key]
	if a == nil || a.old(fresh) {
		a = &answer{done: make(chan struct{})}
		if !o.background.Start(func() { o.answer(a, e, at, cmd) }) { //nolint:contextcheck // other callers may wait for the answer too
			o.mu.Unlock()
			return probe.Offer{}, ErrClosed
		}
		o.answers[key] = a
	}
	o.mu.Unlock()
	select {
	case <-a.done:
		return a.offer, a.err
	case <-ctx.Done():
		return probe.Offer{}, ctx.Err()
	}
}

// answer asks the agent as soon as a slot is free.
func (o *offers) answer(a *answer, e entry, at place, cmd proxy.Command) {
	defer close(a.done)
	select {
	case o.asking <- struct{}{}:
		defer func() { <-o.asking }()
	case <-o.background.Life().Done():
		a.err = ErrClosed
		return
	}
	ctx, cancel := context.WithTimeout(o.background.Life(), askLimit)
	defer cancel()
	a.offer, a.err = o.launcher.ask(ctx, e, cmd, true)
	o.notes.note(e, at, a.err)
	a.at = time.Now()
}

// forget forgets the answers of an agent.
func (o *offers) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, a := range o.answers {
		select {
		case <-a.done:
			if strings.HasPrefix(key, id+"\x00") {
				delete(o.answers, key)
			}
		default: // an awaited answer is fresh
		}
	}
}
