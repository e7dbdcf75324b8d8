package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"
)

// presence looks what there is at paths. On a disk of the network that does not answer such a look may never return, and nothing ends a call
// that is in the kernel, nor the thread that it holds. So each is made in a goroutine of its own, one a path at a time, and nobody has to wait
// for it: neither who wants to show something, who gets what was found last, nor Close. These goroutines alone may outlive us.
type presence[T comparable] struct {
	patience time.Duration     // how long is waited for a look at most, from its beginning on
	other    func(path string) // a look that somebody did not wait for has found something else than they were told; nil = nobody hears

	mu    sync.Mutex // protects what is below
	looks map[string]*pathLook
	last  map[string]T
}

// pathLook is a look at a path that is under way.
type pathLook struct {
	over  chan struct{}
	begun time.Time
	age   time.Duration // from which on it is not waited for any more: what is there now may be another disk
	told  bool          // somebody has gone with what was found before
}

// oldLook is the age from which on a look has another one beside it; that one may become twice as old, so that there are few of them.
const oldLook = time.Minute

// begin begins a look, or joins one that is under way.
func (p *presence[T]) begin(path string, find func() T) (l *pathLook, joined bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age, told := oldLook, false
	if l := p.looks[path]; l != nil {
		if time.Since(l.begun) < l.age {
			return l, true
		}
		age, told = 2*l.age, l.told // who went without the old one hears of what this one finds
	}
	if p.looks == nil {
		p.looks, p.last = map[string]*pathLook{}, map[string]T{}
	}
	l = &pathLook{over: make(chan struct{}), begun: time.Now(), age: age, told: told}
	p.looks[path] = l
	go func() {
		if p.end(path, l, find()) && p.other != nil {
			p.other(path)
		}
	}()
	return l, false
}

// end takes what a look has found. It is true where somebody was told something else.
func (p *presence[T]) end(path string, l *pathLook, found T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(l.over)
	if p.looks[path] != l { // a newer one knows better
		return false
	}
	other := l.told && p.last[path] != found
	p.last[path] = found
	delete(p.looks, path)
	return other
}

// at is what there is at a path now, or else what was there when it was looked at last.
func (p *presence[T]) at(path string, find func() T) T {
	l, joined := p.begin(path, find)
	if p.await(l, p.patience) && joined { // it may have begun before what the caller knows of
		l, _ = p.begin(path, find)
		p.await(l, p.patience)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[path]
}

// await waits for the end of a look, for so long from its beginning on. It is false when there is no more patience for that.
func (p *presence[T]) await(l *pathLook, patience time.Duration) bool {
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

// answers waits until a path can be looked at, or for the end of ctx. It is for who is about to read there what no context ends. A look that has
// become too old may never come back, so it goes on with another one, of whoever began that.
func (p *presence[T]) answers(ctx context.Context, path string, find func() T) error {
	for {
		l, _ := p.begin(path, find)
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

// How long is waited for a disk before something is shown without what it says.
const (
	patientOne  = 500 * time.Millisecond // for one directory or file
	patientMany = 2 * time.Second        // for all that are beside a directory
)

// missing tells that there is no directory at a path, as far as is known. A conversation is told again when that has changed.
func (c *Client) missing(path string) bool {
	return c.directories.at(path, func() bool { return c.cfg.Gone(path) })
}

// answers waits until a directory can be looked at, or for the end of ctx.
func (c *Client) answers(ctx context.Context, path string) error {
	return c.directories.answers(ctx, path, func() bool { return c.cfg.Gone(path) })
}

// allAnswer waits as answers does, for all that is looked at to find a directory in the roots: those, and then it where it is in one of them. Of others
// nothing is looked at: they are refused by their text.
func (c *Client) allAnswer(ctx context.Context, roots []string, dir string) error {
	in := false
	for _, root := range roots {
		in = in || liesIn(root, dir)
		if err := c.answers(ctx, root); err != nil {
			return err
		}
	}
	if !in {
		return nil
	}
	return c.answers(ctx, dir)
}

// askAfter begins looks at the directories of sessions, so that many that do not answer are not waited for one after the other.
func (c *Client) askAfter(list []row) {
	for _, r := range list {
		if r.Place == LocalPlace {
			c.directories.begin(r.Cwd, func() bool { return c.cfg.Gone(r.Cwd) })
		}
	}
}

// refound tells the conversations of a directory again.
func (c *Client) refound(path string) {
	if c.ReadOnly() != nil {
		return
	}
	c.background(func() {
		c.mu.Lock()
		var list []*conversation
		for _, v := range c.live {
			if s := v.look(); s.Place == LocalPlace && s.Cwd == path {
				list = append(list, v)
			}
		}
		c.mu.Unlock()
		for _, v := range list {
			v.post(v.saveRow)
		}
	})
}

// notThere looks whether there is no file at a path.
func notThere(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
}

// lacking tells of files which of them are not where they were.
func (c *Client) lacking(list []Attachment) map[string]bool {
	lost := map[string]bool{}
	for again := range 2 { // all are asked after before one is waited for
		for _, a := range list {
			switch {
			case a.SHA256 != "" || a.Path == "":
			case again == 0:
				c.files.begin(a.Path, notThere(a.Path))
			case c.files.at(a.Path, notThere(a.Path)):
				lost[a.ID] = true
			}
		}
	}
	return lost
}
