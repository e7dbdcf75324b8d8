package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
)

// watched is a process whose end is recorded, and may be delayed as if a descendant did not die.
type watched struct {
	proxy.Process
	ended func()
	hold  <-chan struct{}
}

func (w watched) Wait() proxy.Exit {
	defer w.ended()
	return w.Process.Wait()
}

func (w watched) Kill(patience time.Duration) error {
	if w.hold != nil {
		<-w.hold
	}
	return w.Process.Kill(patience)
}

// deaf is an agent that reads nothing, and ends when killed.
func deaf(t *testing.T) proxytest.Agent {
	t.Helper()
	return func(io.Reader, io.Writer, io.Writer) int {
		<-t.Context().Done()
		return 0
	}
}

// A server_id has one process at a time, even during a removal: calls that remove or start the server_id meanwhile wait for the end.
func TestStartWaitsForRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		s := open(t, proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
			if running.Add(1) > 1 {
				t.Error("two processes at once")
			}
			p, err := proxytest.Spawn(deaf(t))(c)
			return watched{Process: p, ended: func() { running.Add(-1) }}, err
		}})
		start(t, s, "a")
		begin := time.Now()
		var callers sync.WaitGroup
		remove := func() {
			if err := s.Remove("a"); err != nil || running.Load() > 0 || time.Since(begin) > 2*time.Second {
				t.Errorf("Remove: got error %v after %v, %d processes left, want none within 2s", err, time.Since(begin), running.Load())
			}
		}
		callers.Go(remove)
		synctest.Wait()
		if list := s.List(); len(list) != 0 {
			t.Errorf("List during the removal: got %+v, want none", list)
		}
		if _, err := s.Ensure(t.Context(), "a", "", nothing); !errors.Is(err, proxy.ErrUnknown) {
			t.Errorf("Ensure without an agent: got error %v, want ErrUnknown", err)
		}
		remove()
		callers.Wait()

		first := start(t, s, "a")
		callers.Go(func() { _ = s.Remove("a") })
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Ensure(short, "a", "fake", nothing); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ensure during the removal: got error %v, want context.DeadlineExceeded", err)
		}
		if next := start(t, s, "a"); next == first {
			t.Error("the removed one was given")
		}
		callers.Wait()
	})
}

// A caller that waits for an end, to start anew after that, is refused by a removal at once, and the removed process is gone when the
// removal returns.
func TestRemovalRefusesCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		spawned := 0
		s := open(t, proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
			spawned++
			if spawned == 1 {
				p, err := proxytest.Spawn(deaf(t))(c)
				return watched{Process: p, ended: func() {}}, err
			}
			p, err := proxytest.Spawn(echo)(c)
			return watched{Process: p, ended: func() {}, hold: hold}, err
		}})
		var callers sync.WaitGroup
		refused := func() {
			callers.Go(func() {
				begin := time.Now()
				if _, err := s.Ensure(t.Context(), "a", "fake", nothing); !errors.Is(err, proxy.ErrRemoved) || time.Since(begin) != time.Second/4 {
					t.Errorf("Ensure during a removal: got error %v after %v, want ErrRemoved after 250ms", err, time.Since(begin))
				}
			})
			synctest.Wait()
			time.Sleep(time.Second / 4)
		}
		start(t, s, "a")
		callers.Go(func() { _ = s.Remove("a") })
		synctest.Wait()
		refused() // waits for the process that is being removed
		if err := s.Remove("a"); err != nil || len(s.List()) > 0 {
			t.Errorf("Remove once more: got error %v, %d left, want none", err, len(s.List()))
		}
		callers.Wait()

		say(t, start(t, s, "a"), `"exit 0"`)
		synctest.Wait()
		refused() // waits for the process that ends by itself
		callers.Go(func() { _ = s.Remove("a") })
		synctest.Wait()
		close(hold)
		callers.Wait()
		if spawned != 2 || len(s.List()) > 0 {
			t.Errorf("end: got %d started, %d left, want 2 and 0", spawned, len(s.List()))
		}
	})
}

// The oldest exited instance is forgotten, not the one that is ending.
func TestEndingInstanceIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var spawned atomic.Int32
		s := open(t, proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
			p, err := proxytest.Spawn(echo)(c)
			w := watched{Process: p, ended: func() {}}
			if spawned.Add(1) == 1 {
				w.hold = hold
			}
			return w, err
		}})
		ending := start(t, s, "ending")
		say(t, ending, `"exit 0"`)
		for n := range 64 {
			i := start(t, s, fmt.Sprintf("s%02d", n))
			say(t, i, `"exit 0"`)
			<-i.Exited()
			time.Sleep(time.Second)
		}
		if list := s.List(); len(list) != 65 || list[0].ServerID != "ending" {
			t.Errorf("List: got %d, the first %s, want 65, ending", len(list), list[0].ServerID)
		}
		close(hold)
		<-ending.Exited()
		if list := s.List(); len(list) != 64 || list[0].ServerID != "ending" || list[1].ServerID != "s01" {
			t.Errorf("List after the end: got %d, %s and %s first, want 64, ending and s01", len(list), list[0].ServerID, list[1].ServerID)
		}
	})
}
