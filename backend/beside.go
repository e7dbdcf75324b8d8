package backend

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

// Beside the program that has a data directory others may serve /v1, and install agents there for it. What must have the directory for
// itself alone, as a move does, holds a second lock that they share. The first one cannot be it: they serve because somebody has that.

const besideName = "beside"

// besideLock is that lock. It lies where nothing is copied from.
func besideLock(dir string) (*flock.Flock, error) {
	run := filepath.Join(dir, "run")
	if err := makePrivate(run); err != nil {
		return nil, err
	}
	return flock.New(filepath.Join(run, besideName+".lock"), flock.SetPermissions(0o600)), nil
}

// takeAlone holds off those who would serve beside us, and refuses when somebody does.
func takeAlone(dir string) (io.Closer, error) {
	f, err := besideLock(dir)
	if err != nil {
		return nil, err
	}
	ok, err := f.TryLock()
	if err == nil && !ok {
		err = refuse(refusedMoveBeside, "who", whoIsBeside(dir))
	}
	return f, err
}

// whoIsBeside names them. One that was killed is named until the next one ends: the lock says that there is somebody, and not who.
func whoIsBeside(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "run", besideName+"-*.json")) // the pattern is ours
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

// beside is our place beside who has the directory.
type beside struct {
	flock *flock.Flock
	file  string // says who we are
}

// standBeside is for who does not have the directory and serves all the same. It is refused while the data is moved, and where it was
// before.
func (b *Backend) standBeside(ctx context.Context) error {
	if b.lock != nil || b.beside != nil {
		return nil
	}
	dir := b.cfg.Places.Data
	f, err := besideLock(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, farewell) // a look at what is in the way of a move takes it for a moment
	defer cancel()
	const pause = 20 * time.Millisecond
	if ok, err := f.TryRLockContext(ctx, pause); !ok {
		return fmt.Errorf("%s is being moved to another directory; start again when that is through: %w", dir, err)
	}
	now := b.cfg.Places
	err = now.again()
	if err == nil && now.Data != dir {
		err = fmt.Errorf("the data has just been moved from %s to %s; start again", dir, now.Data)
	}
	if err != nil {
		return errors.Join(err, f.Unlock())
	}
	b.beside = &beside{flock: f, file: filepath.Join(dir, "run", fmt.Sprintf("%s-%d.json", besideName, os.Getpid()))}
	return nil
}

func (s *beside) describe(o Owner) error { return writeJSON(s.file, o) }

func (s *beside) release() error {
	_ = os.Remove(s.file) // it was not written, or names us until the next look
	return s.flock.Unlock()
}
