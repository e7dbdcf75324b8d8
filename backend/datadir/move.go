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

// A move copies the data directory, proves the copy and writes the pointer. Before the pointer is written, only the copy has changed;
// afterwards the copy is the data. The caller has first ended everything that uses the directory. Copying while the program works, followed by
// the changes, would interrupt people for less time, but would have a moment in which neither directory is whole.

// intentName is a file in the old directory during the copying. The file tells the next start which copy an interrupted move has left.
const intentName = "moving.json"

type intent struct {
	To string `json:"to"`
	ID string `json:"id"`
}

// staying returns the names that belong to a process or a place, and are not copied.
func staying() []string {
	return append(store.Beside(), lockName, ownerName, runName, ledgerName, intentName, markName, noteName, store.RecordName)
}

// bound returns the parts that contain absolute paths of the directory: first lines of scripts, and settings of Python environments. The list
// of skills' links is not among them: its paths are links in other directories.
func bound() []string { return []string{"agents"} }

// The codes of a [RefusedError].
const (
	codeDeleting = "move.deleting"  // params path: the old copy, which must be deleted first
	codeBeside   = "move.beside"    // other processes serve /v1 from the directory; params who
	codePath     = "move.path"      // params path: not absolute, or its parent is missing
	codeInside   = "move.inside"    // params path, data
	codeNotEmpty = "move.not_empty" // params path
	codeWrite    = "move.write"     // params path, detail
	codeSpace    = "move.space"     // params path, need and free, in bytes
	codeDisk     = "move.disk"      // params path, detail
	codeNoOld    = "move.no_old"    // there is no old copy
	codeOldUsed  = "move.old_used"  // the old copy was used since; params path, detail
)

// RefusedError is the error of a refused move, or of a refused deletion of the old copy. Nothing was changed.
type RefusedError struct {
	Code   string            // stable, such as move.space
	Params map[string]string // values for the text
}

func (r *RefusedError) Error() string { return "refused: " + r.Code }

func refuse(code string, params ...string) error {
	r := &RefusedError{Code: code, Params: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		r.Params[params[i]] = params[i+1]
	}
	return r
}

// room is the space to leave free beside the copy, for the next messages.
const room = 64 << 20

// Plan describes a possible move.
type Plan struct {
	Path  string
	Bytes int64
	Files int
	Free  int64 // bytes at Path
}

// Plan describes a move to path, or returns a *[RefusedError].
func (p Paths) Plan(ctx context.Context, path string) (plan Plan, err error) {
	if old := p.at.Previous; old != nil && old.Deleting { // after another move the owner of the old copy would be unknown
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

// target checks a directory for a move: the directory has to be empty or missing.
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

// fit tries to write into a directory, and returns its free space. fit leaves no file.
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

// Move copies the data to an empty directory, proves the copy and writes the pointer. A failed Move removes the copy. The caller holds the
// lock and [Exclude]. Move calls tell at each step with the copied and the total bytes, and step at each stage that a test may wait for.
func (p Paths) Move(ctx context.Context, to string, tell func(step string, done, total int64), step func(stage string)) (err error) {
	from, m := p.Data, mark{ID: rand.Text(), From: p.Data}
	if err := errors.Join(MakePrivate(to), os.Chmod(to, 0o700)); err != nil { //nolint:gosec // a directory
		return refuse(codeWrite, "path", to, "detail", err.Error())
	}
	if err := writeJSON(filepath.Join(from, intentName), intent{To: to, ID: m.ID}); err != nil {
		_ = os.Remove(to) // an empty directory; without the intent a mark in it would have no known origin
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
	_ = os.Remove(filepath.Join(from, intentName)) // the file is harmless in the old directory
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

// dropCopy removes a failed copy. dropCopy removes only files that this move has written, and no directory that the pointer names: a file that
// a person saved in the target during the copying may be the cause of the failure.
func dropCopy(from Paths) error {
	var i intent
	file := filepath.Join(from.Data, intentName)
	if there, err := readJSON(file, &i); err != nil || !there {
		return err
	}
	now := from
	if err := now.Refresh(); err != nil || now.Data == i.To {
		return err // the next start may open the target
	}
	if m, err := markOf(i); err != nil || m.ID != i.ID {
		return errors.Join(err, store.Remove(file)) // the copy was not begun, or its disk is away: a later move there reports that it is not empty
	}
	lock, err := tryLock(i.To)
	if err != nil {
		return err
	}
	if lock == nil {
		return store.Remove(file) // another process works there
	}
	m, err := markOf(i)
	if err == nil && !m.Used { // else the move had succeeded, and people have worked there since
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

// emptyCopy removes the copied files, and the caller removes the mark afterwards: the mark shows that the copy is ours, and keeps programs
// from opening the copy.
func emptyCopy(dir string, m mark) error {
	m.Whole = false
	if err := writeJSON(filepath.Join(dir, markName), m); err != nil {
		return err
	}
	return store.Undo(dir)
}

// leaveCopy removes a move's other files from a directory whose copy is gone: the lock file, which Windows only removes unlocked, and the
// mark. An existing directory is a person's, and an empty directory does no harm.
func leaveCopy(dir string) {
	file := filepath.Join(dir, lockName)
	if info, err := os.Lstat(file); err == nil && info.Size() == 0 { // else the file is no lock
		_ = os.Remove(file)
	}
	if !store.Holds(dir) { // a database whose record a power failure took stays, and its mark keeps it from passing for whole data
		_ = os.Remove(filepath.Join(dir, markName))
	}
	_ = os.Remove(dir)
}

// removeAll removes directories, including read-only directories, as in the stores of git and of skills.
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

// SweepMove removes the copy that an interrupted move has left. SweepMove returns the directory of that copy, and false without a copy. The
// holder of the data directory calls SweepMove at the start.
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

// DeleteOld deletes the directory before the move, provided that its data is unchanged since. The first step marks the old copy for deletion,
// so that an interrupted deletion is repeated. DeleteOld calls changed each time it has written the pointer.
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
	keep := old.Directory == p.usual // keeps the note, which a start without a pointer reads
	for _, name := range []string{lockName, runName, noteName, markName} {
		if name != noteName || !keep {
			_ = removeAll(filepath.Join(old.Directory, name)) // the note has no reader
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

// setOld writes the state of the old copy into the pointer; nil means no old copy.
func (p *Paths) setOld(old *previous, changed func(Paths)) error {
	at := p.at
	at.Previous = old
	if err := p.point(at); err != nil {
		return err
	}
	changed(*p)
	return nil
}

// noteDeleting records in the pointer that the deletion of the old copy has begun. At that moment the old copy has to be unchanged since the
// move.
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

// emptyOld deletes the copied files and the files of the place. Other files in the directory are not ours, and stay. The caller holds the
// directory's lock.
func (p *Paths) emptyOld(ctx context.Context, old previous, step func(stage string), changed func(Paths)) (err error) {
	alone, err := Exclude(old.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	if err := p.noteDeleting(&old, changed); err != nil { // before any file goes: a partial copy must not be offered
		return err
	}
	// The directory itself is marked too, independent of the pointer.
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
