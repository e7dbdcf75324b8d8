package remote

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/acp"
)

// linked is an instance whose line the test is.
func linked() *Instance {
	return &Instance{
		calls: calls{waiting: map[acp.Key]*call{}}, changed: make(chan struct{}), again: make(chan struct{}), started: true,
		line: lineState{up: true, heard: time.Now()},
	}
}

// An event is no longer than a message may be, however many lines it has.
func TestEventOfManyLinesIsBounded(t *testing.T) {
	t.Parallel()
	const lines, each = 3, 22 << 20
	var parts []io.Reader
	for range lines {
		parts = append(parts, strings.NewReader("data: "), strings.NewReader(strings.Repeat("x", each)), strings.NewReader("\n"))
	}
	parts = append(parts, strings.NewReader("\ndata: next\n\n"))
	in := events{in: bufio.NewReader(io.MultiReader(parts...))}
	e, err := in.next()
	if err != nil || len(e.data) > maxMessage || !e.tooBig {
		t.Errorf("first event: got %d bytes, too big %v, error %v, want at most %d, too big", len(e.data), e.tooBig, err, maxMessage)
	}
	if e, err := in.next(); err != nil || string(e.data) != "next" || e.tooBig {
		t.Errorf("next event: got %q, too big %v, error %v, want next", e.data, e.tooBig, err)
	}
}

// A request whose line broke is not sent again while its answer stands behind a message that comes slowly.
func TestSettledWaitsForWholeMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		var streams, posts atomic.Int32
		begun := make(chan struct{})
		th.on("GET", func(w http.ResponseWriter, r *http.Request) {
			answer(w, http.StatusOK, "text/event-stream", "")
			flush := func(text string) {
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			}
			if flush(": here\n\n"); streams.Add(1) == 1 {
				close(begun)
				<-r.Context().Done() // until the line is made anew
				return
			}
			flush("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"much\",\"params\":{\"x\":\"")
			for range 8 { // each pause is shorter than that after which a line counts as quiet, all of them are longer; one is longer by itself
				time.Sleep(quietFor / 3)
				flush("more of it ")
			}
			time.Sleep(2 * quietFor)
			flush("\"}}\n\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
			<-r.Context().Done()
		})
		th.on("POST", func(w http.ResponseWriter, r *http.Request) {
			posts.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close() // before it says that it has the request
		})
		i := th.r.Instance(Start{ServerID: "a", Agent: "x", Running: true})
		defer i.Leave()
		within(t, "a line", begun)
		if err := i.Send(t.Context(), []byte(initialize)); err != nil {
			t.Fatal(err)
		}
		if n := posts.Load(); n != 1 {
			t.Errorf("POST requests: got %d, want 1", n)
		}
	})
}

// A runtime that tells of nothing but gaps is not read on while nobody takes them.
func TestGapsWaitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := linked()
		ctx, cancel := context.WithCancel(t.Context())
		const many = 1 << 18
		var taken atomic.Int64
		var reading sync.WaitGroup
		reading.Go(func() {
			for range many {
				if ctx.Err() != nil || i.take(ctx, event{kind: "gap", data: []byte(`{"oldest":1}`)}) != nil {
					return
				}
				taken.Add(1)
			}
		})
		synctest.Wait()
		before := taken.Load()
		if before == many {
			t.Error("all of them are held")
		}
		for range 2 {
			if _, err := i.Next(ctx); !isGap(err) {
				t.Error(err)
			}
		}
		synctest.Wait()
		if now := taken.Load(); before < many && now != before+2 {
			t.Errorf("gaps taken: got %d, want 2", now-before)
		}
		cancel()
		reading.Wait()
	})
}

func isGap(err error) bool {
	_, is := err.(*GapError) //nolint:errorlint // it is given as it is
	return is
}

// What waits in the line while we have no room has not come yet: nobody is to conclude that an answer is not among it.
func TestSettledWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := linked()
		c := &call{answered: make(chan struct{})}
		i.calls.waiting[acp.Key("1")] = c
		var reading sync.WaitGroup
		reading.Go(func() {
			for n, data := range []string{
				fmt.Sprintf(`{"jsonrpc":"2.0","method":"much","params":{"x":%q}}`, strings.Repeat("x", queueBytes)),
				`{"jsonrpc":"2.0","id":1,"result":{}}`,
			} {
				if err := i.enqueue(t.Context(), uint64(n+1), event{data: []byte(data)}); err != nil {
					t.Error(err)
				}
			}
		})
		settled := make(chan bool, 1)
		reading.Go(func() { settled <- i.settled(t.Context(), c) })
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case came := <-settled:
			t.Fatalf("settled before the line is read on: got %v, want no result", came)
		default:
		}
		if batch, err := i.Next(t.Context()); err != nil || len(batch) != 1 {
			t.Errorf("Next: got %d messages, error %v, want 1", len(batch), err)
		}
		if !<-settled {
			t.Error("the answer did not come")
		}
		reading.Wait()
	})
}
