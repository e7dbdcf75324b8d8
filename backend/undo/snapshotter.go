package undo

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/snapshot"
)

// Times of snapshots.
const (
	holdPrompt  = 300 * time.Millisecond // the longest that a prompt is held
	holdQuick   = 20 * time.Millisecond  // enough for the snapshot of a directory in which little was touched
	beforeLimit = 3 * time.Minute        // for a snapshot before a turn; the part that is done by then makes the next snapshot quick
	afterLimit  = 30 * time.Second       // for a snapshot after a turn
	closeLimit  = 5 * time.Second        // for a snapshot after a turn that the end of the program ended
)

// Snapshotter takes the snapshots around the turns of one session. Its methods are called by the session's goroutine alone and return at once:
// directories are read by goroutines that run starts, since reading a directory takes time.
type Snapshotter struct {
	l       *Library
	run     func(func())
	pending []*pendingSnapshot
}

// Snapshotter returns the Snapshotter of a session. run starts a goroutine and belongs to the caller, who waits for these goroutines before the
// Library's store is closed.
func (l *Library) Snapshotter(run func(func())) *Snapshotter { return &Snapshotter{l: l, run: run} }

// pendingSnapshot is a snapshot that is being taken.
type pendingSnapshot struct {
	taken  chan struct{} // closed when the tree was taken, or cannot be taken
	stored chan struct{} // closed when the row of the turn is stored

	// limit is the moment at which an agent began to work before the tree was taken; nil = no agent has. The tree is the directory of that moment.
	limit atomic.Pointer[snapshot.Limit]
}

func newPending() *pendingSnapshot {
	return &pendingSnapshot{taken: make(chan struct{}), stored: make(chan struct{})}
}

// noteTaken closes taken. noteTaken is called by the goroutine of the snapshot alone, at most twice.
func (p *pendingSnapshot) noteTaken() {
	if !closed(p.taken) {
		close(p.taken)
	}
}

func (p *pendingSnapshot) isStored() bool { return closed(p.stored) }

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func whenTaken(p *pendingSnapshot) <-chan struct{}  { return p.taken }
func whenStored(p *pendingSnapshot) <-chan struct{} { return p.stored }

// await waits until a channel of each snapshot is closed, or for the end of ctx.
func await(ctx context.Context, list []*pendingSnapshot, of func(*pendingSnapshot) <-chan struct{}) {
	for _, p := range list {
		select {
		case <-of(p):
		case <-ctx.Done():
			return
		}
	}
}

// anyUntaken reports whether the tree of a snapshot is still to be taken.
func anyUntaken(list []*pendingSnapshot) bool {
	return slices.ContainsFunc(list, func(p *pendingSnapshot) bool { return !closed(p.taken) })
}

// add adds a snapshot to the pending snapshots, and returns those that were pending before.
func (sn *Snapshotter) add() (now *pendingSnapshot, before []*pendingSnapshot) {
	before = slices.DeleteFunc(sn.pending, (*pendingSnapshot).isStored)
	now = newPending()
	sn.pending = append(slices.Clone(before), now)
	return now, before
}

// TurnBegins takes the snapshot before a turn that began at a moment. ctx ends with the program.
func (sn *Snapshotter) TurnBegins(ctx context.Context, s Session, turn string, at time.Time) {
	l := sn.l
	if l.Snapshots == nil {
		return
	}
	now, before := sn.add()
	sn.run(func() {
		defer close(now.stored)
		defer now.noteTaken()
		taking, cancel := context.WithTimeout(ctx, beforeLimit)
		defer cancel()
		if l.Host(s.Place).Directories.Answers(taking, s.Cwd) == nil {
			reach := l.reach(&s)
			l.busy.turnBegins(turn, s.ID, reach)
			l.busy.awaitRestores(ctx, reach)
		}
		await(taking, before, whenTaken) // otherwise the snapshot after the turn before could contain changes of this turn
		l.logFailure(taking, "before", l.recordBefore(taking, &s, turn, at, now))
	})
}

// TurnEnds returns the function that takes the snapshot after a turn. The caller calls the function once the end of the turn is stored and shown:
// surfaces that follow a turn stop listening at its end, so nothing of the turn may be published earlier. ctx ends with the program.
func (sn *Snapshotter) TurnEnds(ctx context.Context, s Session, turn string) (take func()) {
	l := sn.l
	if l.Snapshots == nil {
		return func() {}
	}
	now, before := sn.add()
	ended := time.Now()
	return func() {
		sn.run(func() {
			defer close(now.stored)
			defer now.noteTaken()
			// However long the snapshots before take: they end by themselves. The row that the snapshot before the turn stores would stay open for ever
			// if this goroutine, which completes the row, had given up by then.
			await(context.WithoutCancel(ctx), before, whenStored)
			lasting, cancel := l.outlasting(ctx)
			defer cancel()
			defer l.busy.turnEnded(turn)
			l.logFailure(lasting, "after", l.recordAfter(lasting, &s, turn, ended, now))
		})
	}
}

// outlasting returns a context that lasts a little longer than ctx, which ends with the program: the changes of an agent until then are recorded.
func (l *Library) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(l.LastLook, afterLimit))
	var timer atomic.Pointer[time.Timer]
	stop := context.AfterFunc(ctx, func() { timer.Store(time.AfterFunc(closeLimit, cancel)) })
	return lasting, func() {
		stop()
		cancel()
		if t := timer.Load(); t != nil {
			t.Stop()
		}
	}
}

// Hold keeps a prompt from going to the agent.
type Hold struct {
	l       *Library
	session Session
	pending []*pendingSnapshot
	reach   []string
}

// Hold returns what the prompt of a session has to wait for: snapshots that are being taken, and restorations. It returns nil when the prompt may
// go at once.
func (sn *Snapshotter) Hold(s Session) *Hold {
	if !anyUntaken(sn.pending) && !sn.l.busy.restoringAnywhere() {
		return nil
	}
	return &Hold{l: sn.l, session: s, pending: slices.Clone(sn.pending)}
}

// Wait waits until the prompt may go, and reports false when ctx ended first. Wait waits for a snapshot no longer than Deps.HoldPrompt: then the
// snapshot goes on, limited to the directory of that moment. Wait waits for a restoration without a limit: an agent that worked meanwhile would
// read half of the old content, and the files that the agent writes would be replaced.
func (h *Hold) Wait(ctx context.Context) bool {
	if h.l.Host(h.session.Place).Directories.Answers(ctx, h.session.Cwd) != nil {
		return false
	}
	h.reach = h.l.reach(&h.session)
	h.l.busy.awaitRestores(ctx, h.reach)
	limit := h.awaitTrees(ctx)
	if ctx.Err() != nil {
		return false
	}
	for _, p := range h.pending {
		if !closed(p.taken) {
			p.limit.CompareAndSwap(nil, limit)
		}
	}
	return true
}

// Released reports whether the prompt may go after Wait. A restoration that began after Wait, and before the caller's turn could be seen, holds the
// prompt again: then the caller calls Wait once more.
func (h *Hold) Released() bool { return h.l.busy.restoringIn(h.reach) == nil }

// awaitTrees waits for the trees of the pending snapshots. When they are not taken in time, awaitTrees returns the limit for these snapshots.
func (h *Hold) awaitTrees(ctx context.Context) *snapshot.Limit {
	held, release := context.WithTimeout(ctx, cmp.Or(h.l.HoldPrompt, holdPrompt))
	defer release()
	taken := func(most time.Duration) bool {
		some, cancel := context.WithTimeout(held, most)
		defer cancel()
		await(some, h.pending, whenTaken)
		return !anyUntaken(h.pending)
	}
	limit := &snapshot.Limit{}
	if taken(holdQuick) {
		return limit
	}
	// marking ends with the last snapshot: a mark is of no use then.
	marking, stop := context.WithCancel(held)
	var watching sync.WaitGroup
	watching.Go(func() {
		await(marking, h.pending, whenTaken)
		stop()
	})
	defer watching.Wait()
	defer stop()
	// The mark has to be made as late as possible, and to be complete when the prompt goes out. The first mark tells how long a mark takes.
	store := h.l.store(&h.session)
	begun := time.Now()
	mark, err := store.Mark(marking)
	took := time.Since(begun)
	deadline, _ := held.Deadline()
	if rest := time.Until(deadline) - took - took/2; err == nil && rest > 0 {
		if taken(rest) {
			return limit
		}
		mark, err = store.Mark(marking)
	}
	if marking.Err() != nil && held.Err() == nil && taken(time.Second) {
		return limit
	}
	limit.At = time.Now()
	if err == nil {
		limit.Mark = mark
	}
	return limit
}
