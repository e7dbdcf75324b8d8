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
	entryOverhead   = 64        // what an entry costs beside its bytes; keeps a log of tiny messages bounded too
	batchBytes      = 256 << 10 // how much one Next hands out, so that a reader makes room while it works
	batchMessages   = 4096
	stallLimit      = 60 * time.Second
	deliverLimit    = 100 * time.Millisecond
)

// Message is one entry of a log. Data is shared by all readers: do not change it.
type Message struct {
	Seq  uint64
	Data []byte
}

// pressure is what happens to an append that finds the log full of messages that readers still need.
type pressure uint8

const (
	hold  pressure = iota // it waits for the readers: normal life
	spill                 // the log grows beyond its bound: the process is gone, and what its pipe held is little
	yield                 // the messages go, and so do the readers that lag: the instance is being removed, see Instance.End for another way
)

// messageLog is the bounded memory of one server_id. One goroutine appends, any number read; no lock is held while either waits.
type messageLog struct {
	limit int64

	mu        sync.Mutex // protects the fields below
	entries   [][]byte   // held messages are entries[head:]
	head      int
	first     uint64 // number of the oldest held message, or of the next one when none is held
	size      int64
	pressure  pressure
	closed    bool
	fullSince time.Time
	readers   map[*Reader]struct{}
	grown     wakeup // fired when readers have something to look at
	moved     wakeup // fired when the appender may have room
	caught    wakeup // fired when a reader has dealt with what it took, or is gone
}

func newLog(limit int64) *messageLog {
	if limit <= 0 {
		limit = defaultLogBytes
	}
	return &messageLog{limit: limit, first: 1, readers: map[*Reader]struct{}{}}
}

// append adds messages in order, and waits for room as long as the pressure says so. taken is called outside of the lock each time
// that some are in the log, with the number of all that are.
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

// awaitRoom waits for readers to make room, and drops those that have had their time.
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

// takeLocked adds what finds room and returns how many messages that were.
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

// neededLocked is the oldest message that a reader still has to take, may it be held already or not.
func (l *messageLog) neededLocked() uint64 {
	needed := uint64(math.MaxUint64)
	for r := range l.readers {
		needed = min(needed, r.next)
	}
	return needed
}

// endLocked is the number that the next message gets.
func (l *messageLog) endLocked() uint64 { return l.first + uint64(len(l.entries)-l.head) }

// makeRoomLocked evicts old messages for a new one, and reports whether it may be added. An empty log takes anything: the newest
// message is always kept, however large.
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

// patienceLocked is how long the appender waits before it looks for stalled readers.
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

// idleSinceLocked is since when a reader has taken nothing of a full log.
func (l *messageLog) idleSinceLocked(r *Reader) time.Time {
	if r.tookAt.After(l.fullSince) {
		return r.tookAt
	}
	return l.fullSince
}

// dropStalled drops the readers that hold the log full and have taken nothing for the limit. It is told by how much it comes too
// late: that it comes much too late means that we did not run, and neither could they; their time starts again.
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

// deliver waits until all readers have dealt with what is in the log now, or the limit is over, or ctx is. Readers that have let a
// limit pass are not waited for again before they come back: each answer would be late for the sake of a page that sleeps.
func (l *messageLog) deliver(ctx context.Context) {
	last := l.last()
	more := l.behind(last)
	if more == nil {
		return // most often nobody reads, or all are up to date: no timer for them
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

// giveUp marks the readers that have not dealt with the message seq.
func (l *messageLog) giveUp(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.readers {
		r.lagging = r.lagging || r.dealt < seq
	}
}

// behind is nil when every reader that does not lag has dealt with the message seq, else a channel that is closed once it is worth
// asking again.
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

// relieve changes what a full log does.
func (l *messageLog) relieve(p pressure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pressure = max(l.pressure, p)
	l.moved.fire()
}

// resume puts the log of an exited process to use for the next one.
func (l *messageLog) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pressure = hold
}

// last is the number of the newest message; 0 before the first.
func (l *messageLog) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endLocked() - 1
}

// close ends all readers once they have read what is there.
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

// after makes a reader of everything that is newer than seq.
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

// Reader reads one log. It is for one goroutine, and must be closed.
type Reader struct {
	log *messageLog

	// protected by log.mu
	next    uint64
	dealt   uint64 // the newest message that it had taken when it came back for more
	lagging bool   // deliver has waited for it in vain since then
	gap     bool
	tookAt  time.Time
	dropped bool
	onStop  func()
}

// Gap reports whether the position that the reader was asked to start after is not there: too old, or ahead of the log. The reader
// starts with the oldest message that is held, or that will come, then.
func (r *Reader) Gap() (oldest uint64, gap bool) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.next, r.gap
}

// OnStop sets a function that is called when the reader is dropped or its log has ended, for readers that may be blocked elsewhere
// then. It must not block, and is not called after Close has returned.
func (r *Reader) OnStop(f func()) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.onStop = f
	if r.dropped || r.log.closed {
		f()
	}
}

// Working tells the log that the reader still gets on with what it took last. It counts like taking something.
func (r *Reader) Working() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.tookAt = time.Now()
}

// stop tells readers that they have ended. Their own lock protects the call, so that Close waits for it.
func stop(readers []*Reader) {
	for _, r := range readers {
		r.log.mu.Lock()
		if r.onStop != nil {
			r.onStop()
		}
		r.log.mu.Unlock()
	}
}

// Next waits until there is something newer and returns all of it, up to a few hundred kilobytes. It fails with io.EOF when the
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

// Poll is Next for those who wait for other things as well: when there is nothing, it returns a channel that is closed once it is
// worth asking again.
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

// Close gives the reader up. The agent no longer waits for it.
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

// wakeup wakes all that wait for it. It has no lock of its own, and costs nothing while nobody waits.
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
