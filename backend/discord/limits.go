package discord

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/disgoorg/disgo/rest"
)

// limits keeps Discord's rate limits. The library has such a type, too, which this package cannot use: it starts a goroutine that nothing
// ends, truncates fractions of seconds (so that its calls come too soon, and count as abuse), fails on a Retry-After that is no whole
// number, has a data race on the limit of the whole bot, and does not know limits that several routes share.
//
// Calls of a route run one after the other, in the order in which they came, so that the messages of a channel stay in order.
type limits struct {
	mu      sync.Mutex // protects the fields below
	global  time.Time  // no call is made before
	routes  map[string]*route
	buckets map[string]*bucket // by Discord's name and the channel, server or webhook
}

// route is a kind of call on a channel, server or webhook.
type route struct {
	turn   chan struct{} // holds a value during a call
	wanted int           // calls that wait or run
	bucket *bucket
}

// bucket is how many calls are left, and when there will be more.
type bucket struct {
	name  string
	left  int
	reset time.Time
}

// tries is how often a call is made that is refused because of its rate.
const tries = 5

// mostRoutes is how many routes are kept before unused routes are forgotten: each interaction is a route.
const mostRoutes = 256

func newLimits() *limits {
	return &limits{routes: map[string]*route{}, buckets: map[string]*bucket{}}
}

// limitedError says that no answer can come within the time that a caller has.
type limitedError struct{ until time.Time }

func (e *limitedError) Error() string {
	return "Discord takes no such call before " + e.until.UTC().Format(time.RFC3339)
}

// MaxRetries implements rest.RateLimiter.
func (*limits) MaxRetries() int { return tries }

// Close implements rest.RateLimiter. Nothing has to be closed.
func (*limits) Close(context.Context) {}

// Reset forgets all limits, which do not apply to another token or another address.
func (l *limits) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.global = time.Time{}
	clear(l.buckets)
	for key, r := range l.routes {
		r.bucket = nil
		if r.wanted == 0 {
			delete(l.routes, key)
		}
	}
}

// Wait waits until the call may be made, in its turn. After an error the caller has no turn.
func (l *limits) Wait(ctx context.Context, e *rest.CompiledEndpoint) error {
	r := l.enter(keyOf(e))
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		l.leave(r)
		return ctx.Err()
	}
	for {
		until := l.take(r, e.Endpoint.BotAuth)
		if until.IsZero() {
			return nil
		}
		if err := sleepUntil(ctx, until); err != nil {
			<-r.turn
			l.leave(r)
			return err
		}
	}
}

func sleepUntil(ctx context.Context, until time.Time) error {
	if deadline, ok := ctx.Deadline(); ok && until.After(deadline) {
		return &limitedError{until}
	}
	return pause(ctx, time.Until(until))
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func keyOf(e *rest.CompiledEndpoint) string {
	return e.Endpoint.Method + " " + e.Endpoint.Route + " " + e.MajorParams
}

func (l *limits) enter(key string) *route {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.routes[key]
	if r == nil {
		r = &route{turn: make(chan struct{}, 1)}
		l.routes[key] = r
	}
	r.wanted++
	return r
}

func (l *limits) leave(r *route) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.wanted--
}

// take takes one of the calls that are left, or returns when there will be more. The limit of the whole bot does not apply to calls
// without its token, which answer interactions.
func (l *limits) take(r *route, bot bool) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if bot && l.global.After(now) {
		return l.global
	}
	if r.bucket == nil {
		return time.Time{}
	}
	if r.bucket.left <= 0 && r.bucket.reset.After(now) {
		return r.bucket.reset
	}
	r.bucket.left-- // below 0 once the reset has passed: the answer tells how many are left
	return time.Time{}
}

// Unlock ends a call; rs is its answer, or nil.
func (l *limits) Unlock(e *rest.CompiledEndpoint, rs *http.Response) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.routes[keyOf(e)]
	if r == nil {
		return nil // never happens
	}
	if rs != nil {
		l.learn(r, e.MajorParams, rs)
	}
	r.wanted--
	<-r.turn
	l.forget()
	return nil
}

func (l *limits) learn(r *route, major string, rs *http.Response) {
	now := time.Now()
	if rs.StatusCode == http.StatusTooManyRequests {
		until := now.Add(retryAfter(rs.Header))
		if everywhere(rs.Header) {
			l.global = latest(l.global, until)
			return
		}
		b := l.named(r, major, rs.Header)
		b.left, b.reset = 0, latest(b.reset, until)
		return
	}
	left, err := strconv.Atoi(rs.Header.Get("X-RateLimit-Remaining"))
	if err != nil {
		return // a route without a limit
	}
	reset := now.Add(resetAfter(rs.Header))
	b := l.named(r, major, rs.Header)
	if b.reset.After(now) && reset.Before(b.reset.Add(window)) {
		left = min(left, b.left) // this answer may not count the running calls of other routes
	}
	b.left, b.reset = left, latest(b.reset, reset)
}

// window is by how much two answers may differ about the end of the same span.
const window = 250 * time.Millisecond

// named returns the bucket of an answer.
func (l *limits) named(r *route, major string, h http.Header) *bucket {
	name := h.Get("X-RateLimit-Bucket")
	switch {
	case name == "" && r.bucket == nil:
		r.bucket = &bucket{}
	case name == "" || r.bucket != nil && r.bucket.name == name+" "+major:
	default:
		name += " " + major
		if l.buckets[name] == nil {
			l.buckets[name] = &bucket{name: name}
		}
		r.bucket = l.buckets[name]
	}
	return r.bucket
}

// forget drops the routes without callers whose limits have passed.
func (l *limits) forget() {
	if len(l.routes) <= mostRoutes {
		return
	}
	now := time.Now()
	for key, r := range l.routes {
		if r.wanted == 0 && (r.bucket == nil || !r.bucket.reset.After(now)) {
			delete(l.routes, key)
		}
	}
	for name, b := range l.buckets {
		if !b.reset.After(now) {
			delete(l.buckets, name) // a route that has the bucket keeps it
		}
	}
}

// everywhere reports whether a 429 is for the whole bot. A 429 that does not come from Discord itself comes from the network before
// Discord, which locks out an address.
func everywhere(h http.Header) bool {
	return h.Get("X-RateLimit-Global") != "" || h.Get("X-RateLimit-Scope") == "global" || h.Get("Via") == "" && h.Get("X-RateLimit-Bucket") == ""
}

// retryAfter returns how long a 429 asks us to wait. Some answers give whole seconds, rounded down.
func retryAfter(h http.Header) time.Duration {
	longest := max(seconds(h.Get("Retry-After")), seconds(h.Get("X-RateLimit-Reset-After")))
	if longest == 0 {
		return time.Second // no readable header
	}
	return longest
}

// resetAfter returns when there will be more calls. An absolute time is of Discord's clock, whose time the answer gives as well.
func resetAfter(h http.Header) time.Duration {
	if after := seconds(h.Get("X-RateLimit-Reset-After")); after > 0 {
		return after
	}
	at, err := strconv.ParseFloat(h.Get("X-RateLimit-Reset"), 64)
	date, dated := http.ParseTime(h.Get("Date"))
	if err != nil || dated != nil {
		return 0
	}
	return max(0, time.Duration((at-float64(date.Unix()))*float64(time.Second)))
}

func seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || s < 0 {
		return 0
	}
	const longest = 24 * 60 * 60
	return time.Duration(math.Ceil(min(s, longest)*1000)) * time.Millisecond
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

var _ rest.RateLimiter = (*limits)(nil)
