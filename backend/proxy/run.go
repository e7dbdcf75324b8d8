package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Ran is how a program of Run ended.
type Ran struct {
	Exit
	StderrTail string // as in Status
}

// Run runs a program that is no agent to its end: git, for example. The program is guarded like an agent, and all its descendants end
// with the program. in is its stdin; read reads its stdout, and is not waited for once all is over. The end of ctx, and a failure of
// read, end the program at once; their errors are returned. The program's own exit is no error. Close waits for runs, which their callers
// end.
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
		_, _ = p.Stdin().Write(in) // a program that does not read its input reports that by its exit
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
		_, _ = io.Copy(io.Discard, p.Stdout()) // the program must not wait for us
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
	_ = p.Stdin().Close() // an escaped process may hold the other end, and would keep the write waiting for ever
	work.Wait()
	return Ran{exit, said.text()}, errors.Join(context.Cause(ctx), left)
}

// endSoon gives a program grace to end by itself, and then ends the program.
func endSoon(p Process, ended <-chan struct{}, grace time.Duration) {
	if grace > 0 {
		p.Note()
		if !errors.Is(p.Terminate(), ErrNoSignal) {
			await(ended, grace)
		}
	}
	_ = p.Kill(killGrace) // the caller of Wait kills with more patience
}

// enter registers the caller with Close, which waits for the caller. enter returns false when the Set is closed.
func (s *Set) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}
