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

// The data lies in the usual directory unless the pointer, a file beside the settings, names another directory. [Paths.Use] writes the pointer
// atomically after the other directory has proven whole, so that a start finds the old directory or the new directory and never a partial copy.
const pointerName = "data-directory.json"

// pointer is the content of the pointer file.
type pointer struct {
	Directory string    `json:"directory"`
	Previous  *previous `json:"previous,omitempty"`
}

// previous is the directory before the present directory, which stays unchanged.
type previous struct {
	Directory string    `json:"directory"`
	MovedAt   time.Time `json:"movedAt"`
}

// noteName is a copy of the pointer in the previous directory and in the usual directory. A start without a pointer reads the note, and a
// person who names a directory with a note is told where the data is. A note that names its own directory is ignored.
const noteName = "moved.json"

// markName is a file that versions that moved the data themselves have left in a directory. A directory whose mark is not Whole has a part of
// the data: a copy that was not finished, or an old copy whose deletion was begun. No program may open such a directory.
const markName = "copy.json"

type mark struct {
	From  string `json:"from"`
	Whole bool   `json:"whole"`
}

// checkWhole returns [ErrHalf] for a directory whose mark says that it has a part of the data.
func checkWhole(dir string) error {
	var m mark
	marked, err := readJSON(filepath.Join(dir, markName), &m)
	if err == nil && marked && !m.Whole {
		err = fmt.Errorf("%w: %s", ErrHalf, m.From)
	}
	return err
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
	var at pointer
	file := p.pointer
	there, err := readJSON(file, &at)
	if err == nil && !there { // the data is in the usual directory, or the settings are lost
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
	word, _ := os.ReadFile(left) // an earlier note, if any
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
	_ = p.note() // the pointer is valid without the notes
	return nil
}

// shared reports whether the data directory contains the settings or the logs.
func (p Paths) shared() bool {
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

// MovedError is the error of [Paths.Check] for a directory that the data was moved away from.
type MovedError struct {
	Dir, To string
	At      time.Time

	flag bool // --data-dir names the directory
	bare bool // the directory has no whole data left
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
	m := &MovedError{Dir: p.Data, To: note.Directory, flag: p.pointer == "", bare: !holdsWhole(p.Data)}
	if note.Previous != nil {
		m.At = note.Previous.MovedAt
	}
	return m
}

// MissingError is the error of [Paths.Check] when the directory of the moved data is missing, or has other data.
type MissingError struct {
	Dir string
	Old string    // the previous directory, while it has whole data; else empty
	At  time.Time // when the data left that directory
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
	err := checkWhole(p.Data)
	if p.at.Directory == "" {
		return err
	}
	if err == nil && store.Holds(p.Data) {
		return nil
	}
	missing := &MissingError{Dir: p.Data}
	if old := p.at.Previous; old != nil && holdsWhole(old.Directory) {
		missing.Old, missing.At = old.Directory, old.MovedAt
	}
	return missing
}

// holdsWhole reports whether a directory has data and no mark of a part.
func holdsWhole(dir string) bool {
	return checkWhole(dir) == nil && store.Holds(dir)
}

// Where describes the location of the data, for the command line.
type Where struct {
	Directory string    `json:"directory"`
	Usual     string    `json:"usual,omitempty"`   // the directory without a pointer; empty with --data-dir
	Old       string    `json:"old,omitempty"`     // the previous directory, while it has data
	MovedAt   time.Time `json:"movedAt,omitzero"`  // when the data left Old
	Missing   bool      `json:"missing,omitempty"` // the directory is missing at present
}

// Where describes the data directory for people.
func (p Paths) Where() Where {
	w := Where{Directory: p.Data, Usual: p.usual}
	if old := p.at.Previous; old != nil && store.Holds(old.Directory) {
		w.Old, w.MovedAt = old.Directory, old.MovedAt
	}
	_, w.Missing = errors.AsType[*MissingError](p.Check())
	return w
}
