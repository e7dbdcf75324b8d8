package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/testkit"
)

// fill appends n messages of size bytes, and blocks when the log does.
func fill(l *messageLog, n, size int) {
	for range n {
		l.append([][]byte{make([]byte, size)}, func(int) {})
	}
}

func seqs(t *testing.T, r *Reader) []uint64 {
	t.Helper()
	var all []uint64
	for {
		batch, _, err := r.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if len(batch) == 0 {
			return all
		}
		for _, m := range batch {
			all = append(all, m.Seq)
		}
	}
}

const kib = 1024 - entryOverhead // a message that costs 1 KiB

func TestLogIsBoundedInBytes(t *testing.T) {
	l := newLog(10 << 10)
	fill(l, 100, kib)
	r := l.after(0)
	defer r.Close()
	if oldest, gap := r.Gap(); !gap || oldest != 91 {
		t.Errorf("Gap: got %v, oldest %d, want true, 91", gap, oldest)
	}
	if got := seqs(t, r); len(got) != 10 || got[0] != 91 || got[9] != 100 {
		t.Errorf("kept messages: got %v, want 91 to 100", got)
	}
	big := newLog(10 << 10)
	fill(big, 5, kib)
	fill(big, 1, 1<<20)
	if got := seqs(t, big.after(0)); len(got) != 1 || got[0] != 6 {
		t.Errorf("kept messages beside one larger than the log: got %v, want 6 alone", got)
	}
	tiny := newLog(10 << 10)
	fill(tiny, 10_000, 0)
	if len(tiny.entries)-tiny.head > 200 {
		t.Errorf("kept empty messages: got %d, want 200 at most", len(tiny.entries)-tiny.head)
	}
}

func TestGapIsReported(t *testing.T) {
	l := newLog(10 << 10)
	for _, c := range []struct {
		after uint64
		gap   bool
		next  uint64
	}{{0, false, 1}, {1, true, 1}, {99, true, 1}} {
		r := l.after(c.after)
		if next, gap := r.Gap(); gap != c.gap || next != c.next {
			t.Errorf("Gap of an empty log, after %d: got %v, next %d, want %v, %d", c.after, gap, next, c.gap, c.next)
		}
		r.Close()
	}
	fill(l, 20, kib)
	for _, c := range []struct {
		after uint64
		gap   bool
		next  uint64
	}{{0, true, 11}, {9, true, 11}, {10, false, 11}, {15, false, 16}, {20, false, 21}, {21, true, 11}, {1 << 63, true, 11}, {^uint64(0), true, 11}} {
		r := l.after(c.after)
		if next, gap := r.Gap(); gap != c.gap || next != c.next {
			t.Errorf("Gap after %d: got %v, next %d, want %v, %d", c.after, gap, next, c.gap, c.next)
		}
		r.Close()
	}
}

func TestAppendWaitsForReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(10 << 10)
		r := l.after(0)
		defer r.Close()
		var done sync.WaitGroup
		done.Go(func() { fill(l, 10_000, kib) })
		next := uint64(1)
		for next <= 10_000 {
			time.Sleep(59 * time.Second) // slow, but takes a message every minute
			batch, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range batch {
				if m.Seq != next {
					t.Fatalf("got %d, want %d", m.Seq, next)
				}
				next++
			}
		}
		done.Wait()
	})
}

func TestOnlyStalledReaderIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(10 << 10)
		stalled, reading := l.after(0), l.after(0)
		stopped := false
		stalled.OnStop(func() { stopped = true })
		start := time.Now()
		var appender sync.WaitGroup
		appender.Go(func() { fill(l, 100, kib) })
		next := uint64(1)
		for next <= 100 {
			batch, err := reading.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if batch[0].Seq != next {
				t.Fatalf("got %d, want %d", batch[0].Seq, next)
			}
			next += uint64(len(batch))
		}
		appender.Wait()
		if waited := time.Since(start); waited != stallLimit {
			t.Errorf("time until the drop: got %v, want %v", waited, stallLimit)
		}
		if _, err := stalled.Next(t.Context()); !errors.Is(err, ErrLagging) || !stopped {
			t.Errorf("stalled reader: got error %v, stopped %v, want ErrLagging, stopped", err, stopped)
		}
		stalled.Close()
		reading.Close()
	})
}

// A process that was stopped, or a machine that slept, wakes up with the readers' time used up. The readers get new time: they could not
// have read.
func TestReaderIsNotDroppedAfterSleep(t *testing.T) {
	l := newLog(10 << 10)
	r := l.after(0)
	defer r.Close()
	fill(l, 10, kib)
	l.mu.Lock()
	r.tookAt = time.Now().Add(-time.Hour)
	l.fullSince = time.Now().Add(-time.Hour)
	l.mu.Unlock()
	l.dropStalled(time.Hour - time.Minute)
	l.mu.Lock()
	if patience := l.patienceLocked(); r.dropped || patience < stallLimit-time.Second {
		t.Errorf("reader after a sleep: got dropped %v, patience %v, want a whole limit", r.dropped, patience)
	}
	l.fullSince = time.Now().Add(-stallLimit)
	l.mu.Unlock()
	l.dropStalled(time.Millisecond)
	if _, err := r.Next(t.Context()); !errors.Is(err, ErrLagging) {
		t.Errorf("reader after its minute: got error %v, want ErrLagging", err)
	}
}

func TestIdleReaderOfLogWithRoomIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(10 << 10)
		r := l.after(0)
		defer r.Close()
		fill(l, 5, kib)
		time.Sleep(24 * time.Hour)
		var appender sync.WaitGroup
		appender.Go(func() { fill(l, 20, kib) })
		time.Sleep(59 * time.Second) // the minute starts when the log is full
		if got := seqs(t, r); got[0] != 1 {
			t.Errorf("first message of an idle reader: got %v, want 1", got)
		}
		appender.Wait()
	})
}

func TestCloseOfReaderFreesAppender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(10 << 10)
		r := l.after(0)
		start := time.Now()
		var appender sync.WaitGroup
		appender.Go(func() { fill(l, 100, kib) })
		time.Sleep(time.Second)
		r.Close()
		appender.Wait()
		if time.Since(start) != time.Second {
			t.Errorf("wait of the appender: got %v, want 1s", time.Since(start))
		}
	})
}

func TestDeliverWaitsForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(0)
		var begin time.Time
		deliver := func(ctx context.Context) <-chan struct{} {
			begin = time.Now()
			done := make(chan struct{})
			go func() {
				l.deliver(ctx)
				close(done)
			}()
			synctest.Wait()
			return done
		}
		fill(l, 3, kib)
		if !isClosed(deliver(t.Context())) {
			t.Error("it waits, and nobody reads")
		}
		r := l.after(0)
		if _, _, err := r.Poll(); err != nil {
			t.Fatal(err)
		}
		done := deliver(t.Context())
		if isClosed(done) {
			t.Error("it does not wait for a reader that has taken the messages and not come back")
		}
		fill(l, 1, kib) // deliver does not wait for it
		if _, _, err := r.Poll(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !isClosed(done) || time.Since(begin) != 0 {
			t.Error("it waits on when the reader has come back")
		}
		done = deliver(t.Context())
		r.Close()
		synctest.Wait()
		if !isClosed(done) || time.Since(begin) != 0 {
			t.Error("it waits for a reader that is closed")
		}
		lagging := l.after(0)
		defer lagging.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done = deliver(ctx)
		cancel()
		synctest.Wait()
		if !isClosed(done) {
			t.Error("it waits on when its context is over")
		}
		done = deliver(t.Context())
		time.Sleep(deliverLimit - 1)
		synctest.Wait()
		if isClosed(done) {
			t.Error("it does not wait for a reader that lags")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !isClosed(done) {
			t.Error("it waits for ever for a reader that lags")
		}
	})
}

// A lagging reader costs a single caller the limit: until the reader returns, no other caller waits for the reader.
func TestDeliverGivesLaggardUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(0)
		fill(l, 1, kib)
		stalled, reads := l.after(0), l.after(0)
		defer stalled.Close()
		defer reads.Close()
		poll := func(r *Reader) {
			if _, _, err := r.Poll(); err != nil {
				t.Fatal(err)
			}
		}
		poll(stalled)
		poll(reads)
		poll(reads) // the reader has returned
		took := func() time.Duration {
			begin := time.Now()
			l.deliver(t.Context())
			return time.Since(begin)
		}
		if got := took(); got != deliverLimit {
			t.Errorf("first deliver: got a wait of %v, want %v", got, deliverLimit)
		}
		fill(l, 1, kib)
		poll(reads)
		poll(reads)
		if got := took(); got != 0 {
			t.Errorf("second deliver: got a wait of %v, want none", got)
		}
		fill(l, 1, kib)
		done := make(chan time.Duration)
		go func() { done <- took() }()
		time.Sleep(deliverLimit / 2)
		poll(reads)
		poll(reads)
		if got := <-done; got != deliverLimit/2 {
			t.Errorf("deliver beside a laggard: got a wait of %v, want %v", got, deliverLimit/2)
		}
		poll(stalled)
		if got := took(); got != deliverLimit {
			t.Errorf("deliver after the laggard's return: got a wait of %v, want %v", got, deliverLimit)
		}
	})
}

func TestPressureDecidesForFullLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			pressure pressure
			first    uint64
			err      error
		}{{spill, 1, nil}, {yield, 0, ErrLagging}} {
			l := newLog(10 << 10)
			r := l.after(0)
			var appender sync.WaitGroup
			appender.Go(func() { fill(l, 100, kib) })
			synctest.Wait()
			l.relieve(c.pressure)
			appender.Wait()
			batch, _, err := r.Poll()
			if !errors.Is(err, c.err) || c.err == nil && (len(batch) != 100 || batch[0].Seq != c.first) {
				t.Errorf("pressure %d: got %d messages, error %v, want 100 from %d, error %v", c.pressure, len(batch), err, c.first, c.err)
			}
			r.Close()
		}
	})
}

func TestClosedLogIsReadToEnd(t *testing.T) {
	l := newLog(0)
	fill(l, 3, 10)
	r := l.after(0)
	defer r.Close()
	late := l.after(2)
	defer late.Close()
	l.close()
	for _, r := range []*Reader{r, late, l.after(0)} {
		if _, err := r.Next(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Next at the end: got error %v, want io.EOF", err)
		}
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLog(0).after(0)
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
		defer cancel()
		if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Many readers that join, leave and lag, with one appender: each sees an unbroken sequence with the right bytes.
func TestLogUnderLoadLosesNothing(t *testing.T) {
	const messages = 20_000
	l := newLog(64 << 10)
	var work sync.WaitGroup
	for n := range 6 {
		work.Go(func() {
			r := l.after(0)
			defer func() { r.Close() }()
			next, _ := r.Gap()
			for rounds := 0; ; rounds++ {
				batch, err := r.Next(context.Background())
				if errors.Is(err, io.EOF) {
					if next != messages+1 {
						t.Errorf("reader %d: got the end at %d, want all %d messages", n, next, messages)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, m := range batch {
					if m.Seq != next || !bytes.HasPrefix(m.Data, fmt.Appendf(nil, "%d ", m.Seq)) {
						t.Errorf("reader %d got %d %.10q, want %d", n, m.Seq, m.Data, next)
						return
					}
					next++
				}
				if n > 2 && rounds%50 == 49 { // leave and return to the same position
					again := l.after(next - 1)
					if _, gap := again.Gap(); gap {
						t.Errorf("reader %d: got a gap at %d, want none", n, next)
					}
					r.Close()
					r = again
				}
			}
		})
	}
	for n := 1; n <= messages; {
		var batch [][]byte
		for range min(1+n%37, messages-n+1) {
			batch = append(batch, fmt.Appendf(nil, "%d %s", n, bytes.Repeat([]byte("p"), n%500)))
			n++
		}
		taken := 0
		l.append(batch, func(n int) {
			if n < taken || n > len(batch) {
				t.Errorf("taken: got %d after %d of %d, want a rising number", n, taken, len(batch))
			}
			taken = n
		})
		if taken != len(batch) {
			t.Errorf("taken: got %d, want %d", taken, len(batch))
		}
	}
	l.close()
	work.Wait()
}
