package remote

import (
	"context"
	"encoding/json"
	"time"

	"deskhand/backend/acp"
)

// Message is a message of the agent. Seq is its number in the runtime's log.
type Message struct {
	Seq  uint64
	Data []byte
}

// GapError says that the messages between After and Next are lost.
type GapError struct{ After, Next uint64 }

func (*GapError) Error() string { return "messages of the agent are lost" }

// DoubtError says that nobody knows whether the agent has received a request.
type DoubtError struct{ Method string }

func (*DoubtError) Error() string { return "it is not known whether the agent has got a request" }

// item is an element of the queue: a message, or an error between two messages.
type item struct {
	Message
	err error
}

func (it item) cost() int { return len(it.Data) + itemBytes }

// inbox holds the messages that came over the line and that Next has not returned. The lock of the instance protects an inbox.
type inbox struct {
	queue []item
	size  int
	last  uint64 // number of the last message taken from the line
	hole  uint64 // number of the first missing message at the last hole
	count uint64 // how many messages came over the line
	full  bool   // the queue is full, so messages wait in the line
}

func (b *inbox) put(it item) {
	b.queue = append(b.queue, it)
	b.size += it.cost()
}

// accept notes that the line has brought message n, and returns its number. A repeated message is not fresh.
func (b *inbox) accept(n uint64) (number uint64, fresh bool, err error) {
	switch {
	case n == 0:
		n = b.last // the runtime does not count
	case n <= b.last:
		return n, false, nil
	case n > b.last+1 && b.hole != b.last+1:
		b.hole = b.last + 1 // ask once more, as a runtime may skip messages for a slow reader and still hold them
		return n, false, errHole
	case n > b.last+1:
		b.put(item{err: &GapError{b.last, n}})
	}
	b.last = n
	b.count++
	return n, true, nil
}

// next removes the messages from the queue that Next returns at once, or the error that stands before them.
func (b *inbox) next() (batch []Message, err error, some bool) {
	if len(b.queue) == 0 {
		return nil, nil, false
	}
	n, size := 0, 0
	for n < len(b.queue) && n < batchLimit && size < batchBytes && b.queue[n].err == nil {
		batch = append(batch, b.queue[n].Message)
		size += b.queue[n].cost()
		n++
	}
	if n == 0 {
		n, size, err = 1, b.queue[0].cost(), b.queue[0].err
	}
	clear(b.queue[:n]) // frees the taken messages; the rest is not moved, because many gaps are taken one by one
	if b.queue = b.queue[n:]; len(b.queue) == 0 {
		b.queue = nil
	}
	b.size -= size
	return batch, err, true
}

// Next waits for messages and returns them. After a *GapError or *DoubtError, which stands between messages, the next call goes on; any
// other error is the end.
func (i *Instance) Next(ctx context.Context) ([]Message, error) {
	for {
		i.mu.Lock()
		batch, err, some := i.inbox.next()
		if some {
			i.changedLocked() // there may be room for messages that wait in the line
		}
		final, changed := i.final, i.changed
		i.mu.Unlock()
		switch {
		case some:
			return batch, err
		case final != nil:
			return nil, final
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// skip notes that the runtime holds no message before oldest. A runtime that counts anew holds only new messages. skip waits for room as
// enqueue does.
func (i *Instance) skip(ctx context.Context, oldest uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.putLocked(item{err: &GapError{i.inbox.last, oldest}})
	i.inbox.last = max(oldest, 1) - 1
	i.awaitRoomLocked(ctx)
}

// enqueue takes a message from the line. enqueue waits while the queue is full.
func (i *Instance) enqueue(ctx context.Context, n uint64, e event) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	n, fresh, err := i.inbox.accept(n)
	if !fresh {
		return err
	}
	i.line.heard = time.Now()
	switch {
	case e.tooBig:
		i.inbox.put(item{err: &GapError{n - 1, n + 1}})
	case i.fresh(e.data):
		i.inbox.put(item{Message: Message{n, e.data}})
	}
	i.changedLocked()
	i.awaitRoomLocked(ctx)
	return nil
}

// awaitRoomLocked waits while the queue is full.
func (i *Instance) awaitRoomLocked(ctx context.Context) {
	if i.inbox.size <= queueBytes {
		return
	}
	i.inbox.full = true
	defer func() {
		i.inbox.full, i.line.heard = false, time.Now() // reading of the line resumes here
		i.changedLocked()
	}()
	for i.inbox.size > queueBytes && ctx.Err() == nil {
		changed := i.changed
		i.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		i.mu.Lock()
	}
}

// fresh reports whether a message from the line belongs in the queue. A response that its POST has brought already does not. fresh also
// notes responses and the exit of the agent.
func (i *Instance) fresh(data []byte) bool {
	e, err := acp.Peek(data)
	switch {
	case err != nil:
	case e.Kind == acp.Response:
		return i.calls.respond(e.Key())
	case e.Kind == acp.Notification && e.Method() == "_adapter/agent_exited":
		var m struct {
			Params struct {
				Code       *int   `json:"code"`
				Signal     string `json:"signal"`
				StderrTail string `json:"stderrTail"`
			} `json:"params"`
		}
		_ = json.Unmarshal(data, &m) // a malformed message leaves the exit unknown
		i.exit = Exit{true, m.Params.Code, m.Params.Signal, m.Params.StderrTail}
	}
	return true
}

func (i *Instance) putLocked(it item) {
	i.inbox.put(it)
	i.changedLocked()
}

func (i *Instance) came() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.inbox.count
}
