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

// Beside the process that holds a data directory others may serve /v1, and install agents there for it. A move needs the directory for
// itself alone: it takes a second lock, which the others share. The first lock cannot be it, since they serve because somebody has that.

const besideName = "beside"

// sharedLock returns that second lock. It lies where nothing is copied from.
func sharedLock(dir string) (*flock.Flock, error) {
	run := filepath.Join(dir, runName)
	if err := MakePrivate(run); err != nil {
		return nil, err
	}
	return flock.New(filepath.Join(run, besideName+".lock"), flock.SetPermissions(0o600)), nil
}

// Exclude keeps others from serving beside the holder until it is closed, and refuses when one does.
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

// besides names the processes that serve beside the holder, or "?". One that was killed is named until the next one ends: the lock tells
// that there is a process, and not which one.
func besides(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, runName, besideName+"-*.json")) // the pattern is ours
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

// Beside is the place of a process that serves /v1 while another one holds the directory.
type Beside struct {
	flock *flock.Flock
	file  string // names the process
}

// ServeBeside takes a share of the second lock within patience. It is refused while the data is moved, and where the data was before.
func (p Paths) ServeBeside(ctx context.Context, patience time.Duration) (*Beside, error) {
	f, err := sharedLock(p.Data)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience) // the check before a move takes the lock for a moment
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

// Describe tells others which process this is.
func (b *Beside) Describe(o Owner) error { return writeJSON(b.file, o) }

// Release gives the share back.
func (b *Beside) Release() error {
	_ = os.Remove(b.file) // it was not written, or names us until the next look
	return b.flock.Unlock()
}
