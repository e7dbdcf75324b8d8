package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A look that does not return holds nobody up: what was found last is shown, and who was told that hears of what it finds.
func TestPresence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		p := &Presence[bool]{Patience: time.Second, Changed: func(path string) { told = append(told, path) }}
		var looks atomic.Int64
		hangs := make(chan struct{})
		close(hangs)
		there := true
		at := func() bool {
			until, found := hangs, there
			return p.At("/far", func() bool {
				looks.Add(1)
				<-until
				return found
			})
		}
		after := func(want time.Duration, do func()) {
			t.Helper()
			begun := time.Now()
			do()
			if took := time.Since(begun); took != want {
				t.Errorf("it took %v, want %v", took, want)
			}
		}
		after(0, func() {
			if !at() || looks.Load() != 1 {
				t.Errorf("%d looks", looks.Load())
			}
		})
		hangs, there = make(chan struct{}), false
		after(time.Second, func() {
			if !at() {
				t.Error("what was there is forgotten")
			}
		})
		after(0, func() {
			if !at() || !p.At("/far", nil) || looks.Load() != 2 {
				t.Errorf("%d looks at a time", looks.Load()-1)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		after(time.Minute, func() {
			if err := p.answers(ctx, "/far", func() bool { <-hangs; return false }); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		after(0, func() { p.At("/near", func() bool { return true }) })
		close(hangs)
		synctest.Wait()
		if len(told) != 1 || told[0] != "/far" || at() || looks.Load() != 3 {
			t.Errorf("%q, %d looks", told, looks.Load())
		}
		// A look that has begun before may not have seen what the caller knows of.
		hangs = make(chan struct{})
		p.Begin("/far", func() bool { <-hangs; return false })
		go func() {
			time.Sleep(time.Millisecond)
			close(hangs)
		}()
		there = true
		if !at() || len(told) != 1 {
			t.Errorf("a directory that comes back: got %q told, want it present and told once", told)
		}
	})
}

// A look that never comes back, as of a disk that was mounted anew, gives way to another after a while.
func TestALookThatNeverComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Presence[bool]{Patience: time.Second}
		never := make(chan struct{})
		p.At("/far", func() bool { <-never; return true })
		soon, cancel := context.WithTimeout(t.Context(), oldLook/2)
		defer cancel()
		if p.answers(soon, "/far", func() bool { return false }) == nil {
			t.Error("a second look is made at once")
		}
		time.Sleep(oldLook)
		if err := p.answers(t.Context(), "/far", func() bool { return false }); err != nil || p.At("/far", func() bool { return false }) {
			t.Error(err)
		}
		close(never)
		synctest.Wait()
		if p.last["/far"] {
			t.Error("what the old one has found counts")
		}
	})
}

// Who waits for a look waits for another one as well, once it is too old: a disk that was mounted anew never answers the first.
func TestWhoWaitsForALookWaitsForTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Presence[bool]{Patience: time.Second}
		var looks atomic.Int64
		never := make(chan struct{})
		begun := time.Now()
		err := p.answers(t.Context(), "/far", func() bool {
			if looks.Add(1) < 3 {
				<-never
			}
			return false
		})
		if took := time.Since(begun); err != nil || looks.Load() != 3 || took != 3*oldLook {
			t.Errorf("%v, %d looks, %v", err, looks.Load(), took)
		}
		close(never)
	})
}
