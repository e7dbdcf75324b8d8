package discord

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disgoorg/disgo/rest"
)

// says is what an answer tells of limits.
type says struct {
	status int
	header http.Header
}

func (s says) response() *http.Response {
	if s.status == 0 {
		return nil
	}
	return &http.Response{StatusCode: s.status, Header: s.header, Body: http.NoBody}
}

func of(status int, headers ...string) says {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return says{status, h}
}

func unlock(l *limits, e *rest.CompiledEndpoint, s says) error {
	resp := s.response()
	if resp != nil {
		defer resp.Body.Close()
	}
	return l.Unlock(e, resp)
}

func TestLimitsDelayCalls(t *testing.T) {
	create := func(channel int) *rest.CompiledEndpoint { return rest.CreateMessage.Compile(nil, channel) }
	edit := rest.UpdateMessage.Compile(nil, 1, 2)
	answer := rest.CreateInteractionResponse.Compile(nil, 1, "token")
	type call struct {
		of   *rest.CompiledEndpoint
		says says
		wait time.Duration // before it
	}
	for name, calls := range map[string][]call{
		"what is left may be used": {
			{create(1), of(200, "X-RateLimit-Bucket", "a", "X-RateLimit-Remaining", "1", "X-RateLimit-Reset-After", "2.5"), 0},
			{create(1), of(200, "X-RateLimit-Bucket", "a", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "2.5"), 0},
			{create(2), says{}, 0},
			{create(1), says{}, 2500 * time.Millisecond},
		},
		"halves of seconds count": {
			{create(1), of(200, "X-RateLimit-Bucket", "a", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "0.7"), 0},
			{create(1), says{}, 700 * time.Millisecond},
		},
		"routes may share a limit": {
			{edit, of(200, "X-RateLimit-Bucket", "a", "X-RateLimit-Remaining", "3", "X-RateLimit-Reset-After", "2"), 0},
			{create(1), of(200, "X-RateLimit-Bucket", "a", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "2"), 0},
			{edit, says{}, 2 * time.Second},
		},
		"a refusal is waited for": {
			{create(1), of(429, "X-RateLimit-Bucket", "a", "Retry-After", "1", "X-RateLimit-Reset-After", "1.25", "Via", "1.1 google"), 0},
			{create(1), says{}, 1250 * time.Millisecond},
		},
		"a fraction is a number": {
			{create(1), of(429, "X-RateLimit-Bucket", "a", "Retry-After", "0.25", "Via", "1.1 google"), 0},
			{create(1), says{}, 250 * time.Millisecond},
		},
		"a refusal of the whole bot is for all": {
			{create(1), of(429, "X-RateLimit-Global", "true", "Retry-After", "3", "Via", "1.1 google"), 0},
			{create(2), says{}, 3 * time.Second},
			{answer, says{}, 0},
		},
		"a lockout of the address too": {
			{create(1), of(429, "Retry-After", "60"), 0},
			{edit, says{}, time.Minute},
		},
		"a refusal that says nothing is waited for": {
			{create(1), of(429, "X-RateLimit-Bucket", "a", "Retry-After", "soon", "Via", "1.1 google"), 0},
			{create(1), says{}, time.Second},
		},
		"times are of Discord's clock": {
			{create(1), of(200, "X-RateLimit-Bucket", "a", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800000002.5", "Date", "Fri, 15 Jan 2027 08:00:00 GMT"), 0},
			{create(1), says{}, 2500 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimits()
				for n, c := range calls {
					begun := time.Now()
					if err := l.Wait(t.Context(), c.of); err != nil {
						t.Fatal(err)
					}
					if waited := time.Since(begun); waited != c.wait {
						t.Errorf("call %d: got a wait of %v, want %v", n, waited, c.wait)
					}
					if err := unlock(l, c.of, c.says); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

func TestLimitsKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := newLimits(), rest.CreateMessage.Compile(nil, 1)
		if err := l.Wait(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 3)
		for n := range 3 {
			go func() {
				if l.Wait(t.Context(), e) == nil {
					order <- n
					_ = unlock(l, e, says{})
				}
			}()
			synctest.Wait()
		}
		_ = unlock(l, e, says{})
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("order: got call %d, want %d", got, want)
			}
		}
	})
}

func TestLimitsEndWithCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, e := newLimits(), rest.CreateMessage.Compile(nil, 1)
		_ = l.Wait(t.Context(), e)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Wait(ctx, e); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		_ = unlock(l, e, of(429, "X-RateLimit-Bucket", "a", "Retry-After", "30", "Via", "1.1 google"))
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		limited, ok := errors.AsType[*limitedError](l.Wait(soon, e))
		if !ok || time.Since(begun) != 0 || time.Until(limited.until) != 30*time.Second {
			t.Errorf("Wait: got %v after %v, want a limit of 30s at once", limited, time.Since(begun))
		}
		if err := l.Wait(t.Context(), e); err != nil { // the turn of who gave up is free
			t.Error(err)
		}
		_ = unlock(l, e, says{})
	})
}

// Each interaction is a route, and they are never asked for again.
func TestLimitsForgetRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		for n := range 4 * mostRoutes {
			e := rest.CreateFollowupMessage.Compile(nil, 1, n)
			if err := l.Wait(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			_ = unlock(l, e, of(200, "X-RateLimit-Bucket", "w", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset-After", "1"))
			pauseFor := 10 * time.Millisecond
			_ = pause(t.Context(), pauseFor)
		}
		if len(l.routes) > 2*mostRoutes || len(l.buckets) > 2*mostRoutes {
			t.Errorf("remembered: got %d routes, %d buckets, want %d at most", len(l.routes), len(l.buckets), 2*mostRoutes)
		}
	})
}
