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

// Kin returns the agent and all its descendants. Kin fails with errors.ErrUnsupported where the instance is no process of the system, or
// the system does not tell.
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

// Part is a subset of the processes that an instance has started: the named processes, their descendants, and the members of their
// sessions, except for the agent's session.
type Part struct {
	family *family

	mu       sync.Mutex // protects the fields below
	known    map[ident]struct{}
	sessions map[int]struct{}
}

// Part returns the part that begins with the processes of these ids. Processes that are gone, or do not belong to the instance, are left
// out.
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
			part.takeLocked(p.all[id.PID]) // no other goroutine has part yet
		}
	}
	return part, nil
}

// takeLocked adds a process to the part, unless the process is the agent itself, and its session, unless that is the agent's. The caller
// holds t.mu.
func (t *Part) takeLocked(p procInfo) {
	if t.family.heads[p.PID] == p.ident {
		return
	}
	t.known[p.ident] = struct{}{}
	if _, own := t.family.heads[p.session]; !own {
		t.sessions[p.session] = struct{}{}
	}
}

// Running returns the number of running processes of the part. After a 0 the number stays 0.
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
		return n, nil // a survey of all processes of the machine is only worth its cost at the end
	}
	members, err := t.membersLocked()
	return len(members), err
}

// membersLocked returns the running processes of the part. The caller holds t.mu.
func (t *Part) membersLocked() ([]ident, error) {
	p, err := look()
	if err != nil {
		return nil, err
	}
	var found []ident
	kin := t.family.among(p)
	for grew := true; grew; { // a child may precede its parent
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

// End ends the processes of the part: each gets SIGTERM, then grace, then SIGKILL. End fails with ErrStuck when some are left after
// patience.
func (t *Part) End(grace, patience time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	members, err := t.membersLocked()
	if err != nil {
		return err
	}
	for _, id := range members {
		_ = signalTo(id, unix.SIGTERM) // a process that cannot be signalled is found again below
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
			_ = signalTo(id, unix.SIGKILL) // as above
		}
		waitGone(left, deadline)
	}
}
