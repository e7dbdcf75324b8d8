package session

import (
	"context"

	"deskhand/backend/proxy"
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
	// Interrupt sends SIGINT, where there is a way to; else errNoSignal.
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

func (h here) After(seq uint64) reader            { return h.Instance.After(seq) }
func (here) Problem() (string, map[string]string) { return "", nil }
