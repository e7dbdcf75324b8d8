package datadir

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/store"
)

// A move copies the data directory, proves the copy and writes the pointer. Until the pointer is written nothing but the copy has changed; from
// then on the copy is the data. The caller has ended everything that uses the directory before. Copying while the program works, and the
// changes afterwards, would be shorter for people and has a moment in which neither directory is whole.

// intentName is a file in the old directory while it is copied: it tells the next start which copy a move that was broken off has left.
const intentName = "moving.json"

type intent struct {
	To string `json:"to"`
	ID string `json:"id"`
}

// staying returns the names that belong to a process or to the place, and are not copied.
func staying() []string {
	return append(store.Beside(), lockName, ownerName, runName, ledgerName, intentName, markName, noteName, store.RecordName)
}

// bound returns the parts in which absolute paths of the directory are written: first lines of scripts and settings of Python's environments.
// The list of skills' links is not among them: it has the links as they stand in other directories, to find them again.
func bound() []string { return []string{"agents"} }

// The codes of a [RefusedError].
const (
	codeDeleting = "move.deleting"  // params path: of the old copy, which is to be deleted first
	codeBeside   = "move.beside"    // others serve /v1 from the directory; params who
	codePath     = "move.path"      // params path: not absolute, or its parent is not there
	codeInside   = "move.inside"    // params path, data
	codeNotEmpty = "move.not_empty" // params path
	codeWrite    = "move.write"     // params path, detail
	codeSpace    = "move.space"     // params path, need and free, in bytes
	codeDisk     = "move.disk"      // params path, detail
	codeNoOld    = "move.no_old"    // there is no old copy
	codeOldUsed  = "move.old_used"  // somebody has used the old copy since; params path, detail
)

// RefusedError is the error of a move, or of the deletion of the old copy, that something is in the way of. Nothing was changed.
type RefusedError struct {
	Code   string            // stable and dotted, such as move.space
	Params map[string]string // what the text needs
}

func (r *RefusedError) Error() string { return "refused: " + r.Code }

func refuse(code string, params ...string) error {
	r := &RefusedError{Code: code, Params: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		r.Params[params[i]] = params[i+1]
	}
	return r
}

// room is what is left free beside the copy, so that the next message can be written.
const room = 64 << 20

// Plan is what a move would take.
type Plan struct {
	Path  string
	Bytes int64
	Files int
	Free  int64 // bytes, at Path
}

// Plan returns what a move to path would take, or a *[RefusedError].
func (p Paths) Plan(ctx context.Context, path string) (plan Plan, err error) {
	if old := p.at.Previous; old != nil && old.Deleting { // after another move nobody would know whose the old copy is
		return plan, refuse(codeDeleting, "path", old.Directory)
	}
	if plan.Path, err = target(p.Data, path); err != nil {
		return plan, err
	}
	c := store.Copy{From: p.Data, Skip: staying()}
	if plan.Bytes, plan.Files, err = c.Survey(ctx); err != nil {
		return plan, err
	}
	plan.Free, err = fit(ctx, plan.Path)
	if err == nil && plan.Free < plan.Bytes+room {
		err = refuse(codeSpace, "path", plan.Path, "need", strconv.FormatInt(plan.Bytes+room, 10), "free", strconv.FormatInt(plan.Free, 10))
	}
	return plan, err
}

// target is a directory that the data can be moved to: an empty one, or one that is not there yet.
func target(data, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", refuse(codePath, "path", path)
	}
	path = filepath.Clean(path)
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", refuse(codePath, "path", path)
	}
	to := filepath.Join(parent, filepath.Base(path))
	if real, err := filepath.EvalSymlinks(to); err == nil {
		to = real
	}
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	if to == data || strings.HasPrefix(to, data+string(filepath.Separator)) {
		return "", refuse(codeInside, "path", path, "data", data)
	}
	list, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return to, nil
	case err != nil:
		return "", refuse(codeWrite, "path", path, "detail", err.Error())
	case slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() != noteName }): // which says that data was there once
		return "", refuse(codeNotEmpty, "path", path)
	}
	return to, nil
}

// fit tries a directory, and tells how much is free there. It leaves nothing.
func fit(ctx context.Context, to string) (free int64, err error) {
	made := os.Mkdir(to, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return 0, refuse(codeWrite, "path", to, "detail", made.Error())
	}
	if made == nil {
		defer func() { err = errors.Join(err, os.Remove(to)) }()
	}
	var unfit *store.UnfitError
	switch err := store.Fit(ctx, to); {
	case errors.As(err, &unfit):
		return 0, refuse(codeDisk, "path", to, "detail", unfit.Why)
	case err != nil:
		return 0, refuse(codeWrite, "path", to, "detail", err.Error())
	}
	return store.FreeSpace(to)
}

// Move copies the data to an empty directory, proves the copy and writes the pointer. When it fails, the copy is gone again. The caller holds
// the lock and [Exclude]. tell hears of each step with the bytes that are done and their total, step of each stage that a test may wait for.
func (p Paths) Move(ctx context.Context, to string, tell func(step string, done, total int64), step func(stage string)) (err error) {
	from, m := p.Data, mark{ID: rand.Text(), From: p.Data}
	if err := errors.Join(MakePrivate(to), os.Chmod(to, 0o700)); err != nil { //nolint:gosec // a directory
		return refuse(codeWrite, "path", to, "detail", err.Error())
	}
	if err := writeJSON(filepath.Join(from, intentName), intent{To: to, ID: m.ID}); err != nil {
		_ = os.Remove(to) // an empty one; without the intent nobody would know whose a mark in it is
		return errors.Join(err, dropCopy(p))
	}
	if err := writeJSON(filepath.Join(to, markName), m); err != nil {
		return errors.Join(err, dropCopy(p))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dropCopy(p))
		}
	}()
	step("prepared")
	c := store.Copy{From: from, To: to, Skip: staying(), Bound: bound(), Tell: tell}
	if err := c.Write(ctx); err != nil {
		return err
	}
	step("copied")
	if err := c.Prove(ctx); err != nil {
		return err
	}
	step("proven")
	m.Whole = true
	if err := errors.Join(writeJSON(filepath.Join(to, markName), m), ctx.Err()); err != nil {
		return err
	}
	step("whole")
	next := pointer{Directory: to, ID: m.ID, Previous: &previous{Directory: from, Database: c.DatabaseSum(), MovedAt: time.Now()}}
	if err := p.point(next); err != nil {
		return err
	}
	step("switched")
	_ = os.Remove(filepath.Join(from, intentName)) // it is of the old directory, where it says nothing wrong
	return nil
}

// Return points back to the directory of was, after a move whose new directory cannot be opened.
func (p *Paths) Return(was Paths) error {
	at := was.at
	if at.Directory == "" { // there was no pointer
		at.Directory = was.Data
	}
	return p.point(at)
}

// dropCopy removes a copy that is not to be. Only what this move has written is touched, and nothing that the pointer names: what somebody
// has saved in the target while it was copied may be what the move has failed by.
func dropCopy(from Paths) error {
	var i intent
	file := filepath.Join(from.Data, intentName)
	if there, err := readJSON(file, &i); err != nil || !there {
		return err
	}
	now := from
	if err := now.Refresh(); err != nil || now.Data == i.To {
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
	file := filepath.Join(dir, lockName)
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

// SweepMove removes the copy that a move which was broken off has left. It returns the directory of that copy, and false where there was none.
// The holder of the data directory calls it at the start.
func (p Paths) SweepMove() (to string, swept bool, err error) {
	if p.Fixed() { // --data-dir does not know where the data is
		return "", false, nil
	}
	var i intent
	if there, err := readJSON(filepath.Join(p.Data, intentName), &i); err == nil && !there {
		return "", false, nil
	}
	return i.To, true, dropCopy(p)
}

// DeleteOld deletes the directory that the data was moved from, which must be as it was copied. From its first step on the old copy is only to
// be deleted, so that a deletion that was broken off is done again. changed is called each time that the pointer was written.
func (p *Paths) DeleteOld(ctx context.Context, step func(stage string), changed func(Paths)) error {
	old := p.at.Previous
	if old == nil {
		return refuse(codeNoOld)
	}
	lock, err := Acquire(old.Directory)
	if old.Deleting && errors.Is(err, fs.ErrNotExist) {
		return p.setOld(nil, changed)
	}
	if err != nil {
		return refuse(codeOldUsed, "path", old.Directory, "detail", err.Error())
	}
	err = p.emptyOld(ctx, *old, step, changed)
	if err = errors.Join(err, lock.Release()); err != nil {
		return err
	}
	keep := old.Directory == p.usual // with the note: a start that finds no pointer reads the note there
	for _, name := range []string{lockName, runName, noteName, markName} {
		if name != noteName || !keep {
			_ = removeAll(filepath.Join(old.Directory, name)) // it says nothing to anybody
		}
	}
	_ = os.Remove(old.Directory)
	return p.setOld(nil, changed)
}

// CheckOld returns a *[RefusedError] when there is no old copy.
func (p Paths) CheckOld() error {
	if p.at.Previous == nil {
		return refuse(codeNoOld)
	}
	return nil
}

// setOld writes the state of the old copy into the pointer; nil = there is none.
func (p *Paths) setOld(old *previous, changed func(Paths)) error {
	at := p.at
	at.Previous = old
	if err := p.point(at); err != nil {
		return err
	}
	changed(*p)
	return nil
}

// noteDeleting writes into the pointer that the old copy is being deleted. The old copy must be as it was copied when that begins.
func (p *Paths) noteDeleting(old *previous, changed func(Paths)) error {
	if old.Deleting {
		return nil
	}
	sum, err := store.DatabaseSum(old.Directory)
	if err != nil || sum != old.Database {
		detail := ""
		if err != nil {
			detail = err.Error()
		}
		return refuse(codeOldUsed, "path", old.Directory, "detail", detail)
	}
	old.Deleting = true
	return p.setOld(old, changed)
}

// emptyOld deletes what was copied and what belonged to the place. Other files in the directory are not ours, and stay. The caller has its lock.
func (p *Paths) emptyOld(ctx context.Context, old previous, step func(stage string), changed func(Paths)) (err error) {
	alone, err := Exclude(old.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	if err := p.noteDeleting(&old, changed); err != nil { // before anything goes: nobody must be offered a half of it
		return err
	}
	// The directory itself says so too, whatever pointer there will be.
	if err := writeJSON(filepath.Join(old.Directory, markName), mark{ID: rand.Text(), From: old.Directory}); err != nil {
		return err
	}
	list, err := os.ReadDir(old.Directory)
	if err != nil {
		return err
	}
	later := []string{lockName, runName, noteName, markName}
	var errs []error
	for _, e := range list {
		step("deleting")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, err := os.Lstat(filepath.Join(p.Data, e.Name()))
		if (err == nil || slices.Contains(staying(), e.Name())) && !slices.Contains(later, e.Name()) {
			errs = append(errs, removeAll(filepath.Join(old.Directory, e.Name())))
		}
	}
	return errors.Join(errs...)
}
