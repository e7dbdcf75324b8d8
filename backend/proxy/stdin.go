package proxy

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	maxBacklog = 128 << 20       // bytes that may wait for an agent that does not read
	writeBatch = 64 << 10        // small messages that wait together are written together
	exitGrace  = 2 * time.Second // for the end of a process whose pipe broke: only one that lives on without it takes that long
)

// stdin is the queue in front of an agent's stdin. Callers never block on the pipe; one goroutine writes.
type stdin struct {
	w       io.WriteCloser
	limit   int             // of the bytes that wait
	ended   <-chan struct{} // closed when the process has ended
	scratch []byte
	wake    chan struct{} // of one: holds a token when run has something to look at

	mu      sync.Mutex // protects the fields below
	queue   []outgoing
	waiting int   // bytes in the queue and under way
	failed  error // why nothing is taken any more
}

func newStdin(w io.WriteCloser, limit int, ended <-chan struct{}) *stdin {
	return &stdin{w: w, limit: limit, ended: ended, wake: make(chan struct{}, 1)}
}

// outgoing is one line on its way. written is told the outcome, once, and must not block.
type outgoing struct {
	line    []byte // with its line end
	written func(error)
}

// put queues a line. An error means that the line was not taken and written will not be called.
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

// nudge makes run look. It costs every message one of these, and a wakeup would cost it a channel as well.
func (s *stdin) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it is going to look
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

// take waits for lines and gives the emptied slice of the last batch back to the queue.
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

// write writes the first of the lines, and those behind it that fit into one write with it.
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

// reason says why a write failed. The pipe of a process that dies breaks a moment before its end is known, and the end is what the
// caller wants to hear of.
func (s *stdin) reason(err error) error {
	if failed := s.failure(); failed != nil {
		return failed // of a line before: one wait is enough for all
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

// failure is why nothing is taken any more; nil when it is.
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

// close closes the pipe and fails what waits in the queue. The first reason stays.
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
