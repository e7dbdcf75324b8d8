package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Ran is how a program ended that was run to its end.
type Ran struct {
	Exit
	StderrTail string // as of Status
}

// Run runs a program that is no agent to its end: git, for one. It is watched over like an agent, and all that it started ends with it.
// It is given in as its stdin; read reads its stdout, and is not waited for once all is over. The end of ctx, and a failure of read,
// end the program at once; their errors are returned. How the program itself ended is no error. Close waits for runs: their callers
// end them.
func (s *Set) Run(ctx context.Context, cmd Command, in []byte, read func(io.Reader) error) (Ran, error) {
	if !s.enter() {
		return Ran{}, ErrClosed
	}
	defer s.work.Done()
	if err := ctx.Err(); err != nil {
		return Ran{}, err
	}
	p, err := s.startProcess(cmd)
	if err != nil {
		return Ran{}, fmt.Errorf("%w: %w", ErrSpawn, err)
	}
	defer s.guard.ended(p)
	defer s.show(p, cmd)()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		_, _ = p.Stdin().Write(in) // who does not read it tells so by its exit
		_ = p.Stdin().Close()
	})
	var said tail
	work.Go(func() {
		buf := make([]byte, 4<<10)
		for {
			n, err := p.Stderr().Read(buf)
			said.write(buf[:n])
			if err != nil {
				return
			}
		}
	})
	work.Go(func() {
		if err := read(p.Stdout()); err != nil {
			cancel(err)
		}
		_, _ = io.Copy(io.Discard, p.Stdout()) // it must not wait for us
	})
	work.Go(func() {
		select {
		case <-ctx.Done():
			endSoon(p, ended, cmd.Grace)
		case <-ended:
		}
	})
	exit := p.Wait()
	close(ended)
	left := p.Kill(reapPatience)
	p.Settle()
	_ = p.Stdin().Close() // what has got away may hold the other end, and would have us write for ever
	work.Wait()
	return Ran{exit, said.text()}, errors.Join(context.Cause(ctx), left)
}

// endSoon has a program end by itself, where it is given the time, and else ends it.
func endSoon(p Process, ended <-chan struct{}, grace time.Duration) {
	if grace > 0 {
		p.Note()
		if !errors.Is(p.Terminate(), ErrNoSignal) {
			await(ended, grace)
		}
	}
	_ = p.Kill(killGrace) // who waits for it kills it with more patience
}

// enter takes the caller for one of those that Close waits for, unless the Set is closed.
func (s *Set) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}
