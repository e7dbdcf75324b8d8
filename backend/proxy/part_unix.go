//go:build unix

package proxy

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Kin tells the agent and all processes that descend from it. It fails with errors.ErrUnsupported where the instance is no process of the
// system, or the system does not tell.
func (i *Instance) Kin() (Kin, error) {
	f := familyOf(i.process)
	if f == nil {
		return Kin{}, errors.ErrUnsupported
	}
	p, err := look()
	if err != nil {
		return Kin{}, err
	}
	toTime, err := startTimes()
	if err != nil {
		return Kin{}, err
	}
	var kin Kin
	for _, id := range f.among(p) {
		info := p.all[id.PID]
		r := Relative{ProcessID: ProcessID(id), Parent: info.parent, Session: info.session, StartedAt: toTime(id.Start), Args: argsOf(id.PID)}
		if f.heads[id.PID] == id {
			kin.Head = r
		}
		kin.All = append(kin.All, r)
	}
	return kin, nil
}

// Part is some of the processes that an instance has started: those that are named, what descends from them, and what is of their sessions,
// as long as these are not the agent's.
type Part struct {
	family *family

	mu       sync.Mutex // protects the fields below
	known    map[ident]struct{}
	sessions map[int]struct{}
}

// Part makes a part of the processes with these ids. Those that are gone, or are not the instance's, are left out.
func (i *Instance) Part(ids []ProcessID) (*Part, error) {
	f := familyOf(i.process)
	if f == nil {
		return nil, errors.ErrUnsupported
	}
	p, err := look()
	if err != nil {
		return nil, err
	}
	part := &Part{family: f, known: map[ident]struct{}{}, sessions: map[int]struct{}{}}
	for _, id := range f.among(p) {
		if slices.Contains(ids, ProcessID(id)) {
			part.takeLocked(p.all[id.PID]) // nobody else has it yet
		}
	}
	return part, nil
}

// takeLocked makes a process one of the part. The agent's own session, and the agent itself, never are.
func (t *Part) takeLocked(p procInfo) {
	if t.family.heads[p.PID] == p.ident {
		return
	}
	t.known[p.ident] = struct{}{}
	if _, own := t.family.heads[p.session]; !own {
		t.sessions[p.session] = struct{}{}
	}
}

// Running tells how many processes of the part run. Once there is none there will be none.
func (t *Part) Running() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for id := range t.known {
		if alive(id) {
			n++
		}
	}
	if n > 0 {
		return n, nil // a look at all processes of the machine is only worth it at the end
	}
	members, err := t.membersLocked()
	return len(members), err
}

// membersLocked are the processes of the part that run.
func (t *Part) membersLocked() ([]ident, error) {
	p, err := look()
	if err != nil {
		return nil, err
	}
	var found []ident
	kin := t.family.among(p)
	for grew := true; grew; { // a child may stand before its parent
		grew = false
		for _, id := range kin {
			info := p.all[id.PID]
			_, known := t.known[id]
			_, mate := t.sessions[info.session]
			if parent, there := p.all[info.parent]; there {
				_, child := t.known[parent.ident]
				mate = mate || child
			}
			if !known && mate && t.family.heads[id.PID] != id {
				t.takeLocked(info)
				grew = true
			}
		}
	}
	for _, id := range kin {
		if _, ok := t.known[id]; ok {
			found = append(found, id)
		}
	}
	return found, nil
}

// End ends the processes of the part: each has grace after SIGTERM before it gets SIGKILL. It fails with ErrStuck where some do not die
// within patience of that.
func (t *Part) End(grace, patience time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	members, err := t.membersLocked()
	if err != nil {
		return err
	}
	for _, id := range members {
		_ = signalTo(id, unix.SIGTERM) // who cannot be told is still there below
	}
	waitGone(members, time.Now().Add(grace))
	for deadline := time.Now().Add(patience); ; {
		left, err := t.membersLocked()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %v", ErrStuck, left)
		}
		for _, id := range left {
			_ = signalTo(id, unix.SIGKILL) // the same
		}
		waitGone(left, deadline)
	}
}
