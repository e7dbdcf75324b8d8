package proxy

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// Every process that was started under one watchdog is in the overview, whichever Set started the process and in whichever way.
func TestOverviewListsAllProcesses(t *testing.T) {
	begun := time.Now()
	t.Setenv(roleVariable, "watchdog")
	a := openSet(t, Config{Watchdog: []string{agentCommand().Path}, Purpose: "first"})
	b := openSet(t, Config{Beside: a, Purpose: "second"})
	c := openSet(t, Config{Beside: b})
	stranger := openSet(t, Config{Purpose: "stranger"})
	if o, err := b.Overview(false); err != nil || len(o.Usage) != 0 || o.Watchdog.PID != 0 || o.Self.PID != os.Getpid() || o.StartedAt.After(begun) {
		t.Errorf("Overview of empty sets: got %+v, error %v, want this process alone, begun before %v", o, err, begun)
	}
	want := map[string]int{}
	start := func(s *Set, id, purpose, listed string) {
		t.Helper()
		cmd := agentCommand()
		cmd.Purpose = purpose
		i, err := s.Start(t.Context(), id, "agent of "+id, cmd)
		if err != nil {
			t.Fatal(err)
		}
		want[listed+" "+id] = i.Status().PID
	}
	start(a, "1", "", "first")
	start(b, "1", "", "second")
	start(b, "2", "other", "other")
	start(c, "3", "", "")
	start(stranger, "4", "", "stranger")
	delete(want, "stranger 4")

	cmd := agentCommand()
	cmd.Purpose = "program"
	reading, ran := make(chan struct{}), make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() {
		_, err := b.Run(ctx, cmd, []byte(`{"method":"deaf"}`+"\n"), func(r io.Reader) error {
			_, err := r.Read(make([]byte, 100))
			close(reading)
			return err
		})
		ran <- err
	}()
	<-reading
	o, err := c.Overview(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range o.Usage {
		if u.ServerID == "" {
			if u.Purpose != "program" || u.Agent == "" || u.PID == 0 || time.Since(u.StartedAt) > time.Minute {
				t.Errorf("usage of a program: got %+v, want its purpose, name and PID", u)
			}
			want[" program"] = u.PID
		} else if want[u.Purpose+" "+u.ServerID] != u.PID || u.Agent != "agent of "+u.ServerID {
			t.Errorf("usage of an instance: got %+v, want the PID and agent of its server_id", u)
		}
		if Measures && (u.RSS() == 0 || u.Tree[0].PID != u.PID) {
			t.Errorf("tree: got %+v, want memory, the process itself first", u)
		}
	}
	if len(o.Usage) != len(want) || len(want) != 5 {
		t.Errorf("Overview: got %d processes, want %d", len(o.Usage), len(want))
	}
	if w := o.Watchdog; w.PID == 0 || slices.ContainsFunc(o.Usage, func(u Usage) bool { return u.PID == w.PID }) || w.StartedAt.Before(begun.Add(-time.Second)) {
		t.Errorf("watchdog: got %+v, want a process of its own", w)
	} else if Measures && (w.RSS < 1<<20 || w.PSS == 0) {
		t.Errorf("watchdog: got %+v, want its memory", w)
	}
	end()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if o, err := a.Overview(false); err != nil || len(o.Usage) != 2 {
		t.Errorf("Overview after a Close: got %+v, error %v, want 2 processes", o, err)
	}
}

func TestRunningCountsStartsAndEnds(t *testing.T) {
	a := openSet(t, Config{})
	b := openSet(t, Config{Beside: a})
	var changed <-chan struct{}
	now := func(want int) {
		t.Helper()
		for end := time.Now().Add(testkit.Limit); ; {
			var n int
			if n, changed = a.Running(); n == want {
				return
			}
			if !await(changed, time.Until(end)) {
				t.Fatalf("%d run, want %d", n, want)
			}
		}
	}
	now(0)
	i, err := a.Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	if !isClosed(changed) {
		t.Error("nobody is told of the start")
	}
	now(1)
	if _, err := b.Start(t.Context(), "a", "fake", agentCommand()); err != nil {
		t.Fatal(err)
	}
	now(2)
	send(t, i, "exit:3")
	now(1)
	if _, err := b.Run(t.Context(), agentCommand(), nil, func(io.Reader) error { now(2); return nil }); err != nil {
		t.Fatal(err)
	}
	now(1)
	if err := b.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if n, _ := b.Running(); n != 0 {
		t.Errorf("Running after all ended: got %d, want 0", n)
	}
	select {
	case <-changed:
	case <-time.After(testkit.Limit):
		t.Error("nobody is told of the end")
	}
	if _, err := a.Start(t.Context(), "x", "fake", Command{Path: "/nonexistent"}); !errors.Is(err, ErrSpawn) {
		t.Error(err)
	}
	now(0)
}
