package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/testkit"
)

// endless is a line of left bytes without an end.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for done := 0; done < n; {
		done += copy(p[done:n], "a line that does not end, and of which no more is kept than has to be; ")
	}
	e.left -= n
	return n, nil
}

// allocated returns how many bytes f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc) - int64(before.TotalAlloc)
}

// The memory for the longest line is bounded by the limit, and not by the sent bytes: here twice as many.
func TestEndlessLineTakesLittleMemory(t *testing.T) {
	var lines []line
	cost := allocated(func() { lines = readLines(t, &endless{2 * maxLine}, maxLine) })
	if len(lines) != 1 || lines[0].length != 2*maxLine || len(lines[0].data) != skippedRaw {
		t.Fatalf("endless line: got %d lines, want 1, skipped", len(lines))
	}
	if cost > 2*maxLine+(2<<20) {
		t.Errorf("memory for an endless line: got %d MiB, want %d", cost>>20, (2*maxLine+(2<<20))>>20)
	}
	cost = allocated(func() { lines = readLines(t, &endless{maxLine}, maxLine) })
	if len(lines) != 1 || len(lines[0].data) != maxLine {
		t.Fatalf("longest line: got %d lines, want 1, whole", len(lines))
	}
	if cost > 3*maxLine+(2<<20) { // another copy is made, so that the log keeps only the line
		t.Errorf("memory for the longest line: got %d MiB, want %d", cost>>20, (3*maxLine+(2<<20))>>20)
	}
}

// A line of 64 MiB passes; a line with another byte is skipped and reported, and the next line passes.
func TestLongestLineIsWhole(t *testing.T) {
	i := startAgent(t, Config{})
	r := i.After(0)
	defer r.Close()
	next := func() []byte {
		batch, err := r.Next(t.Context())
		if err != nil || len(batch) != 1 {
			t.Fatalf("Next: got %d messages, error %v, want 1", len(batch), err)
		}
		return batch[0].Data
	}
	head := []byte(`{"method":"long","params":"`)
	send(t, i, fmt.Sprintf("long:%d", maxLine))
	if data := next(); len(data) != maxLine || !bytes.HasPrefix(data, head) || bytes.Count(data, []byte("x")) != maxLine-len(head)-len(`"}`) {
		t.Errorf("longest message: got %d bytes, want %d", len(data), maxLine)
	}
	send(t, i, fmt.Sprintf("long:%d", maxLine+1))
	var invalid struct{ Params struct{ Error, Raw string } }
	if err := json.Unmarshal(next(), &invalid); err != nil || invalid.Params.Error != "a line of 67108865 bytes is longer than the limit of 67108864" ||
		len(invalid.Params.Raw) != skippedRaw || !strings.HasPrefix(invalid.Params.Raw, string(head)) {
		t.Errorf("message for a longer line: got error %.200s, %d bytes raw, %v, want the limit in words", invalid.Params.Error, len(invalid.Params.Raw), err)
	}
	if _, err := outcome(t, call(t, i, `{"id":1,"method":"m"}`)); err != nil {
		t.Error(err)
	}
}

// An agent without a reader runs at full speed; the newest messages are kept, within the log's memory limit.
func TestFloodWithoutReaderIsBounded(t *testing.T) {
	const messages, limit = 100_000, 1 << 20
	i := startAgent(t, Config{LogBytes: limit})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	flood := call(t, i, fmt.Sprintf(`{"id":1,"method":"flood:%d"}`, messages))
	last := call(t, i, `{"id":2,"method":"m"}`)
	if _, err := outcome(t, last); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 3*limit {
		t.Errorf("memory of the log: got %d KiB, want %d", held>>10, 3*limit>>10)
	}
	r := i.After(0)
	defer r.Close()
	oldest, gap := r.Gap()
	batch, err := r.Next(t.Context())
	if err != nil || !gap || batch[0].Seq != oldest || !bytes.Contains(batch[0].Data, fmt.Appendf(nil, `{"n":%d,`, oldest)) {
		t.Fatalf("first message: got %.80s, error %v, gap %v, want number %d", batch[0].Data, err, gap, oldest)
	}
	if newest := i.log.last(); newest != messages+1 {
		t.Errorf("number of the newest message: got %d, want %d", newest, messages+1)
	}
	if isClosed(flood.Done()) {
		t.Error("flood was answered") // the request has no answer: it only triggers the flood
	}
}

// An agent that floods before reading on, and a client that writes while reading slowly, never wait for each other for ever.
func TestFloodBothWaysLosesNothing(t *testing.T) {
	const rounds, perRound = 20, 2000 // 5 MiB in, 8 MiB out, through a log of 256 KiB
	i := startAgent(t, Config{LogBytes: 256 << 10})
	r := i.After(0)
	defer r.Close()
	var work sync.WaitGroup
	for n := range rounds {
		work.Go(func() {
			msg := fmt.Sprintf(`{"method":"flood:%d","params":[%d,"%s"]}`, perRound, n, strings.Repeat("y", 256<<10))
			if err := i.Send(t.Context(), []byte(msg)); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	for next := uint64(1); next <= rounds*perRound; {
		batch, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range batch {
			if m.Seq != next || !bytes.Contains(m.Data, fmt.Appendf(nil, `{"n":%d,`, (next-1)%perRound+1)) {
				t.Fatalf("%d: %.80s; want %d", m.Seq, m.Data, next)
			}
			next++
		}
	}
	work.Wait()
}

// Both pipes are full and nothing moves: the reader has stopped, so the agent's stdout blocks, so the agent does not read its stdin.
// Callers get ErrBacklog, each message is accepted or refused as a whole, and the instance can still be ended.
func TestCloseEndsAgentJammedBothWays(t *testing.T) {
	cmd := agentCommand()
	i, err := openSet(t, Config{LogBytes: 64 << 10}).Start(t.Context(), "a", "fake", cmd)
	if err != nil {
		t.Fatal(err)
	}
	i.stdin.limit = 4 << 20
	r := i.After(0)
	defer r.Close()
	send(t, i, "flood:1000000")
	large := []byte(`{"method":"` + strings.Repeat("x", 1<<20) + `"}`)
	var refused, held atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			switch err := i.Send(ctx, large); {
			case errors.Is(err, ErrBacklog):
				refused.Add(1)
			case errors.Is(err, ErrRemoved):
				held.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	for refused.Load() < 4 { // 4 MiB are one message less than four
		await(nil, time.Millisecond)
	}
	if err := i.Close(); err != nil {
		t.Errorf("Close: got error %v, want none", err)
	}
	callers.Wait()
	cancel()
	if refused.Load()+held.Load() != 8 || held.Load() < 3 {
		t.Errorf("callers: got %d refused, %d held, want 8 in all, 3 held or more", refused.Load(), held.Load())
	}
}

// Random POST, GET and DELETE calls on one server_id, with real processes: one process at a time, each call gets its own answer, the
// numbers of a stream rise by one, and nothing is left.
func TestServerIDHasOneProcessAtATime(t *testing.T) {
	cmd := agentCommand()
	var running, most, started atomic.Int32
	s := openSet(t, Config{LogBytes: 64 << 10, Spawn: func(c Command) (Process, error) {
		most.Store(max(most.Load(), running.Add(1)))
		started.Add(1)
		p, err := startProcess(c, "storm-without-a-mark;")
		if err != nil {
			running.Add(-1)
			return nil, err
		}
		return counted{p, &running}, nil
	}})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	var answered atomic.Int32
	work.Go(func() { // two seconds, or longer on a busy machine until something has happened
		defer stop()
		for begin := time.Now(); time.Since(begin) < 2*time.Second || (answered.Load() == 0 || started.Load() < 3) && time.Since(begin) < time.Minute; {
			if await(ctx.Done(), 10*time.Millisecond) {
				return
			}
		}
	})
	for n := range 12 {
		work.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(n), 7))
			for round := 0; ctx.Err() == nil; round++ {
				switch dice.IntN(10) {
				case 0:
					if err := s.Remove("a"); err != nil {
						t.Error(err)
					}
				case 1, 2, 3:
					stormRead(ctx, t, s, dice)
				default:
					answered.Add(stormCall(ctx, t, s, cmd, fmt.Sprintf(`"%d/%d"`, n, round), dice))
				}
			}
		})
	}
	work.Wait()
	t.Logf("%d processes, %d answers", started.Load(), answered.Load())
	if most.Load() > 1 {
		t.Errorf("processes at once: got %d, want 1 at most", most.Load())
	}
	if answered.Load() == 0 || started.Load() < 3 {
		t.Errorf("storm: got %d answers of %d processes, want some answers of 3 processes or more", answered.Load(), started.Load())
	}
	if err := s.Close(); err != nil || running.Load() != 0 {
		t.Errorf("Close: got error %v, %d processes left, want none", err, running.Load())
	}
}

// counted counts running processes.
type counted struct {
	Process
	running *atomic.Int32
}

func (c counted) Wait() Exit {
	e := c.Process.Wait()
	c.running.Add(-1)
	return e
}

// stormCall makes one call, which now and then ends the agent, and checks that the outcome belongs to the call.
func stormCall(ctx context.Context, t *testing.T, s *Set, cmd Command, id string, dice *rand.Rand) int32 {
	t.Helper()
	i, err := s.Ensure(context.WithoutCancel(ctx), "a", "fake", func(context.Context) (Command, error) { return cmd, nil })
	if errors.Is(err, ErrRemoved) {
		return 0
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	method := "m"
	if dice.IntN(20) == 0 {
		method = "exit:1"
	}
	e, _ := acp.Peek([]byte(`{"id":` + id + `,"method":"` + method + `"}`))
	c, err := i.Call(e)
	if err == nil {
		if !await(c.Done(), 20*time.Second) {
			t.Error("no outcome")
			return 0
		}
		var answer []byte
		if answer, err = c.Outcome(); err == nil {
			if !bytes.HasPrefix(answer, []byte(`{"jsonrpc":"2.0","id":`+id+`,`)) {
				t.Errorf("answer of %s: got %s, want its own id", id, answer)
			}
			return 1
		}
	}
	if !errors.Is(err, ErrExited) && !errors.Is(err, ErrRemoved) && !errors.Is(err, ErrInput) {
		t.Error(err)
	}
	return 0
}

// stormRead reads for a moment.
func stormRead(ctx context.Context, t *testing.T, s *Set, dice *rand.Rand) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, time.Duration(dice.IntN(30))*time.Millisecond)
	defer cancel()
	r, err := s.Reader(short, "a", 0)
	if err != nil {
		return
	}
	defer r.Close()
	next, _ := r.Gap()
	for {
		batch, err := r.Next(short)
		if errors.Is(err, ErrLagging) || errors.Is(err, io.EOF) || short.Err() != nil {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range batch {
			if m.Seq != next {
				t.Errorf("got %d, want %d", m.Seq, next)
			}
			next = m.Seq + 1
		}
	}
}

// brokenPipe is the stdin of a living agent that has closed its end.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }
func (brokenPipe) Close() error              { return nil }

// Lines that wait behind a failed write fail together with that line, and not one after another.
func TestQueueBehindBrokenPipeFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStdin(brokenPipe{}, maxBacklog, make(chan struct{}))
		began := time.Now()
		var failed []time.Duration
		for range 20 {
			err := s.put(outgoing{line: make([]byte, writeBatch), written: func(err error) {
				if !errors.Is(err, ErrInput) {
					t.Error(err)
				}
				failed = append(failed, time.Since(began))
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		s.run()
		if len(failed) != 20 || failed[19] != exitGrace {
			t.Errorf("lines behind a broken pipe: got %d failed, after %v, want 20 after %v", len(failed), failed, exitGrace)
		}
	})
}
