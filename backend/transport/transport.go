// Package transport hides how the messages of an agent's process are read and sent: of a process on this machine, and, by the packages that
// have further transports, of one elsewhere or of a part of a process.
package transport

import (
	"context"
	"errors"

	"deskhand/backend/proxy"
	"deskhand/backend/remote"
)

// Transport reaches the agent of one generation. One goroutine calls Send, and one calls Next of a reader; any goroutine may call the other methods.
type Transport interface {
	// Send returns when the agent, or the agent's runtime, has the message. The agent's answer comes from the reader.
	Send(ctx context.Context, msg []byte) error
	// After reads the agent's messages after number seq: first those of the log, then new messages as they come.
	After(seq uint64) Reader
	Status() proxy.Status
	// Problem returns why the agent is gone when the agent's process has not ended: a code, and the parameters of the code's text.
	Problem() (code string, params map[string]string)
	// Interrupt sends SIGINT. Interrupt returns proxy.ErrNoSignal where signals cannot be sent.
	Interrupt() error
	// Close ends the agent's process and every process that the agent started.
	Close() error
}

// Reader reads the messages of an agent.
type Reader interface {
	// Next waits for messages. A *GapError means that messages before the next one are lost; Next may be called again after a gap.
	Next(ctx context.Context) ([]proxy.Message, error)
	// Working tells the log that the last batch of Next is still being handled, so that the log waits for this reader.
	Working()
	Close()
}

// Local reaches an agent on this machine.
type Local struct{ *proxy.Instance }

// Close keeps every message that the agent writes before its end, so that the last messages of a killed agent are read too.
func (h Local) Close() error { return h.End() }

// After is that of Transport.
func (h Local) After(seq uint64) Reader {
	return &localReader{Reader: h.Instance.After(seq), inst: h.Instance, last: seq}
}

// Problem returns no problem: the process itself tells how it ended.
func (Local) Problem() (string, map[string]string) { return "", nil }

// localReader reads the log of an instance on this machine. When the log drops the reader, as at a removal of the instance, the reader goes
// on with the messages that the log holds. A gap between the numbers of two messages shows a loss.
type localReader struct {
	*proxy.Reader
	inst *proxy.Instance
	last uint64          // number of the last message that Next returned
	held []proxy.Message // messages after a gap, for the next call
}

func (r *localReader) Next(ctx context.Context) ([]proxy.Message, error) {
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
		gap := &GapError{GapError: remote.GapError{After: r.last, Next: next}}
		r.last, r.held = next-1, batch
		return nil, gap
	}
	r.last = batch[len(batch)-1].Seq
	return batch, nil
}

// GapError reports that messages of an agent are lost: the runtime, or here the log, no longer holds them, or has begun to count anew.
type GapError struct{ remote.GapError }
