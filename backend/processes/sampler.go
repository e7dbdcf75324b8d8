// Package processes knows what runs because of Deskhand: every process that it has started, the memory and the processor time that they take,
// and the memory budget of the agents of sessions. A Sampler measures the processes while any run, publishes a summary when the summary
// changes, and puts the agents to sleep that have been idle the longest while all agents together take more than the budget.
//
// The package hides when and how exactly the processes are measured, and which agents count as idle although their sessions rest.
package processes

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"deskhand/backend/proxy"
)

const (
	defaultPace  = 10 * time.Second
	defaultLeast = time.Minute

	settle    = 250 * time.Millisecond // starts and ends within settle are measured together
	tellFrom  = 20                     // a change of a size by less than a 20th is not published
	busyShare = 0.1                    // of one processor; an agent that takes more is not idle, whatever its session says
)

// ProcessSummary is the data of a process.upsert event: the sum of all processes that Deskhand has started.
type ProcessSummary struct {
	Agents       int   `json:"agents" doc:"Agents of sessions, and of callers of /v1"`
	Processes    int   `json:"processes" doc:"Of all agents and other programs, with the watchdog and without this program"`
	RSSBytes     int64 `json:"rssBytes" doc:"The memory of agents and other programs; what they share counts once for each. 0 where the system does not tell"`
	SelfRSSBytes int64 `json:"selfRssBytes" doc:"The memory of this program, its watchdog and the engine of its window, with what the engine shares with it counted once"`
}

// Deps are the surroundings of a Sampler.
type Deps struct {
	Logger  *slog.Logger
	Running func() (n int, changed <-chan struct{})   // counts the processes; changed is closed at the next start or end
	Measure func(pss bool) (proxy.Overview, error)    // measures them; with pss shared memory counts once
	Budget  func() int64                              // of the agents of all sessions, in bytes; 0 = no budget
	Publish func(ProcessSummary)                      // tells every surface
	Owner   func(proxy.Usage) (session, title string) // the session that a process runs for; "" = none
	Serves  func(serverID string) bool                // a session uses that agent now, and is not ending it
	Idle    func() []Idle                             // the agents that can be put to sleep
	Pace    time.Duration                             // between two measurements while anything runs; 0 = 10 s
	Least   time.Duration                             // how long an agent must be idle before it may be put to sleep, since a person who reads an answer is about to write; 0 = a minute
}

// Idle is an agent that can be put to sleep: the session loses nothing with the process.
type Idle struct {
	Session  string
	ServerID string
	Since    time.Time                  // when something last happened in the session
	Sleep    func(context.Context) bool // ends the agent, unless something has happened in the session meanwhile
}

// Sampler measures the processes.
type Sampler struct {
	Deps

	poke chan struct{} // of one: a token when the budget has changed

	told   ProcessSummary
	before map[string]time.Duration // the CPU time of each agent at the last measurement, by server_id
	at     time.Time                // of that measurement
	busy   map[string]bool          // whether each agent computed between the last two measurements; an unknown agent is absent
}

// New returns a Sampler.
func New(deps Deps) *Sampler {
	deps.Pace, deps.Least = cmp.Or(deps.Pace, defaultPace), cmp.Or(deps.Least, defaultLeast)
	return &Sampler{Deps: deps, poke: make(chan struct{}, 1), busy: map[string]bool{}}
}

// Nudge makes Run measure at once; the budget may have changed.
func (s *Sampler) Nudge() {
	select {
	case s.poke <- struct{}{}:
	default: // Run has a token already
	}
}

// Run measures until the end of ctx. While nothing runs, Run waits for a start or a Nudge.
func (s *Sampler) Run(ctx context.Context) {
	for news := false; ; {
		n, changed := s.Running()
		if n > 0 || news {
			s.look(ctx, news)
		}
		news = false
		var tick <-chan time.Time
		if n > 0 {
			tick = time.After(s.Pace)
		}
		select {
		case <-changed:
			news = true
			select {
			case <-time.After(settle):
			case <-ctx.Done():
				return
			}
		case <-s.poke:
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// look measures once, publishes the summary and keeps the budget.
func (s *Sampler) look(ctx context.Context, news bool) {
	all, err := s.Measure(false)
	if err != nil {
		s.Logger.Warn("the processes cannot be looked at", "error", err)
		return
	}
	s.tell(summarize(all), news)
	s.compare(all.Usage)
	budget := s.Budget()
	if budget == 0 || !proxy.Measures {
		return
	}
	if total, _ := weigh(s.serving(all.Usage)); total > budget {
		s.keep(ctx, budget)
	}
}

func summarize(all proxy.Overview) ProcessSummary {
	sum := ProcessSummary{SelfRSSBytes: all.Self.RSS + all.Watchdog.RSS}
	if all.Watchdog.PID != 0 {
		sum.Processes++
	}
	for _, u := range all.Usage {
		if u.Purpose == ForSession || u.Purpose == ForAPI {
			sum.Agents++
		}
		sum.Processes += max(len(u.Tree), 1)
		sum.RSSBytes += u.RSS()
	}
	return sum
}

// tell publishes a summary: always after a start or an end, else when it differs enough from the last one.
func (s *Sampler) tell(now ProcessSummary, news bool) {
	differs := func(a, b int64) bool { return max(a, b)-min(a, b) > max(a, b)/tellFrom }
	if !news && now.Agents == s.told.Agents && now.Processes == s.told.Processes &&
		!differs(now.RSSBytes, s.told.RSSBytes) && !differs(now.SelfRSSBytes, s.told.SelfRSSBytes) {
		return
	}
	s.told = now
	s.Publish(now)
}

// compare finds the agents that have computed since the last measurement. A measurement that follows closely is skipped, because the system
// counts in hundredths of a second.
func (s *Sampler) compare(usage []proxy.Usage) {
	passed := time.Since(s.at)
	if s.before != nil && passed < s.Pace/2 {
		return
	}
	now := make(map[string]time.Duration, len(usage))
	clear(s.busy)
	for _, u := range usage {
		if u.Purpose != ForSession {
			continue
		}
		now[u.ServerID] = u.CPU()
		if before, known := s.before[u.ServerID]; known {
			s.busy[u.ServerID] = float64(now[u.ServerID]-before) > busyShare*float64(passed)
		}
	}
	s.before, s.at = now, time.Now()
}

// keep puts agents to sleep, the longest idle first, until the others are within the budget. The agents are measured once more with shared
// memory counted once: the sum of their RSS may be far more than all of them take.
func (s *Sampler) keep(ctx context.Context, budget int64) {
	all, err := s.Measure(true)
	if err != nil {
		s.Logger.Warn("the processes cannot be measured", "error", err)
		return
	}
	total, weight := weigh(s.serving(all.Usage))
	idle := s.Idle()
	slices.SortFunc(idle, func(a, b Idle) int { return a.Since.Compare(b.Since) })
	for _, i := range idle {
		if total <= budget {
			return
		}
		size, runs := weight[i.ServerID]
		if busy, known := s.busy[i.ServerID]; !runs || !known || busy || time.Since(i.Since) < s.Least {
			continue
		}
		if i.Sleep(ctx) {
			total -= size
			s.Logger.Info("an idle agent is put to sleep", "session", i.Session, "bytes", size, "budget", budget)
		}
	}
}

// serving returns the usage of the agents that sessions use now. An agent that is being ended still takes memory, but not for long: with that
// agent in the sum, another agent would be put to sleep in its place.
func (s *Sampler) serving(usage []proxy.Usage) (list []proxy.Usage) {
	for _, u := range usage {
		if u.Purpose == ForSession && s.Serves(u.ServerID) {
			list = append(list, u)
		}
	}
	return list
}

// weigh returns the memory of each agent, by server_id, and of all together. A process without a PSS counts with its RSS.
func weigh(usage []proxy.Usage) (total int64, weight map[string]int64) {
	weight = make(map[string]int64, len(usage))
	for _, u := range usage {
		for _, m := range u.Tree {
			weight[u.ServerID] += cmp.Or(m.PSS, m.RSS)
		}
		total += weight[u.ServerID]
	}
	return total, weight
}
