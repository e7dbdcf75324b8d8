package session

import (
	"cmp"
	"context"
	"slices"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
)

// How often the processes are looked at while any run, and how long an agent must have been idle before it may be put to sleep: who
// reads an answer is about to write the next question.
const (
	samplePace = 10 * time.Second
	leastIdle  = time.Minute
)

const (
	settle    = 250 * time.Millisecond // what comes and goes together is looked at once
	tellFrom  = 20                     // a change by less than a 20th is no news
	busyShare = 0.1                    // of one processor: who takes more is not idle, whatever the protocol says
	mib       = 1 << 20
)

const eventProcess = "process.upsert"

// ProcessSummary is the data of a process.upsert event: everything that runs because of us, in sum.
type ProcessSummary struct {
	Agents       int   `json:"agents" doc:"Agents of sessions, and of callers of /v1"`
	Processes    int   `json:"processes" doc:"Of all agents and other programs, with the watchdog and without this program"`
	RSSBytes     int64 `json:"rssBytes" doc:"The memory of agents and other programs; what they share counts once for each. 0 where the system does not tell"`
	SelfRSSBytes int64 `json:"selfRssBytes" doc:"The memory of this program, its watchdog and the engine of its window, with what the engine shares with it counted once"`
}

// sampler looks at the processes while there are any, tells what they take, and keeps the agents of sessions within the memory budget.
// Its goroutine belongs to the client. While nothing runs it waits for a start and does nothing else.
type sampler struct {
	c     *Client
	set   *proxy.Set // any of those that share a watchdog
	pace  time.Duration
	least time.Duration
	poke  chan struct{} // of one: a token when the settings have changed

	measure func(pss bool) (proxy.Overview, error) // Overview of set; tests put numbers of their own in its place, for a fake clock

	told   ProcessSummary
	before map[string]time.Duration // the CPU time of each agent when it was measured last, by server_id
	at     time.Time                // when that was
	busy   map[string]bool          // who has computed between the last two measurements; who is not in it is not known yet
}

func newSampler(c *Client) *sampler {
	return &sampler{
		c: c, set: c.cfg.Proxy, pace: cmp.Or(c.cfg.SamplePace, samplePace), least: cmp.Or(c.cfg.LeastIdle, leastIdle),
		poke: make(chan struct{}, 1), busy: map[string]bool{}, measure: c.cfg.Proxy.Overview,
	}
}

// nudge has the sampler look at once.
func (s *sampler) nudge() {
	select {
	case s.poke <- struct{}{}:
	default: // it is going to
	}
}

// run is the goroutine.
func (s *sampler) run(ctx context.Context) {
	for news := false; ; {
		n, changed := s.set.Running()
		if n > 0 || news {
			s.look(ctx, news)
		}
		news = false
		var tick <-chan time.Time
		if n > 0 {
			tick = time.After(s.pace)
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

// look measures once, and does what follows from it.
func (s *sampler) look(ctx context.Context, news bool) {
	all, err := s.measure(false)
	if err != nil {
		s.c.cfg.Logger.Warn("the processes cannot be looked at", "error", err)
		return
	}
	s.tell(summarize(all), news)
	s.compare(all.Usage)
	budget := int64(s.c.cfg.Settings.Get().MemoryBudgetMiB) * mib
	if budget == 0 || !proxy.Measures {
		return
	}
	if total, _ := weigh(s.c.serving(all.Usage)); total > budget {
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

// tell publishes a summary: always when something came or went, else when it differs from what was told.
func (s *sampler) tell(now ProcessSummary, news bool) {
	differs := func(a, b int64) bool { return max(a, b)-min(a, b) > max(a, b)/tellFrom }
	if !news && now.Agents == s.told.Agents && now.Processes == s.told.Processes &&
		!differs(now.RSSBytes, s.told.RSSBytes) && !differs(now.SelfRSSBytes, s.told.SelfRSSBytes) {
		return
	}
	s.told = now
	s.c.feed.publish(Event{Type: eventProcess, Data: mustJSON(now)})
}

// compare notes which agents have computed since they were measured last. Measurements that follow each other closely are left out:
// the system counts in hundredths of a second.
func (s *sampler) compare(usage []proxy.Usage) {
	passed := time.Since(s.at)
	if s.before != nil && passed < s.pace/2 {
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

// keep puts agents to sleep until those that are left are within the budget, the longest idle first. They are measured once more, with
// what they share counted once, which takes longer: the sum of what each of them has in memory may be far more than all of them take.
func (s *sampler) keep(ctx context.Context, budget int64) {
	all, err := s.measure(true)
	if err != nil {
		s.c.cfg.Logger.Warn("the processes cannot be measured", "error", err)
		return
	}
	total, weight := weigh(s.c.serving(all.Usage))
	for _, i := range s.c.idle() {
		if total <= budget {
			return
		}
		size, runs := weight[i.serverID]
		if busy, known := s.busy[i.serverID]; !runs || !known || busy || time.Since(i.since) < s.least {
			continue
		}
		if i.v.sleep(ctx, i.rest) {
			total -= size
			s.c.cfg.Logger.Info("an idle agent is put to sleep", "session", i.v.id, "bytes", size, "budget", budget)
		}
	}
}

// weigh gives what each agent takes, by server_id, and all together. Without a PSS of a process its RSS counts.
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

// serving are the agents that sessions use now. One that is being ended takes memory still, but not for long: counting it would end
// another one in its place.
func (c *Client) serving(usage []proxy.Usage) []proxy.Usage {
	var list []proxy.Usage
	for _, u := range usage {
		if u.Purpose != ForSession {
			continue
		}
		c.mu.Lock()
		v := c.live[sessionOf(u.ServerID)]
		c.mu.Unlock()
		if v == nil {
			continue
		}
		if now := v.look(); now.Phase != lifecycle.Closed && serverIDOf(now) == u.ServerID {
			list = append(list, u)
		}
	}
	return list
}

// idler is an idle conversation.
type idler struct {
	*rest
	v *conversation
}

// idle are the conversations that could be put to sleep, the longest idle first.
func (c *Client) idle() []idler {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []idler
	for _, v := range c.live {
		if r := v.rest.Load(); r != nil {
			list = append(list, idler{r, v})
		}
	}
	slices.SortFunc(list, func(a, b idler) int { return a.since.Compare(b.since) })
	return list
}
