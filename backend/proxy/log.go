package proxy

import (
	"context"
	"io"
	"math"
	"sync"
	"time"
)

const (
	defaultLogBytes = 32 << 20
	entryOverhead   = 64        // the cost of an entry beside its bytes, which bounds a log of tiny messages, too
	batchBytes      = 256 << 10 // how much a Next returns at most, so that a reader makes room while working
	batchMessages   = 4096
	stallLimit      = 60 * time.Second
	deliverLimit    = 100 * time.Millisecond
)

// Message is an entry of a log. All readers share Data, which must not be changed.
type Message struct {
	Seq  uint64
	Data []byte
}

// pressure says what an append does when the log is full of messages that readers still need.
type pressure uint8

const (
	hold  pressure = iota // wait for the readers, the normal case
	spill                 // grow the log beyond its bound: the process is gone, and its pipe holds little
	yield                 // drop the messages and the slow readers: the instance is being removed; see Instance.End for another way
)

// messageLog is the bounded memory of a server_id. A single goroutine appends, any number read; no lock is held while either waits.
type messageLog struct {
	limit int64

	mu        sync.Mutex // protects the fields below
	entries   [][]byte   // the kept messages are entries[head:]
	head      int
	first     uint64 // number of the oldest kept message, or of the next message
	size      int64
	pressure  pressure
	closed    bool
	fullSince time.Time
	readers   map[*Reader]struct{}
	grown     wakeup // fired when readers have something to look at
	moved     wakeup // fired when the appender may have room
	caught    wakeup // fired when a reader has handled its messages, or is gone
}

func newLog(limit int64) *messageLog {
	if limit <= 0 {
		limit = defaultLogBytes
	}
	return &messageLog{limit: limit, first: 1, readers: map[*Reader]struct{}{}}
}

// append adds messages in order, and waits for room as long as the pressure says so. append calls taken, outside of the lock, each time
// some messages have been added, with the number of all added so far.
func (l *messageLog) append(batch [][]byte, taken func(n int)) {
	for n := 0; n < len(batch); {
		l.mu.Lock()
		n += l.takeLocked(batch[n:])
		var room <-chan struct{}
		var patience time.Duration
		if n < len(batch) {
			room = l.moved.wait()
			patience = l.patienceLocked()
		}
		l.mu.Unlock()
		taken(n)
		if room != nil {
			l.awaitRoom(room, patience)
		}
	}
}

// awaitRoom waits for readers to make room, and drops the readers that have had their time.
func (l *messageLog) awaitRoom(room <-chan struct{}, patience time.Duration) {
	began := time.Now()
	if !await(room, patience) {
		l.dropStalled(time.Since(began) - patience)
	}
}

// await reports whether c was closed within d.
func await(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// takeLocked adds the messages that find room, and returns their number.
func (l *messageLog) takeLocked(batch [][]byte) int {
	needed := l.neededLocked()
	for n, data := range batch {
		if !l.makeRoomLocked(int64(len(data))+entryOverhead, needed) {
			if l.fullSince.IsZero() {
				l.fullSince = time.Now()
			}
			if n > 0 {
				l.grown.fire()
			}
			return n
		}
		l.entries = append(l.entries, data)
		l.size += int64(len(data)) + entryOverhead
	}
	l.fullSince = time.Time{}
	l.grown.fire()
	return len(batch)
}

// neededLocked returns the oldest message that a reader still has to take, whether or not the message exists yet.
func (l *messageLog) neededLocked() uint64 {
	needed := uint64(math.MaxUint64)
	for r := range l.readers {
		needed = min(needed, r.next)
	}
	return needed
}

// endLocked returns the number of the next message.
func (l *messageLog) endLocked() uint64 { return l.first + uint64(len(l.entries)-l.head) }

// makeRoomLocked evicts old messages for a new message, and reports whether the new message may be added. An empty log takes any message:
// the newest message is always kept, however large.
func (l *messageLog) makeRoomLocked(cost int64, needed uint64) bool {
	for l.size+cost > l.limit && l.head < len(l.entries) {
		if l.first >= needed && l.pressure != yield {
			return l.pressure == spill
		}
		l.evictLocked()
	}
	return true
}

func (l *messageLog) evictLocked() {
	l.size -= int64(len(l.entries[l.head])) + entryOverhead
	l.entries[l.head] = nil
	l.head++
	l.first++
	if l.head > 1024 && l.head > len(l.entries)/2 {
		n := copy(l.entries, l.entries[l.head:])
		clear(l.entries[n:])
		l.entries, l.head = l.entries[:n], 0
	}
}

// patienceLocked returns how long the appender waits before it looks for stalled readers.
func (l *messageLog) patienceLocked() time.Duration {
	soonest := stallLimit
	now := time.Now()
	for r := range l.readers {
		if r.next <= l.first {
			soonest = min(soonest, l.idleSinceLocked(r).Add(stallLimit).Sub(now))
		}
	}
	return max(soonest, time.Millisecond)
}

// idleSinceLocked returns since when a reader has taken nothing from a full log.
func (l *messageLog) idleSinceLocked(r *Reader) time.Time {
	if r.tookAt.After(l.fullSince) {
		return r.tookAt
	}
	return l.fullSince
}

// dropStalled drops the readers that keep the log full and have taken nothing for the limit. late is by how much the call comes too late:
// a call that is much too late means that this process did not run, so that the readers could not run either; their time starts again.
func (l *messageLog) dropStalled(late time.Duration) {
	l.mu.Lock()
	if late > stallLimit/6 {
		l.fullSince = time.Now()
	}
	var stalled []*Reader
	for r := range l.readers {
		if r.next <= l.first && time.Since(l.idleSinceLocked(r)) >= stallLimit {
			stalled = append(stalled, r)
			l.dropLocked(r)
		}
	}
	l.mu.Unlock()
	stop(stalled)
}

func (l *messageLog) dropLocked(r *Reader) {
	r.dropped = true
	delete(l.readers, r)
	l.grown.fire()
	l.caught.fire()
}

// deliver waits until all readers have handled the messages that are in the log now, until the limit is over, or until ctx ends. A reader
// that has let a limit pass is not waited for again before its next Poll: each answer would be late because of a page that sleeps.
func (l *messageLog) deliver(ctx context.Context) {
	last := l.last()
	more := l.behind(last)
	if more == nil {
		return // usually nobody reads, or all are up to date, and need no timer
	}
	late := time.NewTimer(deliverLimit)
	defer late.Stop()
	for more != nil {
		select {
		case <-more:
			more = l.behind(last)
		case <-late.C:
			l.giveUp(last)
			return
		case <-ctx.Done():
			return
		}
	}
}

// giveUp marks the readers that have not handled the message seq.
func (l *messageLog) giveUp(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.readers {
		r.lagging = r.lagging || r.dealt < seq
	}
}

// behind returns nil when every reader that does not lag has handled the message seq, and otherwise a channel that is closed when a
// reader has moved.
func (l *messageLog) behind(seq uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.readers {
		if r.dealt < seq && !r.lagging {
			return l.caught.wait()
		}
	}
	return nil
}

// relieve changes the reaction to a full log.
func (l *messageLog) relieve(p pressure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pressure = max(l.pressure, p)
	l.moved.fire()
}

// resume prepares the log of an exited process for the next process.
func (l *messageLog) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pressure = hold
}

// last returns the number of the newest message; 0 before the first.
func (l *messageLog) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endLocked() - 1
}

// close ends all readers once they have read the kept messages.
func (l *messageLog) close() {
	l.mu.Lock()
	l.closed = true
	l.pressure = yield
	readers := make([]*Reader, 0, len(l.readers))
	for r := range l.readers {
		readers = append(readers, r)
	}
	l.grown.fire()
	l.moved.fire()
	l.mu.Unlock()
	stop(readers)
}

// after returns a reader of the messages newer than seq.
func (l *messageLog) after(seq uint64) *Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &Reader{log: l, next: seq + 1, tookAt: time.Now()}
	if r.next < l.first || seq >= l.endLocked() {
		r.next, r.gap = l.first, true
	}
	l.readers[r] = struct{}{}
	return r
}

// Reader reads a log. A Reader is for a single goroutine, and must be closed.
type Reader struct {
	log *messageLog

	// protected by log.mu
	next    uint64
	dealt   uint64 // newest message that the reader had taken at its last Poll
	lagging bool   // deliver has waited for the reader in vain since then
	gap     bool
	tookAt  time.Time
	dropped bool
	onStop  func()
}

// Gap reports whether the position after which the reader was to start is missing: too old, or ahead of the log. The reader then starts
// with the oldest kept message, or with the next message.
func (r *Reader) Gap() (oldest uint64, gap bool) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.next, r.gap
}

// OnStop sets a function that is called when the reader is dropped or its log has ended, for readers that may be blocked elsewhere then.
// The function must not block, and is not called after Close has returned.
func (r *Reader) OnStop(f func()) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.onStop = f
	if r.dropped || r.log.closed {
		f()
	}
}

// Working tells the log that the reader still handles its last messages. Working counts like taking a message.
func (r *Reader) Working() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.tookAt = time.Now()
}

// stop calls the functions of OnStop. The lock of the log protects the call, so that Close waits for the call.
func stop(readers []*Reader) {
	for _, r := range readers {
		r.log.mu.Lock()
		if r.onStop != nil {
			r.onStop()
		}
		r.log.mu.Unlock()
	}
}

// Next waits until there are newer messages and returns all of them, up to a few hundred kilobytes. Next fails with io.EOF when the
// instance was removed and everything was read, with ErrLagging when the reader was dropped, and with the context's error.
func (r *Reader) Next(ctx context.Context) ([]Message, error) {
	for {
		batch, more, err := r.Poll()
		if len(batch) > 0 || err != nil {
			return batch, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Poll is Next for callers that wait for other events as well: without new messages, Poll returns a channel that is closed when a new
// Poll is worthwhile.
func (r *Reader) Poll() (batch []Message, more <-chan struct{}, err error) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	r.lagging = false
	if r.dealt != r.next-1 {
		r.dealt = r.next - 1
		l.caught.fire()
	}
	if r.dropped || r.next < l.first {
		return nil, nil, ErrLagging
	}
	end := l.endLocked()
	if r.next == end {
		if l.closed {
			return nil, nil, io.EOF
		}
		return nil, l.grown.wait(), nil
	}
	batch = make([]Message, 0, min(end-r.next, batchMessages))
	for size := 0; r.next < end && size < batchBytes && len(batch) < batchMessages; r.next++ {
		data := l.entries[l.head+int(r.next-l.first)]
		batch = append(batch, Message{Seq: r.next, Data: data})
		size += len(data)
	}
	r.tookAt = time.Now()
	l.moved.fire()
	return batch, nil, nil
}

// Close closes the reader. The agent no longer waits for the reader.
func (r *Reader) Close() {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.readers, r)
	r.dropped = true
	r.onStop = nil
	l.moved.fire()
	l.caught.fire()
}

// wakeup wakes all its waiters. A wakeup has no lock of its own, and costs nothing while nobody waits.
type wakeup struct{ c chan struct{} }

func (s *wakeup) wait() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *wakeup) fire() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}
