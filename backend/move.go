package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/httpapi"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// Moving the data directory. All that uses it is ended, it is copied, the copy is proven, the pointer is written, and a backend is opened
// on the new one. Until the pointer is written nothing but the copy has changed; from there on the copy is what counts. Copying while
// the program works, and what has changed meanwhile afterwards, would be shorter for people and has a moment in which neither is whole.

// intentName is in the old directory while it is copied: it tells the next start what a move that was broken off has left.
const intentName = "moving.json"

type intent struct {
	To string `json:"to"`
	ID string `json:"id"`
}

// staying are the names that belong to a process or to the place.
func staying() []string {
	return append(store.Beside(), lockName, "owner.json", "run", ledgerFile, intentName, markName, noteName, store.RecordName)
}

// bound are the parts in which absolute paths of the directory are written: first lines of scripts and settings of Python's environments.
// The book of skills' links is not among them: it names the links as they stand in other directories, to find them again.
func bound() []string { return []string{"agents"} }

const (
	moveRunning   = "running"
	moveDone      = "done"
	moveFailed    = "failed"
	moveCancelled = "cancelled"
)

// The codes of what is in the way of a move.
const (
	refusedMoveFixed    = "move.fixed"     // --data-dir says where the data is
	refusedMoveNewer    = "move.newer"     // a newer version has written it
	refusedMoveBusy     = "move.running"   // one runs
	refusedMoveTurns    = "move.turns"     // params count
	refusedMoveShared   = "move.shared"    // the settings are in the same directory
	refusedMoveDeleting = "move.deleting"  // params path: of the old copy, which is to be deleted first
	refusedMoveBeside   = "move.beside"    // others serve /v1 from the directory; params who
	refusedMovePath     = "move.path"      // params path: not absolute, or its parent is not there
	refusedMoveInside   = "move.inside"    // params path, data
	refusedMoveNotEmpty = "move.not_empty" // params path
	refusedMoveWrite    = "move.write"     // params path, detail
	refusedMoveSpace    = "move.space"     // params need, free: bytes
	refusedMoveDisk     = "move.disk"      // params path, detail
	refusedMoveFailed   = "move.failed"    // params detail
	refusedMoveBroken   = "move.broken"    // a move was broken off; params path
	refusedMoveOld      = "move.no_old"    // there is no old copy
	refusedMoveUsed     = "move.old_used"  // somebody has used the old copy since; params path
	refusedMoveUnproven = "move.unproven"  // the new one does not prove whole; params detail
)

func refuse(code string, params ...string) error {
	r := &session.RefusedError{Code: code, Params: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		r.Params[params[i]] = params[i+1]
	}
	return r
}

func (h *Host) moving() *httpapi.Moving {
	return &httpapi.Moving{Show: h.ShowMove, Check: h.CheckMove, Begin: h.BeginMove, Cancel: h.CancelMove, DeleteOld: h.DeleteOld}
}

// ShowMove tells where the data is, and how far a move is.
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
	if old := places.at.Previous; old != nil && (old.Deleting || store.Holds(old.Directory)) {
		p.Old = &httpapi.OldCopy{Directory: old.Directory, MovedAt: session.Time{Time: old.MovedAt}, Deleting: old.Deleting}
	}
	return p
}

func fixed(now *Backend, places Places) string {
	switch {
	case places.pointer == "":
		return refusedMoveFixed
	case now.client == nil || now.client.ReadOnly() != nil:
		return refusedMoveNewer
	case places.shared():
		return refusedMoveShared
	}
	return ""
}

// free gives what is served now, unless a move has it.
func (h *Host) free() (*Backend, Places, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || h.cancel != nil {
		return nil, Places{}, refuse(refusedMoveBusy)
	}
	return h.now, h.cfg.Places, nil
}

// room is what is left free beside the copy, so that the next message can be written.
const room = 64 << 20

// CheckMove tells what a move would take, or what is in its way.
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
		alone, err := takeAlone(places.Data)
		if err != nil {
			return err
		}
		return alone.Close()
	})
	return plan, err
}

// check is called with acts held.
func (h *Host) check(ctx context.Context, path string) (plan httpapi.MovePlan, err error) {
	now, places, err := h.free()
	if err != nil {
		return plan, err
	}
	if why := fixed(now, places); why != "" {
		return plan, refuse(why)
	}
	if old := places.at.Previous; old != nil && old.Deleting { // after another move nobody would know what it is
		return plan, refuse(refusedMoveDeleting, "path", old.Directory)
	}
	plan.Turns = now.Running()
	if plan.Path, err = target(places.Data, path); err != nil {
		return plan, err
	}
	c := store.Copy{From: places.Data, Skip: staying()}
	if plan.Bytes, plan.Files, err = c.Survey(ctx); err != nil {
		return plan, err
	}
	plan.Free, err = fit(ctx, plan.Path)
	if err == nil && plan.Free < plan.Bytes+room {
		err = refuse(refusedMoveSpace, "path", plan.Path, "need", strconv.FormatInt(plan.Bytes+room, 10), "free", strconv.FormatInt(plan.Free, 10))
	}
	return plan, err
}

// target is a directory that the data can be moved to: an empty one, or one that is not there yet.
func target(data, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", refuse(refusedMovePath, "path", path)
	}
	path = filepath.Clean(path)
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", refuse(refusedMovePath, "path", path)
	}
	to := filepath.Join(parent, filepath.Base(path))
	if real, err := filepath.EvalSymlinks(to); err == nil {
		to = real
	}
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	if to == data || strings.HasPrefix(to, data+string(filepath.Separator)) {
		return "", refuse(refusedMoveInside, "path", path, "data", data)
	}
	list, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return to, nil
	case err != nil:
		return "", refuse(refusedMoveWrite, "path", path, "detail", err.Error())
	case slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() != noteName }): // which says that data was there once
		return "", refuse(refusedMoveNotEmpty, "path", path)
	}
	return to, nil
}

// fit tries a directory, and tells how much is free there. It leaves nothing.
func fit(ctx context.Context, to string) (free int64, err error) {
	made := os.Mkdir(to, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return 0, refuse(refusedMoveWrite, "path", to, "detail", made.Error())
	}
	if made == nil {
		defer func() { err = errors.Join(err, os.Remove(to)) }()
	}
	var unfit *store.UnfitError
	switch err := store.Fit(ctx, to); {
	case errors.As(err, &unfit):
		return 0, refuse(refusedMoveDisk, "path", to, "detail", unfit.Why)
	case err != nil:
		return 0, refuse(refusedMoveWrite, "path", to, "detail", err.Error())
	}
	return store.FreeSpace(to)
}

// BeginMove begins a move. Turns that run are ended by it when the person has said so.
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
		alone, err := takeAlone(places.Data)
		if err != nil {
			return err
		}
		begun, err = h.begin(now, plan, alone) //nolint:contextcheck // it lives until it is through, not as long as the call
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

// CancelMove ends a move as long as the old directory is the one that counts. That there is none is no error.
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

// run moves the data, and opens a backend where it is then.
func (h *Host) run(ctx context.Context, old *Backend, to string, alone io.Closer) {
	old.calls.rest()
	old.api.Close()
	was := h.cfg.Places
	err := old.closeParts()
	if err == nil {
		err = h.transfer(ctx, was, to)
	}
	h.tell("open", 0, 0)
	if late := errors.Join(old.socket.Close(), old.lock.release(), alone.Close()); late != nil { // what came of the move is decided
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

// settle opens the directory that the pointer names now, whatever we think that it should name. next is nil when the host is ended, which
// leaves that to the next start, and when nothing may be opened, which failed tells.
func (h *Host) settle(was Places, moveErr error) (next *Backend, err, failed error) {
	places := was
	if lost := places.again(); lost != nil {
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
	// Proven, and yet: the old one is whole. Unless somebody works in the new one, since what they do there has to be found again: the lock
	// says so, and keeps others out until the pointer is back.
	h.step("back")
	lock, held := takeLock(places.Data)
	if _, is := errors.AsType[*HeldError](held); is {
		return nil, nil, fmt.Errorf("the data was moved from %s to %s, where another program was faster: %w", was.Data, places.Data, held)
	}
	if held == nil {
		defer func() { failed = errors.Join(failed, lock.release()) }()
	}
	moveErr = failed
	if back := places.point(was.at.or(was.Data)); back != nil { // who worked in the old one now would not find it at the next start
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

// reopen opens a backend after a move, with the data in its own hand.
func (h *Host) reopen(places Places) (*Backend, error) {
	if h.ctx.Err() != nil {
		return nil, h.ctx.Err()
	}
	b, err := open(h.ctx, h.at(places), h.moving())
	if err == nil && b.lock == nil {
		return nil, errors.Join(b.holder, b.Close())
	}
	return b, err
}

// or is the pointer itself, or one to the directory of who has none.
func (p pointer) or(dir string) pointer {
	if p.Directory == "" {
		p.Directory = dir
	}
	return p
}

func (h *Host) at(p Places) Config {
	cfg := h.cfg
	cfg.Places = p
	return cfg
}

// endLocked writes down what came of a move.
func (h *Host) endLocked(ctx context.Context, err error) {
	m, cancelled := h.move, ctx.Err() != nil
	h.cancel()
	h.cancel = nil
	m.EndedAt = &session.Time{Time: time.Now()}
	refused, isRefused := errors.AsType[*session.RefusedError](err)
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

// transfer copies, proves and switches. When it fails, what it has written is gone again.
func (h *Host) transfer(ctx context.Context, places Places, to string) (err error) {
	from, m := places.Data, mark{ID: secret(), From: places.Data}
	if err := errors.Join(makePrivate(to), os.Chmod(to, 0o700)); err != nil { //nolint:gosec // a directory
		return refuse(refusedMoveWrite, "path", to, "detail", err.Error())
	}
	if err := writeJSON(filepath.Join(from, intentName), intent{To: to, ID: m.ID}); err != nil {
		_ = os.Remove(to) // an empty one; without the intent nobody would know whose a mark in it is
		return errors.Join(err, dropCopy(places))
	}
	if err := writeJSON(filepath.Join(to, markName), m); err != nil {
		return errors.Join(err, dropCopy(places))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dropCopy(places))
		}
	}()
	h.step("prepared")
	c := store.Copy{From: from, To: to, Skip: staying(), Bound: bound(), Tell: h.tell}
	if err := c.Write(ctx); err != nil {
		return err
	}
	h.step("copied")
	if err := c.Prove(ctx); err != nil {
		return err
	}
	h.step("proven")
	m.Whole = true
	if err := errors.Join(writeJSON(filepath.Join(to, markName), m), ctx.Err()); err != nil {
		return err
	}
	h.step("whole")
	p := pointer{Directory: to, ID: m.ID, Previous: &previous{Directory: from, Database: c.DatabaseSum(), MovedAt: time.Now()}}
	if err := places.point(p); err != nil {
		return err
	}
	h.step("switched")
	_ = os.Remove(filepath.Join(from, intentName)) // it is of the old directory, where it says nothing wrong
	return nil
}

// dropCopy removes a copy that is not to be. Only what this move has written is touched, and nothing that the pointer names: what somebody
// has saved in the target while it was copied may be what the move has failed by.
func dropCopy(from Places) error {
	var i intent
	file := filepath.Join(from.Data, intentName)
	if there, err := readJSON(file, &i); err != nil || !there {
		return err
	}
	now := from
	if err := now.again(); err != nil || now.Data == i.To {
		return err // it is what the next start opens, or may be
	}
	if m, err := markOf(i); err != nil || m.ID != i.ID {
		return errors.Join(err, store.Remove(file)) // it was not begun, or its disk is away: a later move there says that it is not empty
	}
	lock, err := tryLock(i.To)
	if err != nil {
		return err
	}
	if lock == nil {
		return store.Remove(file) // somebody works there
	}
	m, err := markOf(i)
	if err == nil && !m.Used { // else the move was through, and people have worked there since
		err = emptyCopy(i.To, m)
	}
	if err := errors.Join(err, lock.unlock()); err != nil {
		return err
	}
	if !m.Used {
		leaveCopy(i.To)
	}
	return store.Remove(file)
}

func markOf(i intent) (m mark, err error) {
	_, err = readJSON(filepath.Join(i.To, markName), &m)
	return m, err
}

// emptyCopy removes what was copied. The mark goes after it: without it nobody knows that this was ours, and with it nobody opens it.
func emptyCopy(dir string, m mark) error {
	m.Whole = false
	if err := writeJSON(filepath.Join(dir, markName), m); err != nil {
		return err
	}
	return store.Undo(dir)
}

// leaveCopy removes what else a move has in a directory whose copy is gone: its lock, which Windows asks to be released before, and the mark.
// A directory that was there before is a person's, and an empty one that stays does no harm.
func leaveCopy(dir string) {
	file := filepath.Join(dir, "lock")
	if info, err := os.Lstat(file); err == nil && info.Size() == 0 { // else it is no lock
		_ = os.Remove(file)
	}
	if !store.Holds(dir) { // a database whose record a power failure took stays, and nobody is to take it for whole
		_ = os.Remove(filepath.Join(dir, markName))
	}
	_ = os.Remove(dir)
}

// removeAll removes directories that nobody may write to as well, as they are in stores of git and of skills.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // a directory of ours
		}
		return nil
	})
	return os.RemoveAll(path)
}

// sweepMove removes what a move that was broken off has left, and tells of it.
func sweepMove(cfg Config) *httpapi.DataMove {
	var i intent
	if there, err := readJSON(filepath.Join(cfg.Places.Data, intentName), &i); err == nil && !there || cfg.Places.pointer == "" {
		return nil // who has named the directory does not know where the data is
	}
	if err := dropCopy(cfg.Places); err != nil {
		cfg.Logger.Warn("what a move of the data has left cannot be removed", "to", i.To, "error", err)
	}
	now := session.Time{Time: time.Now()}
	return &httpapi.DataMove{
		State: moveFailed, Step: store.StepCopy, From: cfg.Places.Data, To: i.To, StartedAt: now, EndedAt: &now,
		Code: refusedMoveBroken, Params: map[string]string{"path": i.To},
	}
}

// DeleteOld deletes the directory that the data was moved from, once the new one proves whole and nobody has used the old one since. From
// its first step on that is a directory which is only to be deleted, so that one that was broken off is done again.
func (h *Host) DeleteOld(ctx context.Context) error {
	return h.act(ctx, h.deleteOld)
}

func (h *Host) deleteOld(ctx context.Context) error {
	now, places, err := h.free()
	if err != nil {
		return err
	}
	old := places.at.Previous
	if old == nil {
		return refuse(refusedMoveOld)
	}
	if faults, err := now.db.Check(ctx); err != nil || len(faults) > 0 {
		return refuse(refusedMoveUnproven, "detail", strings.Join(append(faults, errorText(err)), " "))
	}
	lock, err := takeLock(old.Directory)
	if old.Deleting && errors.Is(err, fs.ErrNotExist) {
		return h.setOld(nil)
	}
	if err != nil {
		return refuse(refusedMoveUsed, "path", old.Directory, "detail", err.Error())
	}
	err = h.emptyOld(ctx, places, *old)
	if err = errors.Join(err, lock.release()); err != nil {
		return err
	}
	keep := old.Directory == places.usual // with the note: where a start looks that finds no pointer
	for _, name := range []string{lockName, "run", noteName, markName} {
		if name != noteName || !keep {
			_ = removeAll(filepath.Join(old.Directory, name)) // it says nothing to anybody
		}
	}
	_ = os.Remove(old.Directory)
	return h.setOld(nil)
}

// setOld writes what the old copy is by now; nil = there is none.
func (h *Host) setOld(old *previous) error {
	h.mu.Lock()
	places := h.cfg.Places
	h.mu.Unlock()
	at := places.at
	at.Previous = old
	if err := places.point(at); err != nil {
		return err
	}
	h.mu.Lock()
	h.cfg.Places = places
	h.mu.Unlock()
	return nil
}

// noteDeleting notes that the old copy is being deleted, which must be as it was copied when that begins.
func (h *Host) noteDeleting(old *previous) error {
	if old.Deleting {
		return nil
	}
	sum, err := store.DatabaseSum(old.Directory)
	if err != nil || sum != old.Database {
		return refuse(refusedMoveUsed, "path", old.Directory, "detail", errorText(err))
	}
	old.Deleting = true
	return h.setOld(old)
}

// emptyOld deletes what was copied and what belonged to the place. What else is there is not ours, and stays. Its lock is held.
func (h *Host) emptyOld(ctx context.Context, places Places, old previous) (err error) {
	alone, err := takeAlone(old.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	if err := h.noteDeleting(&old); err != nil { // before anything goes: nobody must be offered a half of it
		return err
	}
	// The directory itself says so too, whatever pointer there will be.
	if err := writeJSON(filepath.Join(old.Directory, markName), mark{ID: secret(), From: old.Directory}); err != nil {
		return err
	}
	list, err := os.ReadDir(old.Directory)
	if err != nil {
		return err
	}
	later := []string{lockName, "run", noteName, markName}
	var errs []error
	for _, e := range list {
		h.step("deleting")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, err := os.Lstat(filepath.Join(places.Data, e.Name()))
		if (err == nil || slices.Contains(staying(), e.Name())) && !slices.Contains(later, e.Name()) {
			errs = append(errs, removeAll(filepath.Join(old.Directory, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// inherit takes over the addresses on which another backend was served.
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
