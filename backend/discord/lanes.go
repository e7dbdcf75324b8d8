package discord

import (
	"context"
	"sync"
)

// lanes run work in order: the work of a lane runs one after the other, and waits for no other lane.
type lanes[K comparable] struct {
	spawn func(func(context.Context)) // runs a lane until its work is done

	mu      sync.Mutex                    // protects the fields below
	waiting map[K][]func(context.Context) // a lane has a key while a goroutine runs it
}

func newLanes[K comparable](spawn func(func(context.Context))) *lanes[K] {
	return &lanes[K]{spawn: spawn, waiting: map[K][]func(context.Context){}}
}

// queue appends work to a lane, and returns at once.
func (l *lanes[K]) queue(lane K, work func(context.Context)) {
	l.mu.Lock()
	waiting, busy := l.waiting[lane]
	l.waiting[lane] = append(waiting, work)
	l.mu.Unlock()
	if !busy {
		l.spawn(func(ctx context.Context) { l.run(ctx, lane) })
	}
}

func (l *lanes[K]) run(ctx context.Context, lane K) {
	for {
		l.mu.Lock()
		waiting := l.waiting[lane]
		if len(waiting) == 0 || ctx.Err() != nil {
			delete(l.waiting, lane)
			l.mu.Unlock()
			return
		}
		l.waiting[lane] = waiting[1:]
		l.mu.Unlock()
		waiting[0](ctx)
	}
}
