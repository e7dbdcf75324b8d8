package datadir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deskhand/backend/store"
)

// The data lies in the usual directory unless the pointer, a file beside the settings, names another directory. The pointer is written
// atomically after the copy is proven, so that a start finds the old directory or the new directory and never a partial copy.
const pointerName = "data-directory.json"

// pointer is the content of the pointer file.
type pointer struct {
	Directory string    `json:"directory"`
	ID        string    `json:"id,omitempty"` // the ID of the directory's mark: another disk may be mounted there
	Previous  *previous `json:"previous,omitempty"`
}

// previous is the directory before the move, which the move leaves unchanged.
type previous struct {
	Directory string    `json:"directory"`
	Database  string    `json:"database"` // checksum of its database, which reveals later use
	MovedAt   time.Time `json:"movedAt"`
	Deleting  bool      `json:"deleting,omitempty"` // its deletion has begun: the directory is no data any more
}

// noteName is a copy of the pointer in the directory before the move and in the usual directory. A start without a pointer reads the note, and
// a person who names a directory with a note is told where the data is. A note that names its own directory is ignored.
const noteName = "moved.json"

// markName is a file in a directory that data was moved to. A directory whose mark is not Whole has an unfinished copy, which no program may
// open.
const markName = "copy.json"

type mark struct {
	ID    string `json:"id"`
	From  string `json:"from"`
	Whole bool   `json:"whole"`
	Used  bool   `json:"used,omitempty"` // the directory has been opened: it is the data itself, and no copy that a broken-off move may remove
}

func readJSON(file string, into any) (there bool, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return true, fmt.Errorf("%s cannot be read: %w", file, err)
	}
	return true, nil
}

// writeJSON writes a small file durably: content and name are on the disk when writeJSON returns.
func writeJSON(file string, value any) error {
	data, err := jsonText(value)
	if err != nil {
		return err
	}
	return store.WriteFile(file, data, 0o600)
}

func jsonText(value any) ([]byte, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	return append(data, '\n'), err
}

// follow takes the data directory from the pointer. An unreadable pointer is an error, and no reason to start with empty data.
func (p *Paths) follow() error {
	p.usual, p.pointer = p.Data, filepath.Join(p.Config, pointerName)
	return p.Refresh()
}

// Refresh reads the pointer again, for a move since.
func (p *Paths) Refresh() error {
	if p.pointer == "" {
		return nil
	}
	var at pointer
	file := p.pointer
	there, err := readJSON(file, &at)
	if err == nil && !there { // the data was never moved, or the settings are lost
		file = filepath.Join(p.usual, noteName)
		there, err = readJSON(file, &at)
	}
	if err != nil {
		return fmt.Errorf("where the data is cannot be told: %w", err)
	}
	if there && !filepath.IsAbs(at.Directory) {
		return fmt.Errorf("where the data is cannot be told: %s names no absolute path", file)
	}
	p.at, p.Data = at, cmp.Or(at.Directory, p.usual)
	return nil
}

// point writes the pointer, which every later start follows. An error means that later starts do not follow the new pointer: when the write
// failed but the file has the new content, point succeeds.
func (p *Paths) point(to pointer) error {
	left := filepath.Join(to.Directory, noteName)
	word, _ := os.ReadFile(left) // a note left by an earlier move, if any
	if err := errors.Join(os.MkdirAll(p.Config, 0o700), store.Remove(left)); err != nil {
		return err
	}
	if err := writeJSON(p.pointer, to); err != nil {
		want, _ := jsonText(to) // value was encoded a moment ago
		if now, unread := os.ReadFile(p.pointer); unread != nil || !bytes.Equal(now, want) {
			if word != nil {
				err = errors.Join(err, store.WriteFile(left, word, 0o600))
			}
			return errors.Join(err, unread)
		}
	}
	p.at, p.Data = to, to.Directory
	_ = p.note() // the pointer is valid without the notes; see FinishMove
	return nil
}

// Shared reports whether the data directory contains the settings or the logs, which a move would take along and a deletion would delete.
func (p Paths) Shared() bool {
	for _, other := range []string{p.Config, p.State} {
		rel, err := filepath.Rel(p.Data, other)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// note writes the notes that name the data's new directory.
func (p *Paths) note() error {
	var errs []error
	if p.Data != p.usual {
		errs = append(errs, os.MkdirAll(p.usual, 0o700), writeJSON(filepath.Join(p.usual, noteName), p.at))
	}
	if old := p.at.Previous; old != nil && old.Directory != p.usual && old.Directory != p.Data && store.Holds(old.Directory) {
		errs = append(errs, writeJSON(filepath.Join(old.Directory, noteName), p.at))
	}
	return errors.Join(errs...)
}

// FinishMove writes the notes that a move killed around the switch did not write. The holder of the directory calls FinishMove at the start.
func (p *Paths) FinishMove() error {
	var errs []error
	if _, err := os.Lstat(filepath.Join(p.usual, noteName)); p.at.Directory != "" && p.Data != p.usual && errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, p.note())
	}
	old := p.at.Previous
	if old == nil {
		return errors.Join(errs...)
	}
	file := filepath.Join(old.Directory, intentName)
	if _, err := os.Lstat(file); err == nil { // else the move was complete, or the disk is away
		errs = append(errs, p.note(), os.Remove(file))
	}
	return errors.Join(errs...)
}

// MovedError is the error of [Paths.Check] for a directory that the data was moved away from.
type MovedError struct {
	Dir, To string
	At      time.Time

	flag bool // --data-dir names the directory
	bare bool // the directory has no data left
}

func (m *MovedError) Error() string {
	text := fmt.Sprintf("the data of %s was moved to %s, and is worked with there", m.Dir, m.To)
	if !m.At.IsZero() {
		text += " since " + m.At.Local().Format("2 January 2006 15:04")
	}
	switch {
	case m.flag:
		text += ".\nName that directory instead"
		if !m.bare {
			text += fmt.Sprintf(", or remove %s first to work with the copy that has stayed", filepath.Join(m.Dir, noteName))
		}
	default:
		text += fmt.Sprintf(".\n`deskhand data use %s` goes on there", quoted(m.To))
		if !m.bare {
			text += fmt.Sprintf("; `deskhand data use %s` takes the copy that has stayed", quoted(m.Dir))
		}
	}
	return text
}

// checkMoved returns a MovedError when the data was moved away from its directory.
func (p Paths) checkMoved() error {
	var note pointer
	there, err := readJSON(filepath.Join(p.Data, noteName), &note)
	if err != nil || !there || note.Directory == p.Data {
		return err
	}
	m := &MovedError{Dir: p.Data, To: note.Directory, flag: p.pointer == "", bare: !store.Holds(p.Data)}
	if note.Previous != nil {
		m.At = note.Previous.MovedAt
		m.bare = m.bare || note.Previous.Deleting
	}
	return m
}

// MissingError is the error of [Paths.Check] when the directory of the moved data is missing, or has other data.
type MissingError struct {
	Dir string
	Old string    // the directory before the move, while its copy is whole; else empty
	At  time.Time // time of the move
}

func (m *MissingError) Error() string {
	text := fmt.Sprintf("the data is in %s, and is not there now. Is its disk plugged in and mounted? Nothing was made in its place", m.Dir)
	if m.Old != "" {
		text += fmt.Sprintf(".\n%s still has what there was when it was moved, on %s. `deskhand data wait` waits for the disk; `deskhand data use %s` goes on with the old copy",
			m.Old, m.At.Local().Format("2 January 2006 15:04"), quoted(m.Old))
	} else {
		text += ".\n`deskhand data wait` waits for the disk; `deskhand data use DIR` takes the data of another directory"
	}
	return text
}

// quoted returns a path in a shell's notation.
func quoted(path string) string {
	for _, r := range path {
		if r <= ' ' || r == '\'' || r == '"' || r == '$' || r == '\\' || r == '*' || r == '&' || r == ';' || r == '(' {
			return fmt.Sprintf("%q", path)
		}
	}
	return path
}

// ErrHalf is the error of [Paths.Check] for a directory with an unfinished copy.
var ErrHalf = errors.New("the copy of the data in this directory was never finished; the whole is where it was copied from")

// Check reports whether the data directory can be opened. Check returns nil, a *[MissingError], a *[MovedError] or [ErrHalf].
func (p Paths) Check() error {
	if err := p.checkMoved(); err != nil {
		return err
	}
	var m mark
	marked, err := readJSON(filepath.Join(p.Data, markName), &m)
	if p.at.Directory == "" {
		if err == nil && marked && !m.Whole {
			err = fmt.Errorf("%w: %s", ErrHalf, m.From)
		}
		return err
	}
	if err == nil && store.Holds(p.Data) && (p.at.ID == "" || marked && m.Whole && m.ID == p.at.ID) {
		return nil
	}
	missing := &MissingError{Dir: p.Data}
	if old := p.at.Previous; old != nil && !old.Deleting && store.Holds(old.Directory) {
		missing.Old, missing.At = old.Directory, old.MovedAt
	}
	return missing
}

// markUsed marks a directory as used. The holder of the directory's lock calls markUsed before writing anything there: from then on no
// interrupted move may remove the directory by its record.
func markUsed(dir string) error {
	var m mark
	if marked, err := readJSON(filepath.Join(dir, markName), &m); err != nil || !marked || m.Used {
		return err
	}
	if err := store.Remove(filepath.Join(dir, store.RecordName)); err != nil {
		return err
	}
	m.Used = true
	return writeJSON(filepath.Join(dir, markName), m)
}

// Where describes the location of the data, for the command line.
type Where struct {
	Directory string    `json:"directory"`
	Usual     string    `json:"usual,omitempty"`    // the directory before any move; empty with --data-dir
	Old       string    `json:"old,omitempty"`      // the directory before the latest move
	MovedAt   time.Time `json:"movedAt,omitzero"`   // time of the move from Old
	Deleting  bool      `json:"deleting,omitempty"` // the deletion of Old was begun
	Missing   bool      `json:"missing,omitempty"`  // the directory is missing at present
}

// Where describes the data directory for people.
func (p Paths) Where() Where {
	w := Where{Directory: p.Data, Usual: p.usual}
	if old := p.at.Previous; old != nil {
		w.Old, w.MovedAt, w.Deleting = old.Directory, old.MovedAt, old.Deleting
	}
	_, w.Missing = errors.AsType[*MissingError](p.Check())
	return w
}

// Use makes every later start use another directory, such as the old copy while a disk is away. The present directory stays unchanged.
func (p *Paths) Use(dir string) error {
	if p.pointer == "" {
		return errors.New("--data-dir says where the data is: give it the other directory")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if !store.Holds(dir) {
		return fmt.Errorf("%s holds no data of Deskhand", dir)
	}
	if old := p.at.Previous; old != nil && old.Deleting && old.Directory == dir {
		return fmt.Errorf("a part of %s is deleted already", dir)
	}
	var m mark
	marked, err := readJSON(filepath.Join(dir, markName), &m)
	if err != nil {
		return err
	}
	if marked && !m.Whole {
		return fmt.Errorf("%w: %s", ErrHalf, m.From)
	}
	return p.point(pointer{Directory: dir, ID: m.ID})
}

// Old is the directory before the latest move.
type Old struct {
	Directory string
	MovedAt   time.Time
	Deleting  bool // its deletion has begun
}

// Old returns the directory before the move, as long as the directory has data or its deletion is unfinished.
func (p Paths) Old() (Old, bool) {
	old := p.at.Previous
	if old == nil || !old.Deleting && !store.Holds(old.Directory) {
		return Old{}, false
	}
	return Old{Directory: old.Directory, MovedAt: old.MovedAt, Deleting: old.Deleting}, true
}
