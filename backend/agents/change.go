package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Errors of Rollback and Uninstall.
var (
	ErrNoPrevious = errors.New("there is no version to go back to")
	ErrInUse      = errors.New("the agent is in use")
	ErrNotOurs    = errors.New("it was not installed by Deskhand")
)

// News is how an installation goes on, whoever asked for it.
type News struct {
	Agent string
	Progress
	Ended bool  // nothing is left of it, unless it has succeeded
	Err   error // why it failed; ErrCancelled is among the reasons
	Aside bool  // there was no installation: something else about the agent is different; Ended is set too
}

// Watch has f called with the news of all installations, in the order of each. It must not block.
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

// Begin starts an installation that nobody waits for: it ends by itself, with Cancel, or with Close. version may be ""; then it is the
// one of the catalogue. What is installed already is installed anew. Its news come to Watch. It fails like Install, and with
// ErrInstalling when one is under way.
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
	now, err := c.readCurrent(id)
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
	// One that waits, so that others who come and go do not end it.
	c.backgroundLocked(func() { _, _ = j.wait(context.Background(), w, nil) })
	return nil
}

// Cancel ends the installation of an agent that is under way, whoever waits for it, and returns when nothing of it is left. Without
// one it does nothing. An installation that has come to its last step may succeed all the same.
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

// end ends a job, whoever waits for it.
func (j *job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.given, j.ended = true, true
	j.cancel()
}

// reason is why a job failed, if it did: that somebody ended it is what those who wait for it hear, rather than what that led to.
func (j *job) reason(id string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil && j.ended {
		return &InstallError{Agent: id, Step: j.last.Step, Err: ErrCancelled}
	}
	return j.err
}

// installing is how far the installation of an agent is; nil when there is none.
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

// Installing counts the installations that are under way.
func (c *Catalogue) Installing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.jobs)
}

// Rollback makes the version before the one that is used; the one of now is then the version before. What runs goes on as it is. It
// fails with ErrUnknown, ErrNoPrevious and ErrInstalling.
func (c *Catalogue) Rollback(id string) error {
	return c.alone(id, ErrNoPrevious, func(now current) error {
		if now.Previous == nil {
			return ErrNoPrevious
		}
		back := *now.Previous
		if !filepath.IsLocal(back.Directory) || !filepath.IsLocal(filepath.FromSlash(back.Bin)) {
			return fmt.Errorf("%w: its record is broken", ErrNoPrevious)
		}
		if _, err := c.launch(filepath.Join(c.home(id), back.Directory), back.Bin); err != nil {
			return fmt.Errorf("%w: %s cannot be started: %w", ErrNoPrevious, back.Version, err)
		}
		c.cfg.Logger.Info("an agent goes back to the version before", "agent", id, "version", back.Version)
		return c.writeCurrent(id, back, &now.release)
	})
}

// Uninstall removes every version that Deskhand installed of an agent, and nothing else: one on PATH stays, and so does what the agent
// keeps itself. It fails with ErrUnknown, ErrNotOurs, ErrInstalling, and with ErrInUse while a process of any version runs.
func (c *Catalogue) Uninstall(id string) error {
	return c.alone(id, ErrNotOurs, func(now current) error {
		if c.anyInUse(id) {
			return ErrInUse
		}
		file := filepath.Join(c.home(id), currentName)
		kept, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		// From here on none is started any more. One that was started meanwhile keeps its version.
		if c.anyInUse(id) {
			return errors.Join(ErrInUse, c.cfg.WriteFile(file, kept, 0o600))
		}
		c.cfg.Logger.Info("an agent is removed", "agent", id, "version", now.Version)
		c.sweep(id)
		if dirs := c.directories(id); len(dirs) > 0 {
			return fmt.Errorf("%s cannot be removed", dirs[0])
		}
		return nil
	})
}

// alone runs f on what is installed of an agent, while nobody installs it. none is the error when nothing is.
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
	if _, err := os.Lstat(filepath.Join(c.home(id), currentName)); errors.Is(err, fs.ErrNotExist) {
		if c.installing(id) != nil {
			return ErrInstalling
		}
		return none
	}
	lock := flock.New(filepath.Join(c.home(id), lockName), flock.SetPermissions(0o600))
	ours, err := lock.TryLock()
	switch {
	case err != nil:
		return fmt.Errorf("the directory of the agent cannot be locked: %w", err)
	case !ours:
		return ErrInstalling
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	now, err := c.readCurrent(id)
	if errors.Is(err, errNoneStored) {
		return none
	}
	if err != nil && !errors.Is(none, ErrNotOurs) { // a broken record can be removed, and is no version to go back to
		return fmt.Errorf("%w: %w", none, err)
	}
	return f(now)
}

// directories are the versions of an agent in the store.
func (c *Catalogue) directories(id string) []string {
	var dirs []string
	items, _ := os.ReadDir(c.home(id)) // what cannot be read cannot be removed either
	for _, item := range items {
		if item.IsDir() {
			dirs = append(dirs, filepath.Join(c.home(id), item.Name()))
		}
	}
	return dirs
}

func (c *Catalogue) anyInUse(id string) bool {
	for _, dir := range c.directories(id) {
		if !strings.HasPrefix(filepath.Base(dir), newPrefix) && inUse(dir) {
			return true
		}
	}
	return false
}

// versionBeside is the version of an npm package, by a program of it that was found on PATH; "" when it is none.
func versionBeside(program, npm string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil || npm == "" {
		return ""
	}
	inside := string(filepath.Separator) + filepath.Join("node_modules", filepath.FromSlash(npm))
	at := strings.LastIndex(real, inside+string(filepath.Separator))
	if at < 0 {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(real[:at]+inside, "package.json"))
	if err != nil {
		return ""
	}
	var manifest struct {
		Version string `json:"version"`
	}
	_ = json.Unmarshal(data, &manifest) // a bad one has none
	return manifest.Version
}
