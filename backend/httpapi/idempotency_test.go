package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// writes counts its calls, and answers with the count.
type writes struct {
	times atomic.Int64
	wait  chan struct{} // nil = answers at once
	fail  atomic.Bool
}

func (c *writes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.wait != nil {
		select {
		case <-c.wait:
		case <-r.Context().Done(): // must not happen
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	if c.fail.Load() {
		WriteProblem(w, Problem{Type: "conflict"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(strconv.FormatInt(c.times.Add(1), 10)))
}

func send(p *repeats, next http.Handler, change func(*http.Request)) string {
	r := httptest.NewRequest(http.MethodPost, "/client/sessions", strings.NewReader(`{"a":1}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(keyHeader, `"one"`)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	p.serve(w, r, next)
	return strconv.Itoa(w.Code) + " " + w.Header().Get("Content-Type") + " " + w.Body.String()
}

func TestIdempotencyKeyWritesOnce(t *testing.T) {
	const first = "201 application/json 1"
	for name, tc := range map[string]struct {
		change func(*http.Request)
		want   string
	}{
		"the same":               {nil, first},
		"its key without quotes": {func(r *http.Request) { r.Header.Set(keyHeader, "one") }, first},
		"another key":            {func(r *http.Request) { r.Header.Set(keyHeader, `"two"`) }, "201 application/json 2"},
		"no key":                 {func(r *http.Request) { r.Header.Del(keyHeader) }, "201 application/json 2"},
		"another path":           {func(r *http.Request) { r.URL.Path, r.RequestURI = "/client/other", "/client/other" }, "201 application/json 2"},
		"another query":          {func(r *http.Request) { r.URL.RawQuery = "x=1" }, "201 application/json 2"},
		"another method":         {func(r *http.Request) { r.Method = http.MethodPatch }, "201 application/json 2"},
		"another token":          {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, "201 application/json 2"},
		"a look":                 {func(r *http.Request) { r.Method = http.MethodGet }, "201 application/json 2"},
		"an upload":              {func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") }, "201 application/json 2"},
	} {
		var p repeats
		var c writes
		if got := send(&p, &c, nil); got != first {
			t.Fatalf("first write: got %s, want %s", got, first)
		}
		if got := send(&p, &c, tc.change); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestIdempotencyKeysThatAreRefused(t *testing.T) {
	var p repeats
	var c writes
	send(&p, &c, nil)
	for name, tc := range map[string]struct {
		change func(*http.Request)
		want   string
	}{
		"for another body":  {func(r *http.Request) { r.Body = http.NoBody }, `409 application/problem+json`},
		"too long":          {func(r *http.Request) { r.Header.Set(keyHeader, strings.Repeat("x", 256)) }, `400 application/problem+json`},
		"with a space":      {func(r *http.Request) { r.Header.Set(keyHeader, "a b") }, `400 application/problem+json`},
		"half quoted":       {func(r *http.Request) { r.Header.Set(keyHeader, `"a`) }, `400 application/problem+json`},
		"twice":             {func(r *http.Request) { r.Header.Add(keyHeader, "b") }, `400 application/problem+json`},
		"of too large ones": {func(r *http.Request) { r.ContentLength = maxPrompt + 1 }, `413 application/problem+json`},
	} {
		if got := send(&p, &c, tc.change); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
	if c.times.Load() != 1 {
		t.Errorf("%d were done", c.times.Load())
	}
}

// A failed write has changed nothing, and is executed when repeated.
func TestIdempotencyKeyOfFailedWriteIsTriedAnew(t *testing.T) {
	var p repeats
	var c writes
	c.fail.Store(true)
	if got := send(&p, &c, nil); !strings.HasPrefix(got, "409 ") {
		t.Errorf("failing write: got %s, want 409", got)
	}
	c.fail.Store(false)
	if got := send(&p, &c, nil); got != "201 application/json 1" {
		t.Errorf("repeated write: got %s, want 201 with 1", got)
	}
}

// Repeats that come during the first write wait for its answer; the write continues when its caller leaves.
func TestIdempotencyKeyWritesWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p repeats
		c := writes{wait: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { send(&p, &c, func(r *http.Request) { *r = *r.WithContext(ctx) }) })
		synctest.Wait()
		cancel()
		for range 10 {
			all.Go(func() {
				if got := send(&p, &c, nil); got != "201 application/json 1" {
					t.Errorf("repeat: got %s, want 201 with 1", got)
				}
			})
		}
		all.Go(func() { // waiting callers may leave too
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			send(&p, &c, func(r *http.Request) { *r = *r.WithContext(ctx) })
		})
		synctest.Wait()
		close(c.wait)
		all.Wait()
		if c.times.Load() != 1 {
			t.Errorf("it was done %d times", c.times.Load())
		}
	})
}

func TestIdempotencyAnswersAreNotHeldForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p repeats
		var c writes
		send(&p, &c, nil)
		time.Sleep(repeatFor + 1)
		if got := send(&p, &c, nil); got != "201 application/json 2" {
			t.Errorf("after %[2]v: got %[1]s, want 201 with 2", got, repeatFor)
		}
		for n := range mostRepeats + 10 {
			send(&p, &c, func(r *http.Request) { r.Header.Set(keyHeader, "k"+strconv.Itoa(n)) })
		}
		if len(p.held) != mostRepeats || len(p.done) != mostRepeats {
			t.Errorf("got %d held, %d done, want %d of each", len(p.held), len(p.done), mostRepeats)
		}
	})
}

// When the answers together are too large, the largest go first, and never the newest: its caller may repeat in a moment.
func TestIdempotencyLetsLargeAnswersGoFirst(t *testing.T) {
	var p repeats
	var asked int
	large := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		_, _ = w.Write(make([]byte, size))
	})
	of := func(size int) func() bool {
		return func() (held bool) {
			before := asked
			send(&p, large, func(r *http.Request) { r.URL.RawQuery = "size=" + strconv.Itoa(size) })
			return asked == before
		}
	}
	small, middle, huge := of(10), of(mostAnswers/2), of(mostAnswers+1)
	small()
	middle()
	huge()
	if !huge() || !middle() || !small() {
		t.Error("not all are held")
	}
	of(11)()
	if huge() {
		t.Error("the largest is held")
	}
	if !middle() || !small() {
		t.Error("others went for it")
	}
}

// A call that continues without its caller ends with the program.
func TestIdempotencyWriteEndsWithProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p repeats
		c := writes{wait: make(chan struct{})}
		life, end := context.WithCancel(t.Context())
		caller, goes := context.WithCancel(t.Context())
		answer := make(chan string, 1)
		go func() {
			answer <- send(&p, &c, func(r *http.Request) { *r = *r.WithContext(WithLife(caller, life)) })
		}()
		synctest.Wait()
		goes()
		synctest.Wait()
		if len(answer) > 0 {
			t.Error("it ended with its caller")
		}
		end()
		synctest.Wait()
		if len(answer) == 0 || !strings.HasPrefix(<-answer, "503") {
			t.Error("it goes on")
		}
	})
}

// A panicking handler leaves nobody waiting.
func TestIdempotencyWriteThatBreaksIsOver(t *testing.T) {
	var p repeats
	var c writes
	func() {
		defer func() { _ = recover() }()
		send(&p, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") }), nil)
	}()
	if got := send(&p, &c, nil); got != "201 application/json 1" {
		t.Errorf("after a panic: got %s, want 201 with 1", got)
	}
}
