package session

import (
	"context"
	"errors"

	"deskhand/backend/proxy"
	"deskhand/backend/remote"
)

// transport is how the agent of one generation is reached: by its instance on this machine (here), or by that of a runtime elsewhere
// (there, in place.go). Send is called by one goroutine, and so is Next of a reader; the rest by any.
type transport interface {
	// Send returns when the agent, or the runtime it runs in, has the message. Its answer comes with what is read.
	Send(ctx context.Context, msg []byte) error
	// After reads what the agent says from the message after seq on: what is held, then what comes.
	After(seq uint64) reader
	Status() proxy.Status
	// Problem is why it is gone where that is not the end of its process: a code, and what its text needs.
	Problem() (code string, params map[string]string)
	// Interrupt sends SIGINT, where there is a way to; else proxy.ErrNoSignal.
	Interrupt() error
	// Close ends the agent's process and everything that it started.
	Close() error
}

// reader is one reading of what an agent says.
type reader interface {
	// Next waits for messages. A *gapError tells that some before the next are lost; the reader goes on after it.
	Next(ctx context.Context) ([]proxy.Message, error)
	// Working tells that what Next gave last is still being dealt with.
	Working()
	Close()
}

// here is an agent on this machine.
type here struct{ *proxy.Instance }

// Close loses nothing of what the agent says until it is gone: a cancel that was not heeded ends here too, and its turn is read to its end.
func (h here) Close() error { return h.End() }

func (h here) After(seq uint64) reader {
	return &hereReader{Reader: h.Instance.After(seq), inst: h.Instance, last: seq}
}
func (here) Problem() (string, map[string]string) { return "", nil }

// hereReader is the reading of an agent on this machine. Dropped, which happens when somebody else removes the instance, it goes on with
// what is held. What is lost between two messages shows in their numbers.
type hereReader struct {
	*proxy.Reader
	inst *proxy.Instance
	last uint64          // of the messages that it gave
	held []proxy.Message // what follows on a gap
}

func (r *hereReader) Next(ctx context.Context) ([]proxy.Message, error) {
	batch := r.held
	r.held = nil
	for len(batch) == 0 {
		var err error
		batch, err = r.Reader.Next(ctx)
		if errors.Is(err, proxy.ErrLagging) {
			r.Close()
			r.Reader = r.inst.After(r.last)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	if next := batch[0].Seq; next > r.last+1 {
		gap := &gapError{remote.GapError{After: r.last, Next: next}}
		r.last, r.held = next-1, batch
		return nil, gap
	}
	r.last = batch[len(batch)-1].Seq
	return batch, nil
}
