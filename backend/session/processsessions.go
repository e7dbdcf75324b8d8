package session

import (
	"context"
	"strings"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/shells"
)

const (
	eventProcess = "process.upsert"
	mib          = 1 << 20
)

// openProcesses opens the sampler of the processes, which keeps the agents within the memory budget.
func openProcesses(c *Client) *processes.Sampler {
	sessions := processSessions{c}
	return processes.New(processes.Deps{
		Logger: c.cfg.Logger, Running: c.cfg.Proxy.Running, Measure: c.cfg.Proxy.Overview, Pace: c.cfg.SamplePace, Least: c.cfg.LeastIdle,
		Budget:  func() int64 { return int64(c.cfg.Settings.Get().MemoryBudgetMiB) * mib },
		Publish: func(s processes.ProcessSummary) { c.feed.Publish(feed.Event{Type: eventProcess, Data: mustJSON(s)}) },
		Owner:   sessions.owner, Serves: sessions.serves, Idle: sessions.idle,
	})
}

// Processes returns the sampler of the processes.
func (c *Client) Processes() *processes.Sampler { return c.processes }

// processSessions provides package processes with the sessions.
type processSessions struct{ c *Client }

// live returns the conversation of a session that is loaded, or nil.
func (p processSessions) live(id string) *conversation {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.c.live[id]
}

// owner returns the session that a process runs for, with its title while the session is loaded; "" for a process of no session.
func (p processSessions) owner(u proxy.Usage) (id, title string) {
	switch u.Purpose {
	case processes.ForSession, shells.ForPerson:
		id = sessionOf(u.ServerID)
	case processes.ForTerminal:
		id = u.For
	}
	if v := p.live(id); v != nil {
		title = v.look().Title
	}
	return id, title
}

// sessionOf returns the session of a server_id that serverIDOf made.
func sessionOf(serverID string) string {
	return serverID[:max(strings.LastIndexByte(serverID, '.'), 0)]
}

// serves reports whether a session uses an agent process now.
func (p processSessions) serves(serverID string) bool {
	v := p.live(sessionOf(serverID))
	if v == nil {
		return false
	}
	s := v.look()
	return s.Phase != lifecycle.Closed && serverIDOf(s) == serverID
}

// idle returns the agents of the conversations that can be hibernated.
func (p processSessions) idle() (list []processes.Idle) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	for _, v := range p.c.live {
		if r := v.rest.Load(); r != nil {
			list = append(list, processes.Idle{Session: v.id, ServerID: r.serverID, Since: r.since, Sleep: func(ctx context.Context) bool { return v.idleness.sleep(ctx, r) }})
		}
	}
	return list
}
