package proxy

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	maxBacklog = 128 << 20       // bytes that may wait for an agent that does not read
	writeBatch = 64 << 10        // small waiting messages are written together up to this size
	exitGrace  = 2 * time.Second // for the end of a process whose pipe broke; only a process that lives on takes that long
)

// stdin is the queue in front of an agent's stdin. Callers never block on the pipe; a single goroutine writes.
type stdin struct {
	w       io.WriteCloser
	limit   int             // of the waiting bytes
	ended   <-chan struct{} // closed when the process has ended
	scratch []byte
	wake    chan struct{} // holds one token when run must look at the queue

	mu      sync.Mutex // protects the fields below
	queue   []outgoing
	waiting int   // bytes in the queue and being written
	failed  error // why no line is accepted any more
}

func newStdin(w io.WriteCloser, limit int, ended <-chan struct{}) *stdin {
	return &stdin{w: w, limit: limit, ended: ended, wake: make(chan struct{}, 1)}
}

// outgoing is a queued line. written is called once with the outcome, and must not block.
type outgoing struct {
	line    []byte // with its line end
	written func(error)
}

// put queues a line. An error means that the line was not accepted and written will not be called.
func (s *stdin) put(o outgoing) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if s.waiting > 0 && s.waiting+len(o.line) > s.limit {
		return ErrBacklog
	}
	s.waiting += len(o.line)
	s.queue = append(s.queue, o)
	s.nudge()
	return nil
}

// nudge makes run look at the queue. Every message needs a nudge, and a wakeup would allocate a channel for each.
func (s *stdin) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // run is going to look
	}
}

// run writes until the pipe fails or is closed.
func (s *stdin) run() {
	var spare []outgoing
	for {
		batch, ok := s.take(spare)
		if !ok {
			return
		}
		for rest := batch; len(rest) > 0; {
			n, size, err := s.write(rest)
			for _, o := range rest[:n] {
				o.written(err)
			}
			s.done(size, err)
			rest = rest[n:]
		}
		clear(batch)
		spare = batch[:0]
	}
}

// take waits for lines and returns them. The queue reuses spare, the emptied slice of the last batch.
func (s *stdin) take(spare []outgoing) ([]outgoing, bool) {
	for {
		s.mu.Lock()
		if s.failed != nil {
			s.mu.Unlock()
			return nil, false
		}
		if len(s.queue) > 0 {
			batch := s.queue
			s.queue = spare
			s.mu.Unlock()
			return batch, true
		}
		s.mu.Unlock()
		<-s.wake
	}
}

// write writes the first line, together with the following lines that fit into a single write.
func (s *stdin) write(lines []outgoing) (n, size int, err error) {
	buf := lines[0].line
	for n = 1; n < len(lines) && len(buf)+len(lines[n].line) <= writeBatch; n++ {
		if n == 1 {
			buf = append(s.scratch[:0], buf...)
		}
		buf = append(buf, lines[n].line...)
		s.scratch = buf
	}
	if _, err := s.w.Write(buf); err != nil {
		return n, len(buf), s.reason(err)
	}
	return n, len(buf), nil
}

// reason returns why a write failed. The pipe of a dying process breaks a moment before the process's end is known, and callers want to
// learn of the end.
func (s *stdin) reason(err error) error {
	if failed := s.failure(); failed != nil {
		return failed // of an earlier line: waiting once is enough
	}
	ended := await(s.ended, exitGrace)
	failed := s.failure()
	switch {
	case failed != nil:
		return failed
	case ended:
		return ErrExited
	default:
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
}

// failure returns why no line is accepted any more, or nil.
func (s *stdin) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *stdin) done(size int, err error) {
	s.mu.Lock()
	s.waiting -= size
	s.mu.Unlock()
	if err != nil {
		s.close(err)
	}
}

// close closes the pipe and fails the waiting lines. The first reason stays.
func (s *stdin) close(reason error) {
	s.mu.Lock()
	if s.failed != nil {
		s.mu.Unlock()
		return
	}
	s.failed = reason
	queue := s.queue
	s.queue = nil
	s.nudge()
	s.mu.Unlock()
	_ = s.w.Close() // ends a write that is under way
	for _, o := range queue {
		o.written(reason)
	}
}
