package processes

import (
	"cmp"
	"slices"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/shells"
)

// Purposes of processes in a ProcessList, besides the purposes of packages agents and shells.
const (
	ForSession  = "session"  // an agent of a session
	ForTerminal = "terminal" // a program that an agent has us run
	ForAPI      = "api"      // an agent of a caller of /v1
	forWatchdog = "watchdog" // the process that ends all others when this program is killed
)

// ProcessList is all processes that Deskhand has started, with their memory and processor time.
type ProcessList struct {
	Items []AgentProcesses `json:"items" doc:"Those of sessions first, then by owner and age"`
	Self  SelfProcess      `json:"self"`
}

// AgentProcesses is an agent, or another program that Deskhand has started, with all processes below. The numbers are absent on a system
// that does not tell them.
type AgentProcesses struct {
	Owner      string      `json:"owner" doc:"What it runs for: session, terminal (a program that an agent has us run), person (a terminal of the person), api (a caller of /v1), login, install, test, shell (the login shell, which is read), skills, watchdog, or a word that is not known yet"`
	Session    string      `json:"session,omitempty" doc:"The session's id"`
	Title      string      `json:"title,omitempty" doc:"The session's title"`
	ServerID   string      `json:"serverId,omitempty"`
	Agent      string      `json:"agent,omitempty" doc:"The agent that it is, or that it is about; of any other program its name"`
	PID        int         `json:"pid"`
	StartedAt  record.Time `json:"startedAt"`
	CPUSeconds *float64    `json:"cpuSeconds,omitempty" doc:"Used up so far by all of them, those included that have ended and were waited for"`
	RSSBytes   *int64      `json:"rssBytes,omitempty" doc:"Memory of all of them; what they share counts once for each"`
	PSSBytes   *int64      `json:"pssBytes,omitempty" doc:"Memory of all of them, with what they share counted once; only when asked for"`
	Processes  []Process   `json:"processes" doc:"The agent itself first, then by age; empty where the system does not tell"`
}

// Process is one process of an agent's tree.
type Process struct {
	PID        int         `json:"pid"`
	Name       string      `json:"name" doc:"What the process calls itself: short, and any text"`
	StartedAt  record.Time `json:"startedAt"`
	CPUSeconds float64     `json:"cpuSeconds" doc:"Of its own"`
	RSSBytes   int64       `json:"rssBytes"`
	PSSBytes   *int64      `json:"pssBytes,omitempty"`
}

// SelfProcess is this program; the numbers include the engine of its window.
type SelfProcess struct {
	PID        int         `json:"pid"`
	StartedAt  record.Time `json:"startedAt"`
	CPUSeconds *float64    `json:"cpuSeconds,omitempty"`
	RSSBytes   *int64      `json:"rssBytes,omitempty" doc:"What the engine shares with the program counts once"`
	PSSBytes   *int64      `json:"pssBytes,omitempty" doc:"Only when asked for"`
}

// List returns what runs under the watchdog that all sets of agents share, whoever started it. With pss the sizes count shared memory once,
// which takes longer.
func (s *Sampler) List(pss bool) (ProcessList, error) {
	all, err := s.Measure(pss)
	if err != nil {
		return ProcessList{}, err
	}
	list := ProcessList{Items: []AgentProcesses{}, Self: showSelf(all.Self, pss)}
	list.Self.StartedAt = record.Time{Time: all.StartedAt}
	for _, u := range all.Usage {
		a := showUsage(u, pss)
		a.Session, a.Title = s.Owner(u)
		list.Items = append(list.Items, a)
	}
	if dog := all.Watchdog; dog.PID != 0 {
		u := proxy.Usage{Purpose: forWatchdog, PID: dog.PID, StartedAt: dog.StartedAt}
		if dog.RSS > 0 {
			u.Tree = []proxy.Member{dog}
		}
		list.Items = append(list.Items, showUsage(u, pss))
	}
	slices.SortStableFunc(list.Items, func(a, b AgentProcesses) int {
		return cmp.Or(cmp.Compare(rank(a.Owner), rank(b.Owner)), a.StartedAt.Compare(b.StartedAt.Time), cmp.Compare(a.PID, b.PID))
	})
	return list, nil
}

// rank orders the list by owner: agents first, the watchdog last.
func rank(owner string) int {
	order := []string{ForSession, ForTerminal, shells.ForPerson, ForAPI, agents.ForLogin, agents.ForInstall, agents.ForTest, agents.ForShell}
	if at := slices.Index(order, owner); at >= 0 {
		return at
	}
	if owner == forWatchdog {
		return len(order) + 1
	}
	return len(order)
}

func showUsage(u proxy.Usage, pss bool) AgentProcesses {
	a := AgentProcesses{Owner: u.Purpose, ServerID: u.ServerID, Agent: u.Agent, PID: u.PID, StartedAt: record.Time{Time: u.StartedAt}, Processes: []Process{}}
	if u.Tree == nil {
		return a
	}
	a.CPUSeconds, a.RSSBytes = seconds(u.CPU()), new(u.RSS())
	if pss {
		a.PSSBytes = known(u.PSS())
	}
	for _, m := range u.Tree {
		p := Process{PID: m.PID, Name: m.Name, StartedAt: record.Time{Time: m.StartedAt}, CPUSeconds: m.CPU.Seconds(), RSSBytes: m.RSS}
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

// known returns nil for 0, the size that the system did not tell.
func known(size int64) *int64 {
	if size == 0 {
		return nil
	}
	return &size
}
