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

// Usage is the use of the machine by an instance, or by a program of Run.
type Usage struct {
	ServerID  string // "" for a program
	Agent     string // for a program, the name of its file
	Purpose   string // purpose of the program's Command, else of its Set
	For       string // for a program, its Command's For
	PID       int    // of the agent itself
	StartedAt time.Time
	// Tree is the agent and all its descendants, the agent first and then by age. Tree is nil on every system but Linux.
	Tree []Member

	family *family // nil for a process in memory
}

// Member is a process of a tree.
type Member struct {
	PID       int
	Name      string // as the system has it: short, chosen by the process itself; valid UTF-8
	StartedAt time.Time
	CPU       time.Duration // its own
	Past      time.Duration // of its ended descendants, as far as they were waited for
	RSS       int64         // bytes of memory, including shared memory
	PSS       int64         // bytes of memory, with its share of shared memory; 0 when not requested, or not known
}

// Survey measures each running instance and program of each set, and this process with the engine of its window. All are found by a
// single look at the machine's processes, and measured a moment later: a process that ends in between is left out. PSS is summed only on
// request, because the system then walks through all pages of a process.
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
		usage[n] = slices.DeleteFunc(usage[n], func(u Usage) bool { return u.family != nil && len(u.Tree) == 0 }) // ended a moment ago
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

// CPU returns the processor time of the tree so far, including ended processes that were waited for.
func (u Usage) CPU() time.Duration {
	var sum time.Duration
	for _, m := range u.Tree {
		sum += m.CPU + m.Past
	}
	return sum
}

// RSS sums the memory of the tree. Memory that processes share counts for each.
func (u Usage) RSS() int64 {
	var sum int64
	for _, m := range u.Tree {
		sum += m.RSS
	}
	return sum
}

// PSS sums the memory of the tree, and counts shared memory once. A process that the system does not tell about adds nothing.
func (u Usage) PSS() int64 {
	var sum int64
	for _, m := range u.Tree {
		sum += m.PSS
	}
	return sum
}

// instances returns the instances whose processes are not gone, the oldest first, including those that are being removed.
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

// usage returns all running instances, then the programs, not measured yet.
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

// Show lists a process until hide is called, which the caller does after the process's end. Show is for processes that this package does
// not start because they may leave others behind on purpose: a person's shell.
func (s *Set) Show(purpose, name string, pid int) (hide func()) {
	return s.list(&Usage{Agent: name, Purpose: purpose, PID: pid, StartedAt: time.Now(), family: familyAt(pid)})
}

// show is Show for a program of Run.
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

// Leftovers returns the processes of a run that has died, as far as its ledger leads to them; the next Open with this ledger ends them.
// While that run is alive, they are its agents. A missing or broken ledger names none.
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
