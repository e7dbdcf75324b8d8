package agents

import (
	"context"
	"sync"
)

// background runs the goroutines of a catalogue.
type background struct {
	life context.Context //nolint:containedctx // ends with stop, and every background job with it
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex // protects closed
	closed bool
}

func newBackground() *background {
	b := &background{}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// start runs f in a goroutine of b.work, and reports whether f runs: after stop f does not. f must end when b.life does.
func (b *background) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.work.Go(f)
	}
	return !b.closed
}

// stop ends b.life.
func (b *background) stop() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end()
}
