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

// limits keeps Discord's rate limits. The library has such a thing too, which this package cannot use: it starts a goroutine that nothing
// ends, cuts the halves off seconds (so that it asks too soon, and is counted as an abuser), fails on a Retry-After that is no whole
// number, has a data race on the limit of the whole bot, and knows nothing of limits that several routes share.
//
// Calls of one route go one after the other, in the order in which they came: what is said in a channel stays in order.
type limits struct {
	mu      sync.Mutex // protects the fields below
	global  time.Time  // until when nothing is asked
	routes  map[string]*route
	buckets map[string]*bucket // by Discord's name for them and the channel, server or webhook
}

// route is one kind of call on one channel, server or webhook.
type route struct {
	turn   chan struct{} // holds a value while a call is under way
	wanted int           // calls that wait or are under way
	bucket *bucket
}

// bucket is how many calls are left, and when there will be more.
type bucket struct {
	name  string
	left  int
	reset time.Time
}

// tries is how often a call that was refused for its rate is made.
const tries = 5

// mostRoutes is how many routes are remembered before those that nobody uses are forgotten: each interaction is one.
const mostRoutes = 256

func newLimits() *limits {
	return &limits{routes: map[string]*route{}, buckets: map[string]*bucket{}}
}

// limitedError tells that there is no hope of an answer within the time that a caller has.
type limitedError struct{ until time.Time }

func (e *limitedError) Error() string {
	return "Discord takes no such call before " + e.until.UTC().Format(time.RFC3339)
}

// MaxRetries is of rest.RateLimiter.
func (*limits) MaxRetries() int { return tries }

// Close is of rest.RateLimiter. There is nothing to close.
func (*limits) Close(context.Context) {}

// Reset forgets everything: what another token or another address is told says nothing.
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

// Wait waits until a call may be made, at its turn. Who gets an error has no turn.
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

// pause waits, or until ctx ends.
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

// take takes one of the calls that are left, or tells when there will be more. The limit of the whole bot is not for calls without its
// token, which answer interactions.
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
	r.bucket.left-- // below 0 is one whose time has come: the answer tells what is left
	return time.Time{}
}

// Unlock ends a call; rs is its answer, nil where there was none.
func (l *limits) Unlock(e *rest.CompiledEndpoint, rs *http.Response) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.routes[keyOf(e)]
	if r == nil {
		return nil // it cannot be
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
		return // not every route has a limit
	}
	reset := now.Add(resetAfter(rs.Header))
	b := l.named(r, major, rs.Header)
	if b.reset.After(now) && reset.Before(b.reset.Add(window)) {
		left = min(left, b.left) // of calls that are under way by another route this answer may not know
	}
	b.left, b.reset = left, latest(b.reset, reset)
}

// window is by how much the ends of one span may differ between two answers about it.
const window = 250 * time.Millisecond

// named is the bucket that an answer is about.
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

// forget drops the routes that nobody waits for and that have nothing to tell.
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
			delete(l.buckets, name) // a route that has it still goes on with it
		}
	}
}

// everywhere tells whether a 429 is for the whole bot. What does not come from Discord itself is of the network before it, which locks
// out an address.
func everywhere(h http.Header) bool {
	return h.Get("X-RateLimit-Global") != "" || h.Get("X-RateLimit-Scope") == "global" || h.Get("Via") == "" && h.Get("X-RateLimit-Bucket") == ""
}

// retryAfter is how long a 429 wants us to wait. Some say it in whole seconds, rounded down.
func retryAfter(h http.Header) time.Duration {
	longest := max(seconds(h.Get("Retry-After")), seconds(h.Get("X-RateLimit-Reset-After")))
	if longest == 0 {
		return time.Second // it says nothing that we can read
	}
	return longest
}

// resetAfter is when there will be more calls. An absolute time is of Discord's clock, which tells its own time beside it.
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
