//go:build unix

package proxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// procInfo is the system's information about a process.
type procInfo struct {
	ident
	parent         int
	zombie         bool
	group, session int
}

// family is the processes that descend from an agent, or from several. Descendants are recognised by the agents' process groups and
// sessions, by ancestry, and by the mark in their environment; a process that has escaped all three is not found. A process that was
// found once stays a member, whatever happens to its ancestors, unless the process says that it is apart and has no mark. That exception
// is for the browser of a login; an agent could abuse the exception, but could also have a process escape.
type family struct {
	mark    string // a whole mark, or the start of all marks of a run: see carries
	byGroup bool   // the heads' groups are known to be still theirs
	since   uint64 // a process that started before is no member by its mark; 0 when unknown

	mu    sync.Mutex // protects the fields below
	heads map[int]ident
	known map[ident]struct{}
}

func newFamily(mark string, byGroup bool, heads ...ident) *family {
	f := &family{mark: mark, byGroup: byGroup, heads: map[int]ident{}, known: map[ident]struct{}{}}
	for _, h := range heads {
		f.heads[h.PID] = h
		f.known[h] = struct{}{}
	}
	return f
}

// familyAt returns the family of a process that was started elsewhere, without a mark, or nil when the process is gone.
func familyAt(pid int) *family {
	info, err := inspect(pid)
	if err != nil {
		return nil
	}
	return newFamily(rand.Text(), true, info.ident)
}

// note records the present members.
func (f *family) note() { _, _ = f.members() }

// members returns the living members.
func (f *family) members() ([]ident, error) {
	p, err := look()
	if err != nil {
		return nil, err
	}
	return f.among(p), nil
}

// picture is all processes of the machine at a moment, in which the members of any number of families can be found.
type picture struct {
	all      map[int]procInfo
	children map[int][]ident
	environs map[int][]byte // as far as requested
}

func look() (*picture, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	p := &picture{all: all, children: map[int][]ident{}, environs: map[int][]byte{}}
	self := os.Getpid()
	for _, i := range all {
		if i.PID != self && i.PID != 1 {
			p.children[i.parent] = append(p.children[i.parent], i.ident)
		}
	}
	return p, nil
}

// environ returns the environment of a process, which is read once, however many families ask.
func (p *picture) environ(pid int) []byte {
	env, ok := p.environs[pid]
	if !ok {
		env = environOf(pid)
		p.environs[pid] = env
	}
	return env
}

// marked reports whether a process has a mark.
func (p *picture) marked(pid int, mark string) bool { return carries(p.environ(pid), mark) }

// carries reports whether an environment has a mark ("run.7;"), or any mark of a run ("run."). Only our own variable is read: no process
// may be ended because of the content of other variables.
func carries(env []byte, mark string) bool {
	run := strings.HasSuffix(mark, ".")
	if !run && !strings.HasSuffix(mark, ";") {
		return false // not one of Deskhand's marks
	}
	for variable := range bytes.SplitSeq(env, []byte{0}) {
		list, ours := bytes.CutPrefix(variable, []byte(treeVariable+"="))
		if !ours {
			continue
		}
		for one := range bytes.SplitAfterSeq(list, []byte(";")) {
			if string(one) == mark || run && bytes.HasPrefix(one, []byte(mark)) {
				return true
			}
		}
	}
	return false
}

// apart reports whether a process, in a session of its own, says that it is no agent's: see ApartVariable.
func (p *picture) apart(pid int) bool {
	return p.all[pid].session == pid && slices.ContainsFunc(bytes.Split(p.environ(pid), []byte{0}), func(variable []byte) bool {
		return bytes.HasPrefix(variable, []byte(ApartVariable+"="))
	})
}

// among returns the members in a picture.
func (f *family) among(p *picture) []ident {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []ident
	seen := map[ident]bool{}
	self := os.Getpid()
	for _, i := range p.all {
		if i.PID != self && i.PID != 1 && f.isMemberLocked(i, p) {
			found = append(found, i.ident)
			seen[i.ident] = true
		}
	}
	for n := 0; n < len(found); n++ { // found grows by the children of its elements
		f.known[found[n]] = struct{}{}
		for _, child := range p.children[found[n].PID] {
			if !seen[child] && !f.isApart(child.PID, p) {
				found = append(found, child)
				seen[child] = true
			}
		}
	}
	return found
}

// isMemberLocked reports whether a process is a member by anything but ancestry. The caller holds f.mu.
func (f *family) isMemberLocked(i procInfo, p *picture) bool {
	if _, ok := f.known[i.ident]; ok {
		if f.heads[i.PID] != i.ident && f.isApart(i.PID, p) { // the process was seen before its exec
			delete(f.known, i.ident)
			return false
		}
		return true
	}
	if f.byGroup && (f.leadsLocked(i.group, i, p.all) || f.leadsLocked(i.session, i, p.all)) {
		return true
	}
	return i.Start >= f.since && p.marked(i.PID, f.mark) // most processes are older than the agent, and their environment is not read
}

// isApart reports whether a process says that it is apart, and has no mark.
func (f *family) isApart(pid int, p *picture) bool { return p.apart(pid) && !p.marked(pid, f.mark) }

// leadsLocked reports whether the group or session with this number is that of a head: the number may be in use again.
func (f *family) leadsLocked(number int, p procInfo, all map[int]procInfo) bool {
	head, ok := f.heads[number]
	if !ok || p.Start < head.Start {
		return false
	}
	holder, taken := all[number]
	return !taken || holder.ident == head
}

// interrupt sends SIGINT to the heads' groups.
func (f *family) interrupt() error {
	var err error
	for pid := range f.heads { // heads never change
		err = errors.Join(err, unix.Kill(-pid, unix.SIGINT))
	}
	return err
}

// terminate sends SIGTERM to all members: a descendant in a group of its own deserves the same chance as its agent.
func (f *family) terminate() error {
	members, err := f.members()
	for _, m := range members {
		err = errors.Join(err, signalTo(m, unix.SIGTERM))
	}
	return err
}

// kill sends SIGKILL to all members until none is left: first to the heads' groups, which reaches even processes that are too quick to be
// found, then to each member. Descendants that go on making others are chased for as long as patience.
func (f *family) kill(patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for chase := false; ; chase = true {
		f.killGroups()
		members, err := f.all()
		if err != nil || len(members) == 0 {
			return err
		}
		if chase && time.Now().After(deadline) {
			return fmt.Errorf("%w: %v", ErrStuck, members)
		}
		for _, m := range members {
			err = errors.Join(err, signalTo(m, unix.SIGKILL))
		}
		if left := waitGone(members, deadline); len(left) > 0 {
			return errors.Join(err, fmt.Errorf("%w: %v", ErrStuck, left))
		}
	}
}

// A process has no environment, and so no mark, during its exec. For a process that never has an environment, all looks this often.
const (
	execLooks = 10
	execPause = 2 * time.Millisecond
	kernel    = 2 // the parent of kernel threads, which never have an environment
)

// all returns the living members, as far as they can be known.
func (f *family) all() ([]ident, error) {
	for looks := 1; ; looks++ {
		p, err := look()
		if err != nil {
			return nil, err
		}
		if members := f.among(p); len(members) > 0 || looks > execLooks || !f.mayLack(p) {
			return members, nil
		}
		<-time.After(execPause)
	}
}

// mayLack reports whether a process may be a member that had no environment when the picture was taken.
func (f *family) mayLack(p *picture) bool {
	if f.since == 0 {
		return false // many older processes have no environment
	}
	for pid, env := range p.environs {
		if env != nil && len(env) == 0 && p.all[pid].Start >= f.since && p.all[pid].parent != kernel {
			return true
		}
	}
	return false
}

// killGroups kills the heads' groups, unless their numbers belong to others by now.
func (f *family) killGroups() {
	for pid, head := range f.heads { // heads never change
		if p, err := inspect(pid); f.byGroup && pid > 1 && (err != nil || p.ident == head) { // -1 would be every process
			_ = unix.Kill(-pid, unix.SIGKILL) // the group may be empty
		}
	}
}

// signalTo signals a process, unless its number belongs to another by now. os.FindProcess holds the process before its start time is
// checked: on Linux the signal reaches that very process, or none.
func signalTo(id ident, sig syscall.Signal) error {
	held, err := os.FindProcess(id.PID)
	if err != nil {
		return nil // the process is gone
	}
	defer func() { _ = held.Release() }() // releases the handle
	if !alive(id) {
		return nil
	}
	if err := held.Signal(sig); !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// waitGone waits for processes that will end soon, and returns the processes that are left at the deadline.
func waitGone(ids []ident, deadline time.Time) []ident {
	for pause := 500 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id ident) bool { return !alive(id) })
		if len(ids) == 0 || time.Now().After(deadline) {
			return ids
		}
		<-time.After(pause)
	}
}

// alive reports whether exactly that process runs; a zombie does not.
func alive(id ident) bool {
	p, err := inspect(id.PID)
	return err == nil && p.ident == id && !p.zombie
}

// remains returns the family of all processes that an earlier run of Deskhand has left. The groups of its agents may be others' by now.
func remains(old record) *family { return newFamily(old.Run, false, old.Agents...) }

// endLeftovers ends the agents of another run and all processes with its mark. With kindly they get time to end by themselves.
func endLeftovers(run string, agents []ident, kindly bool) error {
	f := newFamily(run, kindly, agents...)
	if kindly {
		members, err := f.members()
		if err != nil {
			return err
		}
		if len(waitGone(members, time.Now().Add(eofGrace))) > 0 {
			_ = f.terminate()
		}
		waitGone(members, time.Now().Add(termGrace))
	}
	return f.kill(reapPatience)
}
