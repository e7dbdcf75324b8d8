package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"

	"deskhand/backend/store"
)

// Owner is the process that holds a data directory.
type Owner struct {
	PID    int    `json:"pid"`
	Kind   string `json:"kind"`
	Socket string `json:"socket,omitempty"`
	URL    string `json:"url,omitempty"`
}

// Owner reads the record of the process that holds the data directory. The error is fs.ErrNotExist when no process has a record. A process
// that had no room to write owner.json is found by its private socket.
func (p Paths) Owner() (o Owner, err error) {
	data, err := os.ReadFile(filepath.Join(p.Data, ownerName))
	if err == nil {
		return o, json.Unmarshal(data, &o)
	}
	socket := filepath.Join(p.Run(), SocketName)
	if _, there := os.Lstat(socket); errors.Is(err, fs.ErrNotExist) && there == nil {
		return Owner{Kind: "program", Socket: socket}, nil
	}
	return o, fmt.Errorf("who has the data directory: %w", err)
}

// HeldError is the error of [Acquire] when another process holds the data directory.
type HeldError struct {
	Owner
	Dir string
}

func (h *HeldError) Error() string {
	text := fmt.Sprintf("%s is held by another Deskhand %s", h.Dir, h.Kind)
	if h.PID != 0 {
		text += fmt.Sprintf(" with process id %d", h.PID)
	}
	if h.URL != "" {
		text += " at " + h.URL
	}
	return text
}

// Lock is a lock on a data directory: advisory locks that end with the process, and owner.json. Where the system can lock a directory, the
// directory itself is locked, so that removing the lock file admits no second program; the lock file is locked for older versions.
type Lock struct {
	file  *flock.Flock
	dir   *flock.Flock // nil when the system cannot lock a directory
	owner string       // path of owner.json
}

// tryLock takes both locks, or returns nil when another program has one of them.
func tryLock(dir string) (*Lock, error) {
	l := &Lock{file: flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600)), owner: filepath.Join(dir, ownerName)}
	ok, err := l.file.TryLock()
	if err != nil || !ok {
		return nil, err
	}
	if runtime.GOOS == "windows" { // an open file cannot be removed there
		return l, nil
	}
	l.dir = flock.New(dir, flock.SetFlag(os.O_RDONLY))
	switch ok, err := l.dir.TryLock(); {
	case err != nil: // a network's disk may lock files alone
		l.dir = nil
	case !ok:
		return nil, l.file.Unlock()
	}
	return l, nil
}

// Acquire locks a data directory, or returns a *[HeldError] when another process holds the directory.
func Acquire(dir string) (*Lock, error) {
	l, err := tryLock(dir)
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be used: %w", err)
	}
	if l == nil {
		held := &HeldError{Dir: dir, Owner: Owner{Kind: "program"}}
		if data, err := os.ReadFile(filepath.Join(dir, ownerName)); err == nil {
			_ = json.Unmarshal(data, &held.Owner) // without the record the error says less
		}
		return nil, held
	}
	// The owner.json of a killed process would name that process as the holder.
	if err := store.Remove(l.owner); err != nil {
		return nil, errors.Join(fmt.Errorf("the data directory cannot be used: %w", err), l.unlock())
	}
	return l, nil
}

// Acquire locks the data directory. A [Paths.Use] of another process since [Find] is an error of [Paths.Check].
func (p *Paths) Acquire(logger *slog.Logger) (*Lock, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := MakePrivate(p.Data); err != nil {
		return nil, fmt.Errorf("the data directory cannot be made: %w", err)
	}
	l, err := Acquire(p.Data)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil { // under the lock, which Use takes too
		return nil, errors.Join(err, l.Release())
	}
	warnOfStrangers(logger, p.Data)
	return l, nil
}

// Describe writes owner.json.
func (l *Lock) Describe(o Owner) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return store.WriteFile(l.owner, append(data, '\n'), 0o600)
}

// Release removes owner.json and unlocks the directory.
func (l *Lock) Release() error { return errors.Join(store.Remove(l.owner), l.unlock()) }

func (l *Lock) unlock() error {
	if l.dir == nil {
		return l.file.Unlock()
	}
	return errors.Join(l.dir.Unlock(), l.file.Unlock())
}
