package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/gofrs/flock"
)

// Errors of Rollback and Uninstall.
var (
	ErrNoPrevious = errors.New("there is no version to go back to")
	ErrInUse      = errors.New("the agent is in use")
	ErrNotOurs    = errors.New("it was not installed by Deskhand")
)

// News is an event of an installation, for the callback of Watch.
type News struct {
	Agent string
	Progress
	Ended bool  // the installation is over, and has left nothing behind unless it succeeded
	Err   error // why the installation failed; ErrCancelled is among the reasons
	Aside bool  // no installation: another fact about the agent changed; Ended is set too
}

// Watch has f called with the news of all installations, in the order of each. f must not block.
func (c *Catalogue) Watch(f func(News)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = f
}

func (c *Catalogue) announce(n News) {
	c.mu.Lock()
	f := c.watch
	c.mu.Unlock()
	if f != nil {
		f(n)
	}
}

// Begin starts an installation that nobody waits for, and that ends by itself, with Cancel, or with Close. An empty version means that of
// the catalogue. An agent that is installed already is installed anew. News go to the callback of Watch. Begin fails like Install, and with
// ErrInstalling when an installation is under way.
func (c *Catalogue) Begin(id, version string) error {
	e, err := c.row(id)
	if err != nil {
		return err
	}
	if err := c.installable(e); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	p, err := e.planOf(InstallRequest{AgentProcessVersion: version})
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	now, err := c.store.current(id)
	p.asked, p.reinstall = true, err == nil && now.Version == p.version
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[id] != nil {
		return fmt.Errorf("%w: %s", ErrInstalling, id)
	}
	j, w, err := c.beginLocked(e, p)
	if err != nil {
		return err
	}
	// A waiter of its own keeps the job alive when other callers come and go.
	c.backgroundLocked(func() { _, _ = j.wait(context.Background(), w, nil) })
	return nil
}

// Cancel ends the running installation of an agent, whoever waits for the installation, and returns when all its processes and files are
// gone. Without a running installation Cancel does nothing. An installation in its last step may still succeed.
func (c *Catalogue) Cancel(ctx context.Context, id string) error {
	if _, err := c.row(id); err != nil {
		return err
	}
	c.mu.Lock()
	j := c.jobs[id]
	c.mu.Unlock()
	if j == nil {
		return nil
	}
	j.end()
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// installing returns the progress of an agent's installation, or nil when there is none.
func (c *Catalogue) installing(id string) *Installing {
	c.mu.Lock()
	j := c.jobs[id]
	c.mu.Unlock()
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	i := &Installing{Step: j.last.Step, Bytes: j.last.Bytes, Total: j.last.Total}
	if i.Step == "" {
		i.Step = StepResolve
	}
	return i
}

// Installing returns the number of running installations.
func (c *Catalogue) Installing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.jobs)
}

// Rollback swaps the used version of an agent with the version before. Running processes stay on their version. Rollback fails with
// ErrUnknown, ErrNoPrevious and ErrInstalling.
func (c *Catalogue) Rollback(id string) error {
	return c.alone(id, ErrNoPrevious, func(now current) error {
		if now.Previous == nil {
			return ErrNoPrevious
		}
		back := *now.Previous
		if !filepath.IsLocal(back.Directory) || !filepath.IsLocal(filepath.FromSlash(back.Bin)) {
			return fmt.Errorf("%w: its record is broken", ErrNoPrevious)
		}
		if _, err := c.store.launch(filepath.Join(c.store.home(id), back.Directory), back.Bin); err != nil {
			return fmt.Errorf("%w: %s cannot be started: %w", ErrNoPrevious, back.Version, err)
		}
		c.cfg.Logger.Info("an agent goes back to the version before", "agent", id, "version", back.Version)
		return c.store.setCurrent(id, back, &now.release)
	})
}

// Uninstall removes every version of an agent that Deskhand installed, and nothing else: a program on PATH stays, and so do the agent's own
// files. Uninstall fails with ErrUnknown, ErrNotOurs, ErrInstalling, and with ErrInUse while a process of any version runs.
func (c *Catalogue) Uninstall(id string) error {
	return c.alone(id, ErrNotOurs, func(now current) error {
		if c.store.anyInUse(id) {
			return ErrInUse
		}
		file := filepath.Join(c.store.home(id), currentName)
		kept, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		// From here on no new process starts. A process that started in between keeps its version.
		if c.store.anyInUse(id) {
			return errors.Join(ErrInUse, c.cfg.WriteFile(file, kept, 0o600))
		}
		c.cfg.Logger.Info("an agent is removed", "agent", id, "version", now.Version)
		c.store.sweep(id)
		if dirs := c.store.directories(id); len(dirs) > 0 {
			return fmt.Errorf("%s cannot be removed", dirs[0])
		}
		return nil
	})
}

// alone runs f on the current record of an agent while nobody installs the agent. none is the error for an agent without a record.
func (c *Catalogue) alone(id string, none error, f func(current) error) (err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%s: %w", id, err)
		}
	}()
	if _, err := c.row(id); err != nil {
		return err
	}
	if c.cfg.Dir == "" || c.cfg.WriteFile == nil {
		return none
	}
	if _, err := os.Lstat(filepath.Join(c.store.home(id), currentName)); errors.Is(err, fs.ErrNotExist) {
		if c.installing(id) != nil {
			return ErrInstalling
		}
		return none
	}
	lock := flock.New(filepath.Join(c.store.home(id), lockName), flock.SetPermissions(0o600))
	ours, err := lock.TryLock()
	switch {
	case err != nil:
		return fmt.Errorf("the directory of the agent cannot be locked: %w", err)
	case !ours:
		return ErrInstalling
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	now, err := c.store.current(id)
	if errors.Is(err, errNoneStored) {
		return none
	}
	if err != nil && !errors.Is(none, ErrNotOurs) { // a broken record can be removed, but has no version to go back to
		return fmt.Errorf("%w: %w", none, err)
	}
	return f(now)
}

// changing runs f, and announces the agents that f changed to the callback of Watch.
func (c *Catalogue) changing(f func()) {
	before, _ := c.List() // other callers of List get the error of agents.json
	f()
	after, _ := c.List()
	for _, a := range after {
		if !slices.ContainsFunc(before, func(b Agent) bool { return reflect.DeepEqual(a, b) }) {
			c.announce(News{Agent: a.ID, Ended: true, Aside: true})
		}
	}
}
