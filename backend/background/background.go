// Package background owns goroutines that outlive the call which began them: none starts after Stop, all are told to end, and Wait returns
// when the last has ended.
package background

import (
	"context"
	"sync"
)

// A Group is the goroutines of one owner. Any number of goroutines may use a Group.
type Group struct {
	life context.Context //nolint:containedctx // ends with Stop, and every goroutine of the group with it
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex // protects closed
	closed bool
}

// New returns a Group without goroutines.
func New() *Group {
	g := &Group{}
	g.life, g.end = context.WithCancel(context.Background())
	return g
}

// Life returns the context that ends with Stop.
func (g *Group) Life() context.Context { return g.life }

// Stopped reports whether Stop was called.
func (g *Group) Stopped() bool { return g.life.Err() != nil }

// Start runs f in a goroutine of the group, and reports whether f runs: after Refuse or Stop f does not. f must end when Life does.
func (g *Group) Start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.work.Go(f)
	}
	return !g.closed
}

// Call returns a context for a call of someone else, which ends with ctx and with the group. The caller must call release at the end of
// the call.
func (g *Group) Call(ctx context.Context) (call context.Context, release context.CancelFunc) {
	call, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.life, cancel)
	return call, func() { stop(); cancel() }
}

// Refuse has Start refuse. What runs goes on.
func (g *Group) Refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Stop has Start refuse, and ends Life.
func (g *Group) Stop() {
	g.Refuse()
	g.end()
}

// Wait returns when no goroutine of the group runs.
func (g *Group) Wait() { g.work.Wait() }
