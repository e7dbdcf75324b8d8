package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
)

// echo is an agent that writes every line back and ends with its stdin; "exit N" ends echo with a code.
func echo(stdin io.Reader, stdout, _ io.Writer) int {
	in := bufio.NewScanner(stdin)
	for in.Scan() {
		var code int
		if n, _ := fmt.Sscanf(in.Text(), `"exit %d"`, &code); n == 1 {
			return code
		}
		fmt.Fprintln(stdout, in.Text())
	}
	return 0
}

func open(t *testing.T, c proxy.Config) *proxy.Set {
	t.Helper()
	if c.Spawn == nil {
		c.Spawn = proxytest.Spawn(echo)
	}
	s, err := proxy.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(t *testing.T, s *proxy.Set, id string) *proxy.Instance {
	t.Helper()
	i, err := s.Start(t.Context(), id, "fake", proxy.Command{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func say(t *testing.T, i *proxy.Instance, msg string) {
	t.Helper()
	if err := i.Send(t.Context(), []byte(msg)); err != nil {
		t.Fatal(err)
	}
}

func nothing(context.Context) (proxy.Command, error) { return proxy.Command{}, nil }

func TestEnsureMakesOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int32
		s := open(t, proxy.Config{})
		prepare := func(ctx context.Context) (proxy.Command, error) {
			starts.Add(1)
			time.Sleep(time.Minute) // an installation
			return proxy.Command{Path: "installed"}, ctx.Err()
		}
		var got sync.Map
		var callers sync.WaitGroup
		for n := range 20 {
			callers.Go(func() {
				agent := []string{"fake", ""}[min(1, n%3)]
				if n == 0 || n > 10 {
					agent = "fake"
				}
				if n > 0 {
					time.Sleep(time.Second)
				}
				i, err := s.Ensure(t.Context(), "a", agent, prepare)
				if err != nil {
					t.Error(err)
				}
				got.Store(i, true)
			})
		}
		time.Sleep(2 * time.Second)
		if list := s.List(); len(list) != 1 || list[0].Phase != proxy.Starting {
			t.Errorf("List during the start: got %+v, want one that starts", list)
		}
		callers.Wait()
		different := 0
		got.Range(func(any, any) bool { different++; return true })
		if different != 1 || starts.Load() != 1 {
			t.Errorf("Ensure at once: got %d instances, %d starts, want 1 of each", different, starts.Load())
		}
		if _, err := s.Ensure(t.Context(), "a", "other", nothing); !errors.Is(err, proxy.ErrConflict) {
			t.Errorf("Ensure with another agent: got error %v, want ErrConflict", err)
		}
		if _, err := s.Ensure(t.Context(), "b", "", nothing); !errors.Is(err, proxy.ErrUnknown) {
			t.Errorf("Ensure of an unknown server_id: got error %v, want ErrUnknown", err)
		}
		if _, err := s.Start(t.Context(), "a", "fake", proxy.Command{}); !errors.Is(err, proxy.ErrConflict) {
			t.Errorf("Start of a running server_id: got error %v, want ErrConflict", err)
		}
	})
}

func TestBootstrapFailureLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		broken := errors.New("no network")
		_, err := s.Ensure(t.Context(), "a", "fake", func(context.Context) (proxy.Command, error) { return proxy.Command{}, broken })
		if !errors.Is(err, broken) || len(s.List()) != 0 {
			t.Errorf("Ensure: got error %v, left %+v, want %v and none", err, s.List(), broken)
		}
	})
}

func TestRemoveCancelsBootstrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		failed := make(chan error)
		go func() {
			_, err := s.Ensure(context.Background(), "a", "fake", func(ctx context.Context) (proxy.Command, error) {
				<-ctx.Done()
				return proxy.Command{Path: "installed"}, ctx.Err()
			})
			failed <- err
		}()
		synctest.Wait()
		go func() { _ = s.Remove("a") }()
		if err := <-failed; !errors.Is(err, proxy.ErrRemoved) {
			t.Error(err)
		}
	})
}

// A start that ignores its cancellation blocks neither DELETE nor the next instance, and its process does not stay.
func TestRemoveDoesNotWaitForDeafBootstrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		go func() {
			_, err := s.Ensure(context.Background(), "a", "fake", func(context.Context) (proxy.Command, error) {
				time.Sleep(time.Hour)
				return proxy.Command{}, nil
			})
			if !errors.Is(err, proxy.ErrRemoved) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		begin := time.Now()
		if err := s.Remove("a"); err != nil || time.Since(begin) > 2*time.Second {
			t.Errorf("Remove: got error %v after %v, want none within 2s", err, time.Since(begin))
		}
		next := start(t, s, "a")
		time.Sleep(2 * time.Hour)
		if list := s.List(); len(list) != 1 || list[0].Phase != proxy.Running {
			t.Errorf("List: got %+v, want one that runs", list)
		}
		say(t, next, `"still here"`)
	})
}

func TestNumbersGoOnOverRestartsAndStartAgainAfterRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		first := start(t, s, "a")
		follower := first.After(0)
		defer follower.Close()
		say(t, first, `"one"`)
		say(t, first, `"exit 3"`)
		<-first.Exited()
		if _, err := s.Ensure(t.Context(), "a", "", nothing); !errors.Is(err, proxy.ErrExited) {
			t.Errorf("Ensure of an exited server_id: got error %v, want ErrExited", err)
		}
		if _, err := s.Ensure(t.Context(), "a", "other", nothing); !errors.Is(err, proxy.ErrConflict) {
			t.Errorf("Ensure with another agent: got error %v, want ErrConflict", err)
		}
		second := start(t, s, "a")
		say(t, second, `"two"`)
		synctest.Wait()
		want := []string{`1 "one"`, `2 {"jsonrpc":"2.0","method":"_adapter/agent_exited","params":{"success":false,"code":3}}`, `3 "two"`}
		if got := read(t, follower); got != strings.Join(want, "\n") {
			t.Errorf("log over the restart: got %s, want %s", got, strings.Join(want, "\n"))
		}
		own := second.After(second.Since())
		defer own.Close()
		if got := read(t, own); got != want[2] {
			t.Errorf("log of the second process: got %s, want %s", got, want[2])
		}
		if err := first.Close(); err != nil { // an earlier instance, whose end does not affect the later instance
			t.Error(err)
		}
		say(t, second, `"three"`)
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		if got := read(t, follower); !strings.HasPrefix(got, `4 "three"`) || !strings.HasSuffix(got, "EOF") {
			t.Errorf("log at the end: got %s, want number 4, then io.EOF", got)
		}
		third := start(t, s, "a")
		say(t, third, `"four"`)
		synctest.Wait()
		r := third.After(0)
		defer r.Close()
		if got := read(t, r); got != `1 "four"` {
			t.Errorf("log after the removal: got %s, want number 1 again", got)
		}
	})
}

// read returns the messages of a reader, line by line.
func read(t *testing.T, r *proxy.Reader) string {
	t.Helper()
	var lines []string
	for {
		batch, _, err := r.Poll()
		if err != nil {
			return strings.Join(append(lines, err.Error()), "\n")
		}
		if len(batch) == 0 {
			return strings.Join(lines, "\n")
		}
		for _, m := range batch {
			lines = append(lines, fmt.Sprintf("%d %s", m.Seq, m.Data))
		}
	}
}

func TestExitedInstancesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		i := start(t, s, "a")
		say(t, i, `"exit 0"`)
		<-i.Exited()
		r, err := s.Reader(t.Context(), "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		time.Sleep(10*time.Minute - time.Second)
		if list := s.List(); len(list) != 1 || list[0].Phase != proxy.Exited || *list[0].ExitCode != 0 {
			t.Errorf("List before the expiry: got %+v, want one, exited with 0", list)
		}
		time.Sleep(2 * time.Second)
		if list := s.List(); len(list) != 0 {
			t.Errorf("List after the expiry: got %+v, want none", list)
		}
		if got := read(t, r); !strings.HasSuffix(got, "EOF") {
			t.Errorf("reader after the expiry: got %s, want io.EOF", got)
		}
	})
}

func TestRestartKeepsInstanceFromExpiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		i := start(t, s, "a")
		say(t, i, `"exit 0"`)
		<-i.Exited()
		time.Sleep(9 * time.Minute)
		failure := errors.New("not now")
		if _, err := s.Ensure(t.Context(), "a", "fake", func(context.Context) (proxy.Command, error) { return proxy.Command{}, failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		if len(s.List()) != 1 {
			t.Error("a failed restart did not start the time anew")
		}
		start(t, s, "a")
		time.Sleep(time.Hour)
		if len(s.List()) != 1 {
			t.Error("a running instance expired")
		}
	})
}

func TestExitedInstancesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		start(t, s, "live")
		for n := range 70 {
			i := start(t, s, fmt.Sprintf("s%02d", n))
			say(t, i, `"exit 0"`)
			<-i.Exited()
			time.Sleep(time.Second)
		}
		list := s.List()
		if len(list) != 65 || list[0].ServerID != "live" || list[1].ServerID != "s06" || list[64].ServerID != "s69" {
			t.Errorf("List: got %d, %s to %s, want 65, s06 to s69", len(list), list[1].ServerID, list[len(list)-1].ServerID)
		}
	})
}

func TestReaderWaitsForInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		begin := time.Now()
		if _, err := s.Reader(t.Context(), "a", 0); !errors.Is(err, proxy.ErrUnknown) || time.Since(begin) != 2*time.Second {
			t.Errorf("Reader of an unknown server_id: got error %v after %v, want ErrUnknown after 2s", err, time.Since(begin))
		}
		go func() {
			time.Sleep(time.Second)
			_, _ = s.Ensure(context.Background(), "a", "fake", func(context.Context) (proxy.Command, error) {
				time.Sleep(time.Minute)
				return proxy.Command{}, nil
			})
		}()
		begin = time.Now()
		r, err := s.Reader(t.Context(), "a", 0)
		if err != nil || time.Since(begin) != 61*time.Second {
			t.Fatalf("Reader during a start: got error %v after %v, want none after 61s", err, time.Since(begin))
		}
		r.Close()
		go func() {
			_, _ = s.Ensure(context.Background(), "b", "fake", func(context.Context) (proxy.Command, error) {
				time.Sleep(time.Minute)
				return proxy.Command{}, errors.New("failed")
			})
		}()
		begin = time.Now()
		if _, err := s.Reader(t.Context(), "b", 0); !errors.Is(err, proxy.ErrUnknown) || time.Since(begin) != time.Minute {
			t.Errorf("Reader during a failing start: got error %v after %v, want ErrUnknown after 1m", err, time.Since(begin))
		}
	})
}

func TestClosedSetRefusesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, proxy.Config{})
		i := start(t, s, "a")
		r := i.After(0)
		defer r.Close()
		go func() {
			_, err := s.Ensure(context.Background(), "b", "fake", func(ctx context.Context) (proxy.Command, error) {
				<-ctx.Done()
				return proxy.Command{Path: "installed"}, ctx.Err()
			})
			if !errors.Is(err, proxy.ErrRemoved) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Start(t.Context(), "c", "fake", proxy.Command{}); !errors.Is(err, proxy.ErrClosed) {
			t.Error(err)
		}
		if _, err := s.Reader(t.Context(), "c", 0); !errors.Is(err, proxy.ErrUnknown) {
			t.Error(err)
		}
		if got := read(t, r); !strings.HasSuffix(got, "EOF") {
			t.Errorf("messages: got %q, want EOF at the end", got)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
}

// All kinds of calls at once on few server_ids: no call may hang, and Close must end everything.
func TestSetUnderLoadKeepsOneProcessPerServerID(t *testing.T) {
	s := open(t, proxy.Config{LogBytes: 32 << 10})
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var work sync.WaitGroup
	for n := range 12 {
		id := fmt.Sprintf("s%d", n%3)
		work.Go(func() {
			for ctx.Err() == nil {
				switch n % 4 {
				case 0:
					_ = s.Remove(id)
				case 1:
					if r, err := s.Reader(ctx, id, 0); err == nil {
						short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
						_, _ = r.Next(short)
						cancel()
						r.Close()
					}
				default:
					i, err := s.Ensure(ctx, id, "fake", nothing)
					if err == nil {
						_ = i.Send(ctx, []byte(`{"method":"m"}`))
						_ = i.Send(ctx, []byte(`"exit 1"`))
					}
				}
				s.List()
			}
		})
	}
	work.Wait()
}

// late is a process that takes a while to be killed, as on a busy machine.
type late struct {
	proxy.Process
	takes time.Duration
}

func (l late) Kill(patience time.Duration) error {
	if patience < l.takes {
		time.Sleep(patience)
		go func() {
			time.Sleep(l.takes - patience)
			_ = l.Process.Kill(0)
		}()
		return proxy.ErrStuck
	}
	return l.Process.Kill(patience)
}

// deafAgent starts agents that end with the test, or when killed.
func deafAgent(t *testing.T) func(proxy.Command) (proxy.Process, error) {
	t.Helper()
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return proxytest.Spawn(func(io.Reader, io.Writer, io.Writer) int {
		<-end
		return 0
	})
}

// A DELETE has a time limit, and the end of the program a longer limit: an agent that is gone when Close returns is no error.
func TestCloseWaitsForLateExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := deafAgent(t)
		set, err := proxy.Open(proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
			p, err := deaf(c)
			return late{p, 3 * time.Second}, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := set.Start(t.Context(), "x", "mock", proxy.Command{}); err != nil {
			t.Fatal(err)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}

// drowsy is a process on a busy machine: dead at once, but reported a second later.
type drowsy struct{ proxy.Process }

func (d drowsy) Wait() proxy.Exit {
	exit := d.Process.Wait()
	time.Sleep(time.Second)
	return exit
}

// A killed process is not reported as left, however late its end is noticed.
func TestCloseWaitsForLateNoticeOfExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := deafAgent(t)
		set := open(t, proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
			p, err := deaf(c)
			return drowsy{p}, err
		}})
		if err := start(t, set, "x").Close(); err != nil {
			t.Error(err)
		}
	})
}
