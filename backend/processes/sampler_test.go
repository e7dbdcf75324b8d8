package processes_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/processes"
	"deskhand/backend/proxy"
)

const mib = 1 << 20

// agent is an agent that runs, with its memory and its processor time.
type agent struct {
	id     string
	rss    int64 // MiB
	shared int64 // MiB of rss that other processes have too
	cpu    float64
	ending bool
	since  time.Time
	awake  bool // the session refuses to sleep
}

// fixture is a Sampler of agents that exist in memory alone. It belongs to the bubble of a synctest.
type fixture struct {
	*processes.Sampler
	t     *testing.T
	begun time.Time

	mu        sync.Mutex // protects the fields below, and the agents
	agents    []*agent
	changed   chan struct{}
	budget    int64
	measured  int
	exactly   int // of the measurements, those with pss
	published []processes.ProcessSummary
	asleep    []string
}

func open(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, begun: time.Now(), changed: make(chan struct{})}
	f.Sampler = processes.New(processes.Deps{
		Logger: slog.New(slog.DiscardHandler),
		Running: func() (int, <-chan struct{}) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.agents), f.changed
		},
		Measure: f.measure,
		Budget: func() (budget int64) {
			f.set(func() { budget = f.budget * mib })
			return budget
		},
		Publish: func(s processes.ProcessSummary) { f.set(func() { f.published = append(f.published, s) }) },
		Owner: func(u proxy.Usage) (session, title string) {
			if u.Purpose != processes.ForSession {
				return "", ""
			}
			return u.ServerID, "title of " + u.ServerID
		},
		Serves: func(id string) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return slices.ContainsFunc(f.agents, func(a *agent) bool { return a.id == id && !a.ending })
		},
		Idle: f.idle,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return f
}

// set changes what the Sampler sees.
func (f *fixture) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fixture) measure(pss bool) (proxy.Overview, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.measured++
	o := proxy.Overview{Self: proxy.Member{PID: 1, RSS: mib}}
	for i, a := range f.agents {
		m := proxy.Member{PID: i + 2, RSS: a.rss * mib, CPU: time.Duration(a.cpu * float64(time.Since(f.begun)))}
		if pss {
			m.PSS = (a.rss - a.shared) * mib
		}
		o.Usage = append(o.Usage, proxy.Usage{ServerID: a.id, Purpose: processes.ForSession, PID: m.PID, Tree: []proxy.Member{m}})
	}
	if pss {
		f.exactly++
	}
	return o, nil
}

func (f *fixture) idle() (list []processes.Idle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.agents {
		if !a.ending {
			list = append(list, processes.Idle{Session: a.id, ServerID: a.id, Since: a.since, Sleep: func(context.Context) bool {
				if a.awake {
					return false
				}
				f.set(func() { f.asleep = append(f.asleep, a.id) })
				f.end(a.id)
				return true
			}})
		}
	}
	return list
}

// start starts agents that are idle from now on.
func (f *fixture) start(list ...*agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range list {
		a.since = time.Now()
		f.agents = append(f.agents, a)
	}
	f.change()
}

func (f *fixture) end(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.agents = slices.DeleteFunc(f.agents, func(a *agent) bool { return a.id == id })
	f.change()
}

// change tells the Sampler of a start or an end; f.mu is held.
func (f *fixture) change() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// pass lets time pass, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (f *fixture) wantMeasured(when string, want int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.measured != want {
		f.t.Errorf("%s: got %d measurements, want %d", when, f.measured, want)
	}
}

func (f *fixture) wantAsleep(when, want string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := strings.Join(f.asleep, " "); got != want {
		f.t.Errorf("%s: got %q put to sleep, want %q", when, got, want)
	}
}

func TestNothingIsMeasuredWhileNothingRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		pass(24 * time.Hour)
		f.wantMeasured("a day without a process", 0)
		f.start(&agent{id: "a", rss: 10})
		pass(61 * time.Second)
		f.wantMeasured("61 s after a start", 7)
		f.end("a")
		pass(time.Second)
		f.wantMeasured("after the end", 8)
		pass(24 * time.Hour)
		f.wantMeasured("a day after the end", 8)
		f.Nudge()
		pass(time.Hour)
		f.wantMeasured("a Nudge while nothing runs", 8)
	})
}

func TestSummaryIsPublishedWhenItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		sum := func(agents int, rss int64) processes.ProcessSummary {
			return processes.ProcessSummary{Agents: agents, Processes: agents, RSSBytes: rss * mib, SelfRSSBytes: mib}
		}
		published := func(when string, want ...processes.ProcessSummary) {
			t.Helper()
			f.mu.Lock()
			defer f.mu.Unlock()
			if !slices.Equal(f.published, want) {
				t.Errorf("%s: got %+v, want %+v", when, f.published, want)
			}
			f.published = nil
		}
		a := &agent{id: "a", rss: 100}
		f.start(a)
		pass(time.Second)
		published("a start", sum(1, 100))
		pass(time.Hour)
		published("an hour of the same")
		f.set(func() { a.rss = 104 })
		pass(time.Minute)
		published("a small change")
		f.set(func() { a.rss = 106 })
		pass(10 * time.Second)
		published("a change by a 20th", sum(1, 106))
		f.start(&agent{id: "b", rss: 1})
		pass(time.Second)
		published("a second start", sum(2, 107))
		f.end("a")
		f.end("b")
		pass(time.Second)
		published("two ends", sum(0, 0))
	})
}

func TestLongestIdleSleepsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		f.set(func() { f.budget = 100 })
		b, c, a := &agent{id: "b", rss: 40}, &agent{id: "c", rss: 40}, &agent{id: "a", rss: 40}
		f.start(a, b, c)
		pass(10 * time.Second)
		f.set(func() { a.since = time.Now() })
		pass(45 * time.Second)
		f.wantAsleep("within a minute", "")
		pass(20 * time.Second)
		f.wantAsleep("after a minute", "b")
		pass(time.Hour)
		f.wantAsleep("the others are within the budget", "b")
		f.set(func() { f.budget = 50 })
		f.Nudge()
		pass(time.Millisecond)
		f.wantAsleep("a smaller budget", "b c")
		f.set(func() { f.budget, a.rss = 0, 1000 })
		pass(time.Hour)
		f.wantAsleep("no budget", "b c")
	})
}

func TestWhoIsNotPutToSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		f.set(func() { f.budget = 100 })
		f.start(&agent{id: "computes", rss: 60, cpu: 0.2}, &agent{id: "woke", rss: 60, awake: true}, &agent{id: "ends", rss: 90, ending: true}, &agent{id: "idle", rss: 60})
		pass(time.Hour)
		f.wantAsleep("an agent that computes, one that woke, one that ends and one that is idle", "idle")
	})
}

func TestSharedMemoryCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		f.set(func() { f.budget = 100 })
		f.start(&agent{id: "a", rss: 60, shared: 30}, &agent{id: "b", rss: 60, shared: 30}, &agent{id: "c", rss: 60, shared: 30})
		pass(time.Hour)
		f.wantAsleep("90 MiB of 100", "")
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.exactly == 0 {
			t.Error("got no measurement of shared memory, want some: the sum of the RSS is above the budget")
		}
	})
}

func TestListShowsProcessesWithTheirSessions(t *testing.T) {
	t.Parallel()
	s := processes.New(processes.Deps{
		Measure: func(bool) (proxy.Overview, error) {
			return proxy.Overview{
				Self: proxy.Member{PID: 1}, Watchdog: proxy.Member{PID: 2, RSS: mib},
				Usage: []proxy.Usage{
					{PID: 3, Purpose: "unheard of"},
					{PID: 4, Purpose: processes.ForTerminal, For: "s"},
					{PID: 5, Purpose: processes.ForSession, ServerID: "s", Tree: []proxy.Member{{PID: 5, RSS: 3 * mib, PSS: 2 * mib}, {PID: 6, RSS: mib}}},
				},
			}, nil
		},
		Owner: func(u proxy.Usage) (session, title string) { return u.ServerID + u.For, "a title" },
	})
	list, err := s.List(true)
	if err != nil {
		t.Fatalf("List: got %v, want a list", err)
	}
	var owners []string
	for _, a := range list.Items {
		owners = append(owners, a.Owner)
	}
	if want := []string{"session", "terminal", "unheard of", "watchdog"}; !slices.Equal(owners, want) {
		t.Fatalf("got the owners %q, want %q", owners, want)
	}
	if got := list.Items[0]; got.Session != "s" || got.Title != "a title" || *got.RSSBytes != 4*mib || *got.PSSBytes != 2*mib || len(got.Processes) != 2 || got.Processes[1].PSSBytes != nil {
		t.Errorf("got %+v, want the session s with 4 MiB of RSS and 2 MiB of PSS in two processes", got)
	}
	if got := list.Items[1]; got.Session != "s" || got.RSSBytes != nil {
		t.Errorf("got %+v, want the session s and no sizes, which the system did not tell", got)
	}
}
