package proxy

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Usage is what one instance takes of the machine, or one program of Run.
type Usage struct {
	ServerID  string // "" of a program
	Agent     string // of a program its file's name
	Purpose   string // what it was started for: that of its Command, else that of its Set
	For       string // of a program: for whom, as its Command says
	PID       int    // of the agent itself
	StartedAt time.Time
	// Tree is the agent and all that descends from it, the agent first and then by age. It is nil where the system is not asked: that
	// is everywhere but on Linux.
	Tree []Member

	family *family // nil for a process that is none of the operating system's
}

// Member is one process of a tree.
type Member struct {
	PID       int
	Name      string // as the system has it: short, and whatever the process calls itself; valid UTF-8
	StartedAt time.Time
	CPU       time.Duration // of its own
	Past      time.Duration // of its descendants that have ended, as far as they were waited for
	RSS       int64         // bytes of memory, those that it shares with others included
	PSS       int64         // bytes of memory, with its part of what it shares; 0 when not asked for, or not told of this process
}

// Survey tells what each running instance and program of each set takes, and what this process does, with the engine of its window. All are found by one look at the machine's
// processes, and measured a moment later: a process that ends in between is left out. Adding up PSS is for who asks: the system walks
// through all pages of a process for it.
func Survey(pss bool, sets ...*Set) (self Member, usage [][]Usage, err error) {
	var families []*family
	usage = make([][]Usage, len(sets))
	for n, s := range sets {
		if s == nil {
			continue
		}
		usage[n] = s.usage()
		for _, u := range usage[n] {
			families = append(families, u.family)
		}
	}
	self, trees, err := measure(families, pss)
	if err != nil || trees == nil {
		return self, usage, err
	}
	for n := range usage {
		for k := range usage[n] {
			usage[n][k].Tree, trees = trees[0], trees[1:]
			usage[n][k].sort()
		}
		usage[n] = slices.DeleteFunc(usage[n], func(u Usage) bool { return u.family != nil && len(u.Tree) == 0 }) // it has just ended
	}
	return self, usage, nil
}

func (u Usage) sort() {
	isRoot := func(m Member) int {
		if m.PID == u.PID {
			return 0
		}
		return 1
	}
	slices.SortFunc(u.Tree, func(a, b Member) int {
		return cmp.Or(cmp.Compare(isRoot(a), isRoot(b)), a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.PID, b.PID))
	})
}

// CPU is what the tree has used up so far, with those of it that have ended and were waited for.
func (u Usage) CPU() time.Duration {
	var sum time.Duration
	for _, m := range u.Tree {
		sum += m.CPU + m.Past
	}
	return sum
}

// RSS adds up the memory of the tree. What its processes share counts once for each.
func (u Usage) RSS() int64 {
	var sum int64
	for _, m := range u.Tree {
		sum += m.RSS
	}
	return sum
}

// PSS adds up the memory of the tree, with what is shared counted once. A process that the system does not tell of adds nothing.
func (u Usage) PSS() int64 {
	var sum int64
	for _, m := range u.Tree {
		sum += m.PSS
	}
	return sum
}

// instances are those whose processes are not gone, the oldest first; also those that are being removed.
func (s *Set) instances() []*Instance {
	s.mu.Lock()
	list := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *Instance) int {
		return cmp.Or(a.Status().CreatedAt.Compare(b.Status().CreatedAt), cmp.Compare(a.serverID, b.serverID))
	})
	return list
}

func (i *Instance) usage() Usage {
	status := i.Status()
	return Usage{
		ServerID: i.serverID, Agent: i.agent, Purpose: i.purpose, PID: status.PID, StartedAt: status.CreatedAt, family: familyOf(i.process),
	}
}

func familyOf(p Process) *family {
	if own, ok := p.(*osProcess); ok {
		return own.family
	}
	return nil
}

// usage is what runs, not measured yet: the instances, then the others.
func (s *Set) usage() []Usage {
	var list []Usage
	for _, i := range s.instances() {
		list = append(list, i.usage())
	}
	s.mu.Lock()
	others := slices.Collect(maps.Keys(s.others))
	s.mu.Unlock()
	slices.SortFunc(others, func(a, b *Usage) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.PID, b.PID)) })
	for _, u := range others {
		list = append(list, *u)
	}
	return list
}

// Show lists a process until hide is called, which its starter does when it has seen the process off. It is for what this package does
// not start, since it may leave others behind on purpose: a person's shell.
func (s *Set) Show(purpose, name string, pid int) (hide func()) {
	return s.list(&Usage{Agent: name, Purpose: purpose, PID: pid, StartedAt: time.Now(), family: familyAt(pid)})
}

// show is Show of a program of Run.
func (s *Set) show(p Process, cmd Command) (hide func()) {
	purpose := cmp.Or(cmd.Purpose, s.config.Purpose)
	return s.list(&Usage{Agent: filepath.Base(cmd.Path), Purpose: purpose, For: cmd.For, PID: p.PID(), StartedAt: time.Now(), family: familyOf(p)})
}

func (s *Set) list(u *Usage) (hide func()) {
	s.mu.Lock()
	s.others[u] = struct{}{}
	s.mu.Unlock()
	s.guard.census.count(1)
	return func() {
		s.mu.Lock()
		delete(s.others, u)
		s.mu.Unlock()
		s.guard.census.count(-1)
	}
}

// Leftovers are the processes of a run that has died, as far as its ledger leads to them; the next Open with this ledger ends them.
// While that run is alive they are its agents. No ledger, or a broken one, names nothing.
func Leftovers(ledger string) ([]Member, error) {
	old, err := readLedger(ledger)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLedger) {
		return nil, nil
	}
	if err != nil || !old.isOfThisBoot() {
		return nil, err
	}
	_, trees, err := measure([]*family{remains(old)}, false)
	if err != nil || len(trees) == 0 {
		return nil, err
	}
	Usage{Tree: trees[0]}.sort()
	return trees[0], nil
}

func justUs() Member { return Member{PID: os.Getpid()} }
