package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Beside the holder of a data directory other processes may serve /v1, and install agents there. A move needs the directory for itself alone
// and takes a second lock, which the other processes share. They cannot share the first lock, since its holder is the reason why they serve
// beside.

const besideName = "beside"

// sharedLock returns the second lock, whose file lies outside the copied parts.
func sharedLock(dir string) (*flock.Flock, error) {
	run := filepath.Join(dir, runName)
	if err := MakePrivate(run); err != nil {
		return nil, err
	}
	return flock.New(filepath.Join(run, besideName+".lock"), flock.SetPermissions(0o600)), nil
}

// Exclude keeps other processes from serving beside the holder until the result is closed. Exclude fails while such a process serves.
func Exclude(dir string) (io.Closer, error) {
	f, err := sharedLock(dir)
	if err != nil {
		return nil, err
	}
	ok, err := f.TryLock()
	if err == nil && !ok {
		err = refuse(codeBeside, "who", besides(dir))
	}
	return f, err
}

// besides names the processes that serve beside the holder, or returns "?". A killed process stays named until the next process ends: the lock
// shows that there is a process, but not which.
func besides(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, runName, besideName+"-*.json")) // the pattern is constant
	var names []string
	for _, file := range files {
		var o Owner
		if there, err := readJSON(file, &o); err == nil && there {
			names = append(names, fmt.Sprintf("%s %d, %s", o.Kind, o.PID, o.URL))
		}
	}
	if len(names) == 0 {
		return "?"
	}
	return strings.Join(names, "; ")
}

// Beside is the share of a process that serves /v1 while another process holds the directory.
type Beside struct {
	flock *flock.Flock
	file  string // names the process
}

// ServeBeside takes a share of the second lock within patience. ServeBeside fails during a move, and in a directory that the data was moved
// from.
func (p Paths) ServeBeside(ctx context.Context, patience time.Duration) (*Beside, error) {
	f, err := sharedLock(p.Data)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience) // the check before a move holds the lock for a moment
	defer cancel()
	const pause = 20 * time.Millisecond
	if ok, err := f.TryRLockContext(ctx, pause); !ok {
		return nil, fmt.Errorf("%s is being moved to another directory; start again when that is through: %w", p.Data, err)
	}
	now := p
	err = now.Refresh()
	if err == nil && now.Data != p.Data {
		err = fmt.Errorf("the data has just been moved from %s to %s; start again", p.Data, now.Data)
	}
	if err != nil {
		return nil, errors.Join(err, f.Unlock())
	}
	return &Beside{flock: f, file: filepath.Join(p.Run(), fmt.Sprintf("%s-%d.json", besideName, os.Getpid()))}, nil
}

// Describe records this process for other processes.
func (b *Beside) Describe(o Owner) error { return writeJSON(b.file, o) }

// Release gives the share back.
func (b *Beside) Release() error {
	_ = os.Remove(b.file) // the file may be missing; a remaining file names us until the next look
	return b.flock.Unlock()
}
