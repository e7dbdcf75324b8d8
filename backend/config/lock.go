package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	lockName   = ".lock"
	firstRetry = time.Millisecond
	lastRetry  = 25 * time.Millisecond
	patience   = 30 * time.Second // a change takes milliseconds; a program that holds the lock longer will not release the lock
)

// lock is the held lock of a folder. The lock belongs to the open file and not to the process, so that two goroutines exclude each other
// as two processes do. The lock ends with the process.
type lock struct{ f *os.File }

// takeLock waits for the lock until ctx ends, or for patience at most. takeLock polls, because a wait inside of the system cannot be
// cancelled.
func takeLock(ctx context.Context, dir *os.Root, name string) (*lock, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", name, ctx.Err())
		case <-enough.C:
			return nil, fail(ErrBusy, "%s has been locked by another program for %s; nothing was changed", name, patience)
		case <-timer.C:
		}
		l, err := tryLock(dir, name)
		if l != nil || err != nil {
			return l, err
		}
		timer.Reset(wait)
	}
}

// tryLock returns nil when somebody else has the lock.
func tryLock(dir *os.Root, name string) (*lock, error) {
	f, err := openRegular(dir, name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	got, err := lockFile(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s cannot be locked: %w", name, err), f.Close())
	}
	if !got {
		return nil, f.Close()
	}
	return &lock{f}, nil
}

// Close releases the lock. Closing the file alone would not do: a child that is being started at this moment still has the file open.
func (l *lock) Close() error { return errors.Join(unlockFile(l.f), l.f.Close()) }
