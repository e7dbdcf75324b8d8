package proxy

import (
	"slices"
	"testing"
	"time"
)

// kinOf returns a process of an instance by its number.
func kinOf(t *testing.T, i *Instance, pid int) Relative {
	t.Helper()
	kin, err := i.Kin()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(kin.All, func(r Relative) bool { return r.PID == pid })
	if at < 0 {
		t.Fatalf("process %d is not among %+v", pid, kin.All)
	}
	return kin.All[at]
}

func TestKinTellsWhatAnAgentHasStarted(t *testing.T) {
	i, err := openSet(t, Config{}).Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	began := time.Now()
	for _, how := range []string{"", "session"} {
		pid := spawned(t, i, r, how)
		got, agent := kinOf(t, i, pid), i.Status().PID
		wantSession := map[string]int{"": agent, "session": pid}[how]
		if got.Parent != agent || got.Session != wantSession || len(got.Args) == 0 || got.StartedAt.Before(began.Add(-time.Second)) || got.StartedAt.After(time.Now().Add(time.Second)) {
			t.Errorf("escape %q: got %+v, want parent %d, session %d, arguments, and a start of now", how, got, agent, wantSession)
		}
	}
	if kin, err := i.Kin(); err != nil || kin.Head.PID != i.Status().PID {
		t.Errorf("head: got %+v (%v), want process %d", kin.Head, err, i.Status().PID)
	}
}

func TestPartEndsWhatItNamesAndNothingElse(t *testing.T) {
	i, err := openSet(t, Config{}).Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	for _, how := range []string{"", "group", "session", "daemon"} {
		pid := spawned(t, i, r, how)
		if how == "daemon" { // the spawned process is gone; its child is left
			pid = newest(t, i)
		}
		other := spawned(t, i, r, "")
		part, err := i.Part([]ProcessID{kinOf(t, i, pid).ProcessID})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := part.Running(); n != 1 || err != nil {
			t.Errorf("escape %q: %d processes run (%v), want 1", how, n, err)
		}
		if err := part.End(20*time.Millisecond, 10*time.Second); err != nil { // the process ignores SIGTERM
			t.Errorf("escape %q: %v", how, err)
		}
		if n, err := part.Running(); n != 0 || err != nil || !gone(pid) {
			t.Errorf("escape %q: after the end %d processes run (%v)", how, n, err)
		}
		kinOf(t, i, other) // fails when the process is gone
		if !i.live() {
			t.Fatalf("escape %q: the agent has ended with the part", how)
		}
	}
}

// newest returns the process of an instance that started last.
func newest(t *testing.T, i *Instance) int {
	t.Helper()
	var pid int
	if !comesTrue(func() bool {
		kin, err := i.Kin()
		if err != nil || len(kin.All) < 2 {
			return false
		}
		last := slices.MaxFunc(kin.All, func(a, b Relative) int { return int(a.Start) - int(b.Start) })
		pid = last.PID
		return last.Session == last.PID && last.Parent != i.Status().PID
	}) {
		t.Fatal("no descendant in a session of its own came")
	}
	return pid
}

func TestPartTakesNoOtherProcessOfTheNumber(t *testing.T) {
	i, err := openSet(t, Config{}).Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	r := traceOf(t, i)
	id := kinOf(t, i, spawned(t, i, r, "session")).ProcessID
	agent := kinOf(t, i, i.Status().PID).ProcessID
	for name, wrong := range map[string]ProcessID{
		"an earlier process of the number": {id.PID, id.Start - 1}, "the agent itself": agent, "a stranger": {1, 0},
	} {
		part, err := i.Part([]ProcessID{wrong})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := part.Running(); n != 0 || err != nil {
			t.Errorf("%s: %d processes run (%v), want none", name, n, err)
		}
		if err := part.End(0, time.Second); err != nil {
			t.Errorf("%s: End: got error %v, want none", name, err)
		}
	}
	kinOf(t, i, id.PID)
	if !i.live() {
		t.Error("the agent has ended")
	}
}

func TestSplitArgs(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "\x00\x00": nil, "sh\x00-c\x00sleep 1\x00": {"sh", "-c", "sleep 1"}, "npm run dev\x00\x00\x00": {"npm run dev"}, "a\x00\x00b\x00": {"a", "", "b"},
	} {
		if got := splitArgs([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("splitArgs(%q): got %q, want %q", text, got, want)
		}
	}
}
