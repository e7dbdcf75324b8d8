package session

import (
	"strings"
	"time"

	"deskhand/backend/proxy"
)

// ProcessList is the agents that run, and what they and this program take of the machine.
type ProcessList struct {
	Items []AgentProcesses `json:"items"`
	Self  SelfProcess      `json:"self"`
}

// AgentProcesses is one agent that runs, with all that it has started. The numbers are absent where the system does not tell them.
type AgentProcesses struct {
	Owner      string    `json:"owner" enum:"session,api" doc:"Whether a session has it, or a caller of /v1"`
	Session    string    `json:"session,omitempty" doc:"The session's id"`
	Title      string    `json:"title,omitempty" doc:"The session's title"`
	ServerID   string    `json:"serverId"`
	Agent      string    `json:"agent"`
	PID        int       `json:"pid"`
	StartedAt  Time      `json:"startedAt"`
	CPUSeconds *float64  `json:"cpuSeconds,omitempty" doc:"Used up so far by all of them, those included that have ended and were waited for"`
	RSSBytes   *int64    `json:"rssBytes,omitempty" doc:"Memory of all of them; what they share counts once for each"`
	PSSBytes   *int64    `json:"pssBytes,omitempty" doc:"Memory of all of them, with what they share counted once; only when asked for"`
	Processes  []Process `json:"processes" doc:"The agent itself first, then by age; empty where the system does not tell"`
}

// Process is one process of an agent's tree.
type Process struct {
	PID        int     `json:"pid"`
	Name       string  `json:"name" doc:"What the process calls itself: short, and any text"`
	CPUSeconds float64 `json:"cpuSeconds" doc:"Of its own"`
	RSSBytes   int64   `json:"rssBytes"`
	PSSBytes   *int64  `json:"pssBytes,omitempty"`
}

// SelfProcess is this program itself.
type SelfProcess struct {
	PID        int      `json:"pid"`
	CPUSeconds *float64 `json:"cpuSeconds,omitempty"`
	RSSBytes   *int64   `json:"rssBytes,omitempty"`
	PSSBytes   *int64   `json:"pssBytes,omitempty"`
}

// Processes tells which agents run, those of the sessions first, and what they take. api is the set of those that have no session.
func (c *Client) Processes(api *proxy.Set, pss bool) (ProcessList, error) {
	self, usage, err := proxy.Survey(pss, c.cfg.Proxy, api)
	if err != nil {
		return ProcessList{}, err
	}
	list := ProcessList{Items: []AgentProcesses{}, Self: showSelf(self, pss)}
	for _, u := range usage[0] {
		a := showUsage(u, pss)
		a.Owner = "session"
		a.Session, a.Title = c.served(u.ServerID)
		list.Items = append(list.Items, a)
	}
	for _, u := range usage[1] {
		a := showUsage(u, pss)
		a.Owner = "api"
		list.Items = append(list.Items, a)
	}
	return list, nil
}

// served is the session that an instance of ours belongs to, with its title. Its server_id was made by begin.
func (c *Client) served(serverID string) (id, title string) {
	id = serverID[:max(strings.LastIndexByte(serverID, '.'), 0)]
	c.mu.Lock()
	v := c.live[id]
	c.mu.Unlock()
	if v == nil {
		return id, ""
	}
	return id, v.look().Title
}

func showUsage(u proxy.Usage, pss bool) AgentProcesses {
	a := AgentProcesses{ServerID: u.ServerID, Agent: u.Agent, PID: u.PID, StartedAt: Time{u.StartedAt}, Processes: []Process{}}
	if u.Tree == nil {
		return a
	}
	a.CPUSeconds, a.RSSBytes = seconds(u.CPU()), new(u.RSS())
	if pss {
		a.PSSBytes = known(u.PSS())
	}
	for _, m := range u.Tree {
		p := Process{PID: m.PID, Name: m.Name, CPUSeconds: m.CPU.Seconds(), RSSBytes: m.RSS}
		if pss {
			p.PSSBytes = known(m.PSS)
		}
		a.Processes = append(a.Processes, p)
	}
	return a
}

func showSelf(m proxy.Member, pss bool) SelfProcess {
	s := SelfProcess{PID: m.PID}
	if m.RSS == 0 {
		return s
	}
	s.CPUSeconds, s.RSSBytes = seconds(m.CPU), new(m.RSS)
	if pss {
		s.PSSBytes = known(m.PSS)
	}
	return s
}

func seconds(d time.Duration) *float64 { return new(d.Seconds()) }

// known is nothing for a size that the system did not tell.
func known(size int64) *int64 {
	if size == 0 {
		return nil
	}
	return &size
}
