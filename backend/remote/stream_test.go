package remote

import (
	"bufio"
	"context"
	"fmt"
	"io"
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
		calls: map[acp.Key]*call{}, changed: make(chan struct{}), again: make(chan struct{}), up: true, started: true, heard: time.Now(),
	}
}

// An event is no longer than a message may be, however many lines it has.
func TestAnEventOfManyLinesIsBounded(t *testing.T) {
	t.Parallel()
	const lines, each = 3, 30 << 20
	var parts []io.Reader
	for range lines {
		parts = append(parts, strings.NewReader("data: "), strings.NewReader(strings.Repeat("x", each)), strings.NewReader("\n"))
	}
	parts = append(parts, strings.NewReader("\ndata: next\n\n"))
	in := events{bufio.NewReader(io.MultiReader(parts...))}
	e, err := in.next()
	if err != nil || len(e.data) > maxMessage || !e.tooBig {
		t.Errorf("%d bytes, too big is %v, %v", len(e.data), e.tooBig, err)
	}
	if e, err := in.next(); err != nil || string(e.data) != "next" || e.tooBig {
		t.Errorf("%q, too big is %v, %v", e.data, e.tooBig, err)
	}
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
			t.Errorf("%d are taken where there is room for 2", now-before)
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
func TestNothingIsQuietWhileThereIsNoRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := linked()
		c := &call{answered: make(chan struct{})}
		i.calls[acp.Key("1")] = c
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
			t.Fatalf("before the line is read on it counts as known that the answer came: %v", came)
		default:
		}
		if batch, err := i.Next(t.Context()); err != nil || len(batch) != 1 {
			t.Errorf("%d messages, %v", len(batch), err)
		}
		if !<-settled {
			t.Error("the answer did not come")
		}
		reading.Wait()
	})
}
