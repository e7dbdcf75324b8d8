package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// Presence looks at paths. On a network disk that does not answer, a look may never return, and no context ends a call in the kernel or
// frees the call's thread. Presence therefore makes each look in a goroutine of its own, one look a path at a time, and no caller has to wait
// for the end of a look: a caller that shows something gets the result of the last look. The goroutines of looks alone may outlive the
// program's other parts.
type Presence[T comparable] struct {
	Patience time.Duration     // the longest wait for a look, from the look's beginning on
	Changed  func(path string) // called when a look that a caller gave up on has another result than the caller got; nil = nobody is told

	mu    sync.Mutex // protects the fields below
	looks map[string]*Look
	last  map[string]T
}

// Look is a look at a path that is under way.
type Look struct {
	over  chan struct{}
	begun time.Time
	age   time.Duration // the age from which on nobody waits for the look: another disk may be mounted at the path now
	told  bool          // a caller has gone with the result of the look before
}

// oldLook is the age from which on a look gets a second look beside it. The second may become twice as old, so that there are few looks.
const oldLook = time.Minute

// The usual waits for a disk.
const (
	PatientOne  = 500 * time.Millisecond // for one directory or file
	PatientMany = 2 * time.Second        // for all entries beside a directory
)

// Begin begins a look, or joins the look that is under way.
func (p *Presence[T]) Begin(path string, find func() T) (l *Look, joined bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age, told := oldLook, false
	if l := p.looks[path]; l != nil {
		if time.Since(l.begun) < l.age {
			return l, true
		}
		age, told = 2*l.age, l.told // a caller that gave up on the old look is told of the new look's result
	}
	if p.looks == nil {
		p.looks, p.last = map[string]*Look{}, map[string]T{}
	}
	l = &Look{over: make(chan struct{}), begun: time.Now(), age: age, told: told}
	p.looks[path] = l
	go func() {
		if p.end(path, l, find()) && p.Changed != nil {
			p.Changed(path)
		}
	}()
	return l, false
}

// end stores the result of a look, and reports whether a caller has got another result.
func (p *Presence[T]) end(path string, l *Look, found T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(l.over)
	if p.looks[path] != l { // a newer look counts
		return false
	}
	changed := l.told && p.last[path] != found
	p.last[path] = found
	delete(p.looks, path)
	return changed
}

// At returns the present state of a path, or the result of the last look when the disk does not answer in time.
func (p *Presence[T]) At(path string, find func() T) T {
	l, joined := p.Begin(path, find)
	if p.Await(l, p.Patience) && joined { // the joined look may have begun before a change that the caller knows of
		l, _ = p.Begin(path, find)
		p.Await(l, p.Patience)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[path]
}

// Await waits for the end of a look, up to patience after the look's beginning. Await returns false when the look has not ended by then.
func (p *Presence[T]) Await(l *Look, patience time.Duration) bool {
	enough := time.NewTimer(time.Until(l.begun.Add(patience)))
	defer enough.Stop()
	select {
	case <-l.over:
		return true
	case <-enough.C:
		p.mu.Lock()
		defer p.mu.Unlock()
		l.told = true
		return false
	}
}

// answers waits until a path can be looked at, or for the end of ctx. answers is for a caller that is about to make a call that no context
// ends. A look that has become too old may never return, so answers goes on with the next look, whoever began that look.
func (p *Presence[T]) answers(ctx context.Context, path string, find func() T) error {
	for {
		l, _ := p.Begin(path, find)
		old := time.NewTimer(time.Until(l.begun.Add(l.age)))
		select {
		case <-l.over:
			old.Stop()
			return nil
		case <-ctx.Done():
			old.Stop()
			return ctx.Err()
		case <-old.C:
		}
	}
}

// Directories looks at directories of the local host. The methods of a nil *Directories find nothing and wait for nothing: directories
// elsewhere cannot be looked at.
type Directories struct {
	gone     func(path string) bool
	presence Presence[bool] // true = there is no directory
}

// NewDirectories returns the capability. gone reports that there is no directory at a path and may take any time; nil means a look at the
// disk. changed is called when a directory turns out to be, or not to be, where Missing said.
func NewDirectories(gone func(path string) bool, changed func(path string)) *Directories {
	if gone == nil {
		gone = Gone
	}
	return &Directories{gone: gone, presence: Presence[bool]{Patience: PatientOne, Changed: changed}}
}

// Gone reports that there is no directory at a path, by a look at the disk.
func Gone(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	return !info.IsDir()
}

// Missing reports that there is no directory at a path, as far as is known.
func (d *Directories) Missing(path string) bool {
	return d != nil && d.presence.At(path, func() bool { return d.gone(path) })
}

// Begin begins a look at a directory, so that several directories that do not answer are waited for at the same time.
func (d *Directories) Begin(path string) {
	if d != nil {
		d.presence.Begin(path, func() bool { return d.gone(path) })
	}
}

// InTime reports whether a directory can be looked at before patience is over.
func (d *Directories) InTime(path string, patience time.Duration) bool {
	look, _ := d.presence.Begin(path, func() bool { return d.gone(path) })
	return d.presence.Await(look, patience)
}

// Answers waits until a directory can be looked at, or for the end of ctx.
func (d *Directories) Answers(ctx context.Context, path string) error {
	if d == nil {
		return nil
	}
	return d.presence.answers(ctx, path, func() bool { return d.gone(path) })
}

// AllAnswer is Answers for every directory that is looked at to find dir in the roots: the roots, and then dir where dir is within a root. A
// dir outside of the roots is refused by its text, so that nothing is looked at.
func (d *Directories) AllAnswer(ctx context.Context, roots []string, dir string) error {
	in := false
	for _, root := range roots {
		in = in || Within(root, dir)
		if err := d.Answers(ctx, root); err != nil {
			return err
		}
	}
	if !in {
		return nil
	}
	return d.Answers(ctx, dir)
}

// NoFile returns a look for [Presence] that reports whether there is nothing at a path.
func NoFile(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
}
