package backend

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/httpapi"
)

// calls are the running calls of the API. The parts that calls use are closed only after drain has ended the calls and refuses further ones.
type calls struct {
	ctx  context.Context //nolint:containedctx // every call's context ends with ctx
	stop context.CancelFunc

	mu    *sync.Mutex // protects the fields below
	still bool
	n     int
	none  chan struct{} // closed when no call is left
}

func newCalls() calls {
	c := calls{mu: &sync.Mutex{}, none: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// count passes calls to next and counts them. While other calls are refused, the progress of a move and the page itself are still served.
func (c *calls) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !counts(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		if !c.enter() {
			httpapi.WriteProblem(w, httpapi.Problem{
				Type: "moving", Status: http.StatusServiceUnavailable, Code: "move.now", Detail: "the data is being moved; ask again in a moment",
			})
			return
		}
		defer c.leave()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)() //nolint:contextcheck // ctx ends the call
		next.ServeHTTP(w, r.WithContext(httpapi.WithLife(ctx, c.ctx)))
	})
}

const movePath = "/client/storage/move"

func counts(path string) bool {
	if path == movePath || strings.HasPrefix(path, movePath+"/") {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "client" || first == "v1" || first == "acp"
}

func (c *calls) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.still {
		c.n++
	}
	return !c.still
}

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.still && c.n == 0 {
		close(c.none)
	}
}

// drain ends the calls, refuses further calls, and waits a moment for calls that ignore their context.
func (c *calls) drain() {
	c.mu.Lock()
	c.still = true
	if c.n == 0 {
		close(c.none)
	}
	c.mu.Unlock()
	c.stop()
	select {
	case <-c.none:
	case <-time.After(farewell):
	}
}

// swapped serves the mounted handler, which may change between calls.
type swapped struct{ now atomic.Pointer[http.Handler] }

func (s *swapped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := s.now.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// mount changes the handler of a listener. mount(nil, nil) only ends the previous source of callers.
func (l *Listener) mount(h http.Handler, unmount func()) {
	l.mu.Lock()
	before := l.unmount
	l.unmount = unmount
	l.mu.Unlock()
	if h != nil {
		l.front.now.Store(&h)
	}
	if before != nil {
		before()
	}
}
