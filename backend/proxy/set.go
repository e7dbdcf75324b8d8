package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	keepExited  = 10 * time.Minute
	maxExited   = 64
	lookupGrace = 2 * time.Second // how long Reader waits for an unknown server_id to appear
)

// Set is all instances of an owner, by server_id.
type Set struct {
	config Config
	logger *slog.Logger
	guard  *guard
	work   sync.WaitGroup // bootstraps, and goroutines that wait for them in place of a caller

	mu      sync.Mutex // protects the fields below
	slots   map[string]*slot
	leaving map[string]*departure  // removed server_ids of which something still runs: no start before that is gone
	running map[*Instance]struct{} // the instances whose processes are not gone yet, in a slot or not
	others  map[*Usage]struct{}    // the programs of Run, and those of Show
	changed wakeup                 // fired when a slot appears or goes, or its bootstrap ends
	closed  bool
}

// slot is a server_id: a log that outlives its processes. Set.mu protects the slot.
type slot struct {
	id      string
	agent   string
	set     *Set
	log     *messageLog
	inst    *Instance  // the newest process; nil before the first
	boot    *bootstrap // the start under way; else nil
	expiry  *time.Timer
	created time.Time
	removed wakeup // fired when the slot is removed
}

// departure is the end of the processes of a removed server_id. Set.mu protects the departure.
type departure struct {
	gone  chan struct{} // closed at the end
	again wakeup        // fired when the server_id is removed once more meanwhile
}

// ending is an end that a start waits for, and the refusal of that start meanwhile. Both channels are closed when that happens.
type ending struct{ gone, refused <-chan struct{} }

// bootstrap is a start under way. All callers that ask for the server_id meanwhile wait for this start.
type bootstrap struct {
	cancel context.CancelFunc
	done   chan struct{}
	inst   *Instance // valid once done is closed, like err
	err    error
}

// Open makes an empty Set, after Open has ended the processes that the ledger of an earlier Set names.
func Open(c Config) (*Set, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Set{
		config: c, logger: c.Logger, slots: map[string]*slot{}, leaving: map[string]*departure{}, running: map[*Instance]struct{}{}, others: map[*Usage]struct{}{},
	}
	if c.Beside != nil {
		s.guard = c.Beside.guard.share()
	} else {
		g, err := openGuard(c.Watchdog, c.Ledger, c.Logger)
		if err != nil {
			return nil, err
		}
		s.guard = g
	}
	s.guard.census.join(s)
	return s, nil
}

// Start starts an agent under a server_id that is unknown or exited; otherwise the error is ErrConflict. The end of ctx ends the wait
// alone.
func (s *Set) Start(ctx context.Context, serverID, agent string, cmd Command) (*Instance, error) {
	prepare := func(context.Context) (Command, error) { return cmd, nil }
	return s.ensure(ctx, request{serverID: serverID, agent: agent, prepare: prepare, fresh: true})
}

// Ensure returns the running instance of a server_id. An unknown or exited server_id is started when agent is given: prepare, which may
// take its time, returns the command; its context ends when the server_id is removed. Any number of concurrent calls start a single
// process and get the same result. Another agent than the server_id's is ErrConflict, an unknown server_id without an agent ErrUnknown,
// an exited server_id without an agent an *ExitError. The end of ctx ends the wait alone.
func (s *Set) Ensure(ctx context.Context, serverID, agent string, prepare func(context.Context) (Command, error)) (*Instance, error) {
	return s.ensure(ctx, request{serverID: serverID, agent: agent, prepare: prepare})
}

// EnsureFor is Ensure for a caller that must act on the instance even when ctx ends during the start: then EnsureFor calls late with the
// instance once it runs, or not at all when the start fails.
func (s *Set) EnsureFor(
	ctx context.Context, serverID, agent string, prepare func(context.Context) (Command, error), late func(context.Context, *Instance),
) (*Instance, error) {
	return s.ensure(ctx, request{serverID: serverID, agent: agent, prepare: prepare, late: late})
}

// request is a request for an instance. fresh refuses an existing instance.
type request struct {
	serverID, agent string
	prepare         func(context.Context) (Command, error)
	late            func(context.Context, *Instance)
	fresh           bool
}

func (s *Set) ensure(ctx context.Context, q request) (*Instance, error) {
	for {
		inst, boot, before, err := s.lookUp(ctx, q)
		switch {
		case err != nil:
			return nil, err
		case inst != nil:
			return inst, nil
		case boot != nil:
			if err := wait(ctx, boot.done); err != nil {
				s.goOn(ctx, boot, q.late)
				return nil, err
			}
			return boot.inst, boot.err
		}
		if err := before.wait(ctx); err != nil {
			return nil, err
		}
	}
}

func (e *ending) wait(ctx context.Context) error {
	select {
	case <-e.gone:
	case <-e.refused:
	case <-ctx.Done():
		return ctx.Err()
	}
	if isClosed(e.refused) { // perhaps both are closed
		return ErrRemoved
	}
	return nil
}

// goOn waits for a bootstrap in place of a caller that has gone. Close waits for goOn as for the bootstrap.
func (s *Set) goOn(ctx context.Context, boot *bootstrap, late func(context.Context, *Instance)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if late == nil || s.closed {
		return
	}
	ctx = context.WithoutCancel(ctx)
	s.work.Go(func() {
		<-boot.done
		if boot.err == nil {
			late(ctx, boot.inst)
		}
	})
}

func wait(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lookUp returns the instance, the bootstrap to wait for, or the end of the server_id's earlier process, after which the caller looks
// again.
func (s *Set) lookUp(ctx context.Context, q request) (*Instance, *bootstrap, *ending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, before := s.slots[q.serverID], s.leaving[q.serverID]
	switch {
	case s.closed:
		return nil, nil, nil, ErrClosed
	case sl == nil && q.agent == "":
		return nil, nil, nil, ErrUnknown
	case sl == nil && before != nil:
		return nil, nil, &ending{before.gone, before.again.wait()}, nil
	case sl == nil:
		sl = &slot{id: q.serverID, agent: q.agent, set: s, log: newLog(s.config.LogBytes), created: time.Now()}
		s.slots[q.serverID] = sl
	case q.agent != "" && q.agent != sl.agent:
		return nil, nil, nil, fmt.Errorf("%w by agent %s", ErrConflict, sl.agent)
	case q.fresh && (sl.boot != nil || sl.inst.live()):
		return nil, nil, nil, ErrConflict
	case sl.boot != nil:
		return nil, sl.boot, nil, nil
	case sl.inst.live():
		return sl.inst, nil, nil, nil
	case !sl.inst.gone():
		return nil, nil, &ending{sl.inst.exited, sl.removed.wait()}, nil
	case q.agent == "":
		return nil, nil, nil, &ExitError{Status: sl.inst.Status()}
	}
	sl.boot = s.bootLocked(ctx, sl, q.prepare)
	return nil, sl.boot, nil, nil
}

// bootLocked starts a bootstrap of the slot. The bootstrap outlives its first caller, because others wait for the bootstrap as well.
func (s *Set) bootLocked(ctx context.Context, sl *slot, prepare func(context.Context) (Command, error)) *bootstrap {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &bootstrap{cancel: cancel, done: make(chan struct{})}
	if sl.expiry != nil {
		sl.expiry.Stop()
	}
	s.changed.fire()
	s.work.Go(func() {
		defer cancel()
		inst, err := s.spawn(ctx, sl, prepare)
		s.booted(sl, b, inst, err)
	})
	return b
}

// spawn prepares and starts a process for the slot.
func (s *Set) spawn(ctx context.Context, sl *slot, prepare func(context.Context) (Command, error)) (*Instance, error) {
	cmd, err := prepare(ctx)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ErrRemoved
	}
	p, err := s.startProcess(cmd)
	if err != nil {
		s.logger.Warn("agent did not start", "server_id", sl.id, "agent", sl.agent, "error", err)
		return nil, fmt.Errorf("%w: %w", ErrSpawn, err)
	}
	sl.log.resume()
	inst := newInstance(sl, p, s.logger)
	inst.purpose, inst.tty = cmp.Or(cmd.Purpose, s.config.Purpose), cmd.Terminal != nil
	inst.logger.Info("agent started", "pid", p.PID())
	return inst, nil
}

func (s *Set) startProcess(cmd Command) (Process, error) {
	if s.config.Spawn != nil {
		return s.config.Spawn(cmd)
	}
	return s.guard.start(cmd)
}

// booted ends a bootstrap. An instance whose slot was removed meanwhile is ended, and the callers get ErrRemoved.
func (s *Set) booted(sl *slot, b *bootstrap, inst *Instance, err error) {
	s.mu.Lock()
	removed := s.slots[sl.id] != sl
	sl.boot = nil
	if inst != nil {
		s.running[inst] = struct{}{}
		s.guard.census.count(1)
	}
	switch {
	case removed:
	case inst != nil:
		sl.inst = inst
	case sl.inst == nil:
		delete(s.slots, sl.id)
	default:
		s.keepLocked(sl)
	}
	s.changed.fire()
	s.mu.Unlock()
	if inst != nil {
		inst.start() // not before its end can find its slot
	}
	if removed {
		err = ErrRemoved
		if inst != nil {
			err = errors.Join(err, inst.shut(yield))
		}
		inst = nil
	}
	b.inst, b.err = inst, err
	close(b.done)
}

// instanceExited is called by each instance when its process is gone, and starts the expiry of its slot.
func (s *Set) instanceExited(i *Instance) {
	s.guard.ended(i.process)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, i)
	s.guard.census.count(-1)
	if sl := i.slot; sl.inst == i && s.slots[sl.id] == sl && !s.closed {
		s.keepLocked(sl)
	}
}

// keepLocked keeps an exited slot for a while, and bounds the number of such slots.
func (s *Set) keepLocked(sl *slot) {
	if sl.expiry != nil {
		sl.expiry.Stop()
	}
	inst := sl.inst
	sl.expiry = time.AfterFunc(keepExited, func() { s.expire(sl, inst) })
	var exited []*slot
	for _, other := range s.slots {
		// A process that has ended a moment ago has no end time yet, and is not the oldest.
		if other.boot == nil && other.inst.Status().Phase == Exited {
			exited = append(exited, other)
		}
	}
	slices.SortFunc(exited, func(a, b *slot) int {
		return a.inst.Status().ExitedAt.Compare(b.inst.Status().ExitedAt)
	})
	for len(exited) > maxExited {
		s.forgetLocked(exited[0])
		exited[0].log.close()
		exited = exited[1:]
	}
}

func (s *Set) expire(sl *slot, inst *Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[sl.id] == sl && sl.inst == inst && sl.boot == nil {
		s.forgetLocked(sl)
		sl.log.close()
	}
}

// forgetLocked removes a slot from the Set. The caller closes the slot's log, whose readers end after they have read all of it.
func (s *Set) forgetLocked(sl *slot) {
	delete(s.slots, sl.id)
	if sl.expiry != nil {
		sl.expiry.Stop()
	}
	if sl.boot != nil {
		sl.boot.cancel()
	}
	s.changed.fire()
}

// Remove ends the instance of a server_id, or its start, as Instance.Close does, and forgets the server_id. An unknown server_id is no
// error; a server_id that somebody else is removing is waited for. Callers that wait to start the server_id anew are refused.
func (s *Set) Remove(serverID string) error {
	s.mu.Lock()
	if sl := s.slots[serverID]; sl != nil {
		return s.removeUnlock(sl, yield)
	}
	before := s.leaving[serverID]
	if before != nil {
		before.again.fire()
	}
	s.mu.Unlock()
	if before != nil {
		<-before.gone
	}
	return nil
}

// removeInstance removes the slot of an instance, unless a newer instance has the slot.
func (s *Set) removeInstance(i *Instance, full pressure) error {
	s.mu.Lock()
	if sl := i.slot; s.slots[sl.id] == sl && sl.inst == i {
		return s.removeUnlock(sl, full)
	}
	s.mu.Unlock()
	return i.shut(full)
}

// removeUnlock forgets the slot, unlocks, and ends the slot's process. Readers end last, so that they see how the process ended.
func (s *Set) removeUnlock(sl *slot, full pressure) error {
	boot, inst := sl.boot, sl.inst
	s.forgetLocked(sl)
	sl.removed.fire()
	end := &departure{gone: make(chan struct{})}
	s.leaving[sl.id] = end // no other exists: the start of the slot has waited for the earlier departure
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.leaving, sl.id)
		s.mu.Unlock()
		close(end.gone)
	}()
	defer sl.log.close()
	var err error
	if inst != nil {
		err = inst.shut(full)
	}
	if boot != nil {
		await(boot.done, eofGrace+termGrace+killGrace)
	}
	return err
}

// Reader returns a reader of the log of a server_id from the message after seq on. Reader waits for an unknown server_id: two seconds, or
// as long as its first process is being started; then the error is ErrUnknown.
func (s *Set) Reader(ctx context.Context, serverID string, seq uint64) (*Reader, error) {
	timeout := time.NewTimer(lookupGrace)
	defer timeout.Stop()
	for late := false; ; {
		s.mu.Lock()
		sl := s.slots[serverID]
		if sl != nil && sl.inst != nil {
			defer s.mu.Unlock()
			return sl.log.after(seq), nil
		}
		changed, closed := s.changed.wait(), s.closed
		s.mu.Unlock()
		if late && sl == nil || closed {
			return nil, ErrUnknown
		}
		select {
		case <-changed:
		case <-timeout.C:
			late = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// List returns the status of all instances, by server_id.
func (s *Set) List() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, 0, len(s.slots))
	for _, sl := range s.slots {
		if sl.boot != nil {
			list = append(list, Status{ServerID: sl.id, Agent: sl.agent, Phase: Starting, CreatedAt: sl.created})
		} else {
			list = append(list, sl.inst.Status())
		}
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.ServerID, b.ServerID) })
	return list
}

// Close ends all instances at once and waits for their end, including instances that are being removed and bootstraps; Close takes as
// long as Instance.Close. The Set accepts no call after that.
func (s *Set) Close() error {
	slots, running, first := s.shutOut()
	errs := make([]error, len(running))
	var ends sync.WaitGroup
	for n, inst := range running {
		ends.Go(func() { errs[n] = inst.shut(yield) })
	}
	ends.Wait()
	s.work.Wait()
	for _, sl := range slots {
		sl.log.close()
	}
	if first {
		s.guard.census.leave(s)
		errs = append(errs, s.guard.release())
	}
	return errors.Join(errs...)
}

// shutOut closes the Set to callers and returns its content; first is false when the Set was already closed.
func (s *Set) shutOut() (slots []*slot, running []*Instance, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.closed
	s.closed = true
	slots = slices.Collect(maps.Values(s.slots))
	for _, sl := range slots {
		s.forgetLocked(sl)
	}
	return slots, slices.Collect(maps.Keys(s.running)), first
}
