package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/datadir"
	"deskhand/backend/httpapi"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// The states of a move of the data directory. A move ends everything that uses the directory, datadir copies the directory and switches, and
// then a backend is opened on the valid directory.

const (
	moveRunning   = "running"
	moveDone      = "done"
	moveFailed    = "failed"
	moveCancelled = "cancelled"
)

// The codes of a refused move, besides those of datadir.
const (
	refusedMoveFixed    = "move.fixed"    // --data-dir names the directory
	refusedMoveNewer    = "move.newer"    // a newer version has written the data
	refusedMoveBusy     = "move.running"  // a move runs
	refusedMoveTurns    = "move.turns"    // params count
	refusedMoveShared   = "move.shared"   // the settings are in the data directory
	refusedMoveFailed   = "move.failed"   // params detail
	refusedMoveBroken   = "move.broken"   // a move was interrupted; params path
	refusedMoveUnproven = "move.unproven" // the new directory does not prove whole; params detail
)

func refuse(code string, params ...string) error {
	r := &session.RefusedError{Code: code, Params: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		r.Params[params[i]] = params[i+1]
	}
	return r
}

// refusal converts an error of datadir into the API's form.
func refusal(err error) error {
	if r, is := errors.AsType[*datadir.RefusedError](err); is {
		return &session.RefusedError{Code: r.Code, Params: r.Params}
	}
	return err
}

func (h *Host) moving() *httpapi.Moving {
	return &httpapi.Moving{Show: h.ShowMove, Check: h.CheckMove, Begin: h.BeginMove, Cancel: h.CancelMove, DeleteOld: h.DeleteOld}
}

// ShowMove describes the data directory and the progress of a move.
func (h *Host) ShowMove() httpapi.DataPlace {
	h.mu.Lock()
	places, now, moving := h.cfg.Places, h.now, h.cancel != nil
	p := httpapi.DataPlace{Directory: places.Data}
	if h.move != nil {
		m := *h.move
		p.Move = &m
	}
	h.mu.Unlock()
	if now != nil && !moving {
		p.Fixed = fixed(now, places)
	}
	if old, there := places.Old(); there {
		p.Old = &httpapi.OldCopy{Directory: old.Directory, MovedAt: session.Time{Time: old.MovedAt}, Deleting: old.Deleting}
	}
	return p
}

func fixed(now *Backend, places datadir.Paths) string {
	switch {
	case places.Fixed():
		return refusedMoveFixed
	case now.client == nil || now.client.ReadOnly() != nil:
		return refusedMoveNewer
	case places.Shared():
		return refusedMoveShared
	}
	return ""
}

// free returns the served backend, or an error during a move.
func (h *Host) free() (*Backend, datadir.Paths, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || h.cancel != nil {
		return nil, datadir.Paths{}, refuse(refusedMoveBusy)
	}
	return h.now, h.cfg.Places, nil
}

// CheckMove describes a move to path, or refuses the move.
func (h *Host) CheckMove(ctx context.Context, path string) (plan httpapi.MovePlan, err error) {
	err = h.act(ctx, func(ctx context.Context) error {
		plan, err = h.check(ctx, path)
		if err != nil {
			return err
		}
		_, places, err := h.free()
		if err != nil {
			return err
		}
		alone, err := datadir.Exclude(places.Data)
		if err != nil {
			return err
		}
		return alone.Close()
	})
	return plan, err
}

// check is CheckMove for a caller that holds h.acts.
func (h *Host) check(ctx context.Context, path string) (plan httpapi.MovePlan, err error) {
	now, places, err := h.free()
	if err != nil {
		return plan, err
	}
	if why := fixed(now, places); why != "" {
		return plan, refuse(why)
	}
	p, err := places.Plan(ctx, path)
	return httpapi.MovePlan{Path: p.Path, Bytes: p.Bytes, Files: p.Files, Free: p.Free, Turns: now.Running()}, err
}

// BeginMove begins a move. With stopTurns, the move ends running turns; without, running turns refuse the move.
func (h *Host) BeginMove(ctx context.Context, path string, stopTurns bool) (begun httpapi.DataMove, err error) {
	err = h.act(ctx, func(ctx context.Context) error {
		plan, err := h.check(ctx, path)
		if err != nil {
			return err
		}
		if plan.Turns > 0 && !stopTurns {
			return refuse(refusedMoveTurns, "count", strconv.Itoa(plan.Turns))
		}
		now, places, err := h.free()
		if err != nil {
			return err
		}
		alone, err := datadir.Exclude(places.Data)
		if err != nil {
			return err
		}
		begun, err = h.begin(now, plan, alone) //nolint:contextcheck // the move outlives the call
		return err
	})
	return begun, err
}

func (h *Host) begin(now *Backend, plan httpapi.MovePlan, alone io.Closer) (httpapi.DataMove, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return httpapi.DataMove{}, errors.Join(session.ErrClosed, alone.Close())
	}
	h.move = &httpapi.DataMove{
		State: moveRunning, Step: "stop", From: h.cfg.Places.Data, To: plan.Path, Total: plan.Bytes, StartedAt: session.Time{Time: time.Now()},
	}
	ctx, cancel := context.WithCancel(h.ctx)
	h.cancel = cancel
	h.wg.Go(func() { h.run(ctx, now, plan.Path, alone) })
	return *h.move, nil
}

// CancelMove cancels the move while the old directory is the valid directory. Without a move CancelMove does nothing.
func (h *Host) CancelMove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cancel != nil {
		h.cancel()
	}
}

func (h *Host) tell(step string, done, total int64) {
	h.mu.Lock()
	h.move.Step, h.move.Done, h.move.Total = step, done, total
	h.mu.Unlock()
}

// run moves the data, and opens a backend on the valid directory.
func (h *Host) run(ctx context.Context, old *Backend, to string, alone io.Closer) {
	old.calls.drain()
	old.api.Close()
	was := h.cfg.Places
	err := old.closeParts()
	if err == nil {
		err = was.Move(ctx, to, h.tell, h.step)
	}
	h.tell("open", 0, 0)
	if late := errors.Join(old.socket.Close(), old.lock.Release(), alone.Close()); late != nil { // the move's outcome is decided by now
		h.cfg.Logger.Warn("the directory of the data was not given back as it should", "directory", was.Data, "error", late)
	}
	next, err, failed := h.settle(was, err)
	if next == nil {
		failed = errors.Join(failed, old.local.close())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endLocked(ctx, err)
	if next == nil {
		h.now = nil
		if failed != nil {
			h.failed <- failed
		}
		return
	}
	h.cfg.Places = next.cfg.Places
	next.inherit(old, h.listener)
	h.takeLocked(next)
}

// settle opens the directory that the pointer names. next is nil when the host is closed, which leaves the opening to the next start, and when
// no directory may be opened, as failed then explains.
func (h *Host) settle(was datadir.Paths, moveErr error) (next *Backend, err, failed error) {
	places := was
	if lost := places.Refresh(); lost != nil {
		return nil, errors.Join(moveErr, lost), lost
	}
	moved := places.Data != was.Data
	if moved && moveErr != nil {
		h.cfg.Logger.Warn("the data was moved, with an error", "to", places.Data, "error", moveErr)
		moveErr = nil
	}
	next, failed = h.reopen(places)
	if failed == nil || !moved || h.ctx.Err() != nil {
		return next, moveErr, h.unlessEnded(failed)
	}
	// The copy was proven, but cannot be opened: the old directory is whole, and becomes the data again, unless another program works in the
	// new directory, whose work must not be lost. The lock shows that, and excludes other programs until the pointer is back.
	h.step("back")
	lock, held := datadir.Acquire(places.Data)
	if _, is := errors.AsType[*datadir.HeldError](held); is {
		return nil, nil, fmt.Errorf("the data was moved from %s to %s, where another program was faster: %w", was.Data, places.Data, held)
	}
	if held == nil {
		defer func() { failed = errors.Join(failed, lock.Release()) }()
	}
	moveErr = failed
	if back := places.Return(was); back != nil { // the next start would not find work in the old directory
		return nil, moveErr, fmt.Errorf("the data was moved from %s to %s and cannot be opened there: %w\nThat the old directory is to be used again could not be written: %w",
			was.Data, places.Data, failed, back)
	}
	next, failed = h.reopen(places)
	return next, moveErr, h.unlessEnded(failed)
}

func (h *Host) unlessEnded(err error) error {
	if h.ctx.Err() == nil {
		return err
	}
	return nil
}

// reopen opens a backend after a move, and fails unless this process holds the directory.
func (h *Host) reopen(places datadir.Paths) (*Backend, error) {
	if h.ctx.Err() != nil {
		return nil, h.ctx.Err()
	}
	b, err := open(h.ctx, h.at(places), h.moving())
	if err == nil && b.lock == nil {
		return nil, errors.Join(b.holder, b.Close())
	}
	return b, err
}

func (h *Host) at(p datadir.Paths) Config {
	cfg := h.cfg
	cfg.Places = p
	return cfg
}

// endLocked records the outcome of a move. The caller holds h.mu.
func (h *Host) endLocked(ctx context.Context, err error) {
	m, cancelled := h.move, ctx.Err() != nil
	h.cancel()
	h.cancel = nil
	m.EndedAt = &session.Time{Time: time.Now()}
	refused, isRefused := errors.AsType[*datadir.RefusedError](err)
	switch {
	case err == nil:
		m.State = moveDone
	case cancelled:
		m.State = moveCancelled
	case isRefused:
		m.State, m.Code, m.Params = moveFailed, refused.Code, refused.Params
	default:
		m.State, m.Code, m.Params = moveFailed, refusedMoveFailed, map[string]string{"detail": err.Error()}
	}
	if err != nil && !cancelled {
		h.cfg.Logger.Error("the data was not moved", "to", m.To, "error", err)
	}
}

// sweepMove removes the remains of an interrupted move and returns that move, or nil.
func sweepMove(cfg Config) *httpapi.DataMove {
	to, swept, err := cfg.Places.SweepMove()
	if !swept {
		return nil
	}
	if err != nil {
		cfg.Logger.Warn("what a move of the data has left cannot be removed", "to", to, "error", err)
	}
	now := session.Time{Time: time.Now()}
	return &httpapi.DataMove{
		State: moveFailed, Step: store.StepCopy, From: cfg.Places.Data, To: to, StartedAt: now, EndedAt: &now,
		Code: refusedMoveBroken, Params: map[string]string{"path": to},
	}
}

// DeleteOld deletes the old directory, once the new data has proven whole and if nobody has used the old directory since the move.
func (h *Host) DeleteOld(ctx context.Context) error {
	return h.act(ctx, h.deleteOld)
}

func (h *Host) deleteOld(ctx context.Context) error {
	now, places, err := h.free()
	if err != nil {
		return err
	}
	if err := places.CheckOld(); err != nil {
		return err
	}
	faults, err := now.db.Check(ctx)
	if err != nil {
		faults = append(faults, err.Error())
	}
	if len(faults) > 0 {
		return refuse(refusedMoveUnproven, "detail", strings.Join(faults, " "))
	}
	return places.DeleteOld(ctx, h.step, func(p datadir.Paths) {
		h.mu.Lock()
		h.cfg.Places = p
		h.mu.Unlock()
	})
}

// inherit takes over the listeners of another backend.
func (b *Backend) inherit(old *Backend, l *Listener) {
	o, n := &old.local, &b.local
	o.mu.Lock()
	n.mu.Lock()
	n.open, n.port, n.listener, n.problem = o.open, o.port, o.listener, o.problem
	o.listener, o.open = nil, false
	listeners := []*Listener{n.listener, l}
	n.mu.Unlock()
	o.mu.Unlock()
	for _, l := range listeners {
		if l != nil {
			b.serveOn(l)
		}
	}
}
