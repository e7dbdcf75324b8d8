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

// Owner reads who holds the data directory. The error is fs.ErrNotExist where no process says so. A process that had no room to write
// owner.json is found by its private socket.
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
	text := fmt.Sprintf("%s is held by the Deskhand %s with process id %d", h.Dir, h.Kind, h.PID)
	if h.URL != "" {
		text += " at " + h.URL
	}
	return text
}

// Lock is a hold on a data directory: advisory locks that end with the process, and owner.json. The directory itself is locked where the
// system can do that, so that removing the lock file lets no second program in; the file is locked for older versions, which know
// nothing else.
type Lock struct {
	file  *flock.Flock
	dir   *flock.Flock // nil where the system locks no directory
	owner string       // the path of owner.json
}

// tryLock takes both locks. It returns nil when another program has one of them.
func tryLock(dir string) (*Lock, error) {
	l := &Lock{file: flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600)), owner: filepath.Join(dir, ownerName)}
	ok, err := l.file.TryLock()
	if err != nil || !ok {
		return nil, err
	}
	if runtime.GOOS == "windows" { // there a file that is open cannot be removed
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

// Acquire takes the lock of a data directory. It returns a *[HeldError] when another process has the lock.
func Acquire(dir string) (*Lock, error) {
	l, err := tryLock(dir)
	if err != nil {
		return nil, fmt.Errorf("the data directory cannot be used: %w", err)
	}
	if l == nil {
		held := &HeldError{Dir: dir, Owner: Owner{Kind: "program"}}
		if data, err := os.ReadFile(filepath.Join(dir, ownerName)); err == nil {
			_ = json.Unmarshal(data, &held.Owner) // without it we know less, and say less
		}
		return nil, held
	}
	// The owner.json of a process that was killed would name that process to others as the holder.
	if err := store.Remove(l.owner); err != nil {
		return nil, errors.Join(fmt.Errorf("the data directory cannot be used: %w", err), l.unlock())
	}
	return l, nil
}

// Acquire takes the lock of the data directory and marks the directory as used. The pointer is read again with the lock in hand, since the
// data may have been moved until then. found is called each time that a directory was found and is not locked yet.
func (p *Paths) Acquire(logger *slog.Logger, found func()) (*Lock, error) {
	for {
		if err := errors.Join(p.Refresh(), p.Check()); err != nil {
			return nil, err
		}
		dir := p.Data
		if err := MakePrivate(dir); err != nil {
			return nil, fmt.Errorf("the data directory cannot be made: %w", err)
		}
		found()
		l, err := Acquire(dir)
		if err != nil {
			return nil, err
		}
		err = errors.Join(p.Refresh(), p.Check())
		if err == nil && p.Data == dir {
			warnOfStrangers(logger, dir)
			if err = markUsed(dir); err == nil {
				return l, nil
			}
		}
		if err := errors.Join(err, l.Release()); err != nil {
			return nil, err
		}
	}
}

// Describe writes owner.json.
func (l *Lock) Describe(o Owner) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return store.WriteFile(l.owner, append(data, '\n'), 0o600)
}

// Release removes owner.json and gives the lock back.
func (l *Lock) Release() error { return errors.Join(store.Remove(l.owner), l.unlock()) }

func (l *Lock) unlock() error {
	if l.dir == nil {
		return l.file.Unlock()
	}
	return errors.Join(l.dir.Unlock(), l.file.Unlock())
}
