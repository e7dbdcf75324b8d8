package forge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/refusal"
)

// asker counts the questions to a forge.
type asker struct {
	n      int
	answer answer
	err    error
}

func (a *asker) ask(context.Context) (answer, error) {
	a.n++
	return a.answer, a.err
}

func (a *asker) expect(t *testing.T, when string, want int) {
	t.Helper()
	if a.n != want {
		t.Fatalf("questions %s: got %d, want %d", when, a.n, want)
	}
}

func TestForgeIsAskedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, a := newKeeper(), &asker{answer: answer{into: "acme/app", request: &PullRequest{State: StateOpen}}}
		get := func(fresh bool) { _, _, _ = k.get(t.Context(), "h", "k", fresh, a.ask) }
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { get(false) })
		}
		all.Wait()
		a.expect(t, "of twenty at once", 1)
		time.Sleep(59 * time.Second)
		get(false)
		a.expect(t, "within a minute", 1)
		time.Sleep(time.Second)
		get(false)
		a.expect(t, "after a minute", 2)
		get(true)
		a.expect(t, "of a person at once", 2)
		time.Sleep(leastPause)
		get(true)
		a.expect(t, "of a person after a pause", 3)
		a.answer.request.State = StateMerged
		time.Sleep(everyOpen)
		get(false)
		time.Sleep(everyEnded - time.Second)
		get(false)
		a.expect(t, "about one that is merged", 4)
		if got, at, err := k.get(t.Context(), "h", "other", false, a.ask); got.into != "acme/app" || !at.Equal(time.Now()) || err != nil {
			t.Errorf("get: got %+v at %v, error %v, want the answer of now", got, at, err)
		}
		k.put(t.Context(), "h", "k", answer{into: "made"})
		if got, _, _ := k.get(t.Context(), "h", "k", false, func(context.Context) (answer, error) { return answer{}, errors.New("x") }); got.into != "made" {
			t.Errorf("get after put: got %q, want the answer that was put", got.into)
		}
	})
}

func TestForgeIsLeftAloneAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, a := newKeeper(), &asker{answer: answer{into: "acme/app"}}
		get := func(fresh bool) (answer, error) {
			got, _, err := k.get(t.Context(), "h", "k", fresh, a.ask)
			return got, err
		}
		if _, err := get(false); err != nil {
			t.Fatal(err)
		}
		a.err = &refusal.Error{Code: refusedNetwork}
		for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
			time.Sleep(pause - time.Second)
			_, _ = get(false)
			a.expect(t, fmt.Sprintf("before %v", pause), i+1)
			time.Sleep(time.Second)
			got, err := get(false)
			a.expect(t, fmt.Sprintf("after %v", pause), i+2)
			if got.into != "acme/app" || !errors.Is(err, a.err) {
				t.Fatalf("get after %d failures: got %+v, error %v, want the last answer and the failure", i+1, got, err)
			}
		}
		time.Sleep(leastPause)
		a.err = nil
		if _, err := get(true); err != nil {
			t.Fatalf("get of a person: got error %v, want none", err)
		}
		a.expect(t, "of a person", 8)
	})
}

func TestHostThatWantsNoCallsGetsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, a := newKeeper(), &asker{err: &limited{&refusal.Error{Code: refusedLimit}, 10 * time.Minute}}
		get := func(host, key string) error {
			_, _, err := k.get(t.Context(), host, key, true, a.ask)
			return err
		}
		_ = get("h", "k")
		time.Sleep(10*time.Minute - time.Second)
		for _, key := range []string{"k", "other"} {
			err := get("h", key)
			if r, is := errors.AsType[*refusal.Error](err); !is || r.Code != refusedLimit {
				t.Fatalf("get of %s: got error %v, want the refusal %s", key, err, refusedLimit)
			}
		}
		a.expect(t, "of the host", 1)
		a.err = nil
		if err := get("elsewhere", "k"); err != nil {
			t.Fatalf("get of another host: got error %v, want none", err)
		}
		time.Sleep(time.Second)
		if err := get("h", "other"); err != nil {
			t.Fatalf("get after the time: got error %v, want none", err)
		}
		a.expect(t, "of both hosts", 3)
	})
}

func TestCallerThatLeavesTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, a := newKeeper(), &asker{}
		ctx, leave := context.WithCancel(t.Context())
		_, _, err := k.get(ctx, "h", "k", false, func(ctx context.Context) (answer, error) { leave(); return answer{}, ctx.Err() })
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("get: got error %v, want %v", err, context.Canceled)
		}
		if _, _, err := k.get(t.Context(), "h", "k", false, a.ask); err != nil {
			t.Fatalf("get afterwards: got error %v, want none", err)
		}
		a.expect(t, "afterwards", 1)
	})
}

func TestKeeperForgetsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, a := newKeeper(), &asker{}
		for i := range mostKept + 50 {
			_, _, _ = k.get(t.Context(), "h", fmt.Sprint(i), false, a.ask)
			time.Sleep(time.Millisecond)
		}
		if len(k.kept) != mostKept {
			t.Fatalf("kept answers: got %d, want %d", len(k.kept), mostKept)
		}
		if _, is := k.kept["h 249"]; !is {
			t.Error("the newest answer is gone")
		}
	})
}
