package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Errors of Rollback and Uninstall.
var (
	ErrNoPrevious = errors.New("there is no version to go back to")
	ErrInUse      = errors.New("the agent is in use")
	ErrNotOurs    = errors.New("it was not installed by Deskhand")
)

// Begin starts an installation that nobody waits for, and that ends by itself, with Cancel, or with Close. An empty version means that of
// the catalogue. An agent that is installed already is installed anew. News go to the callback of Watch. Begin fails like Install, and with
// ErrInstalling when an installation is under way.
func (in *Installer) Begin(id, version string) error {
	e, err := in.table.row(id)
	if err != nil {
		return err
	}
	if err := in.store.installable(e); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	p, err := e.planOf(InstallRequest{AgentProcessVersion: version})
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	now, err := in.store.current(id)
	p.asked, p.reinstall = true, err == nil && now.Version == p.version
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.jobs[id] != nil {
		return fmt.Errorf("%w: %s", ErrInstalling, id)
	}
	j, w, err := in.beginLocked(e, p)
	if err != nil {
		return err
	}
	// A waiter of its own keeps the job alive when other callers come and go.
	in.background.Start(func() { _, _ = j.wait(context.Background(), w, nil) })
	return nil
}

// Cancel ends the running installation of an agent, whoever waits for the installation, and returns when all its processes and files are
// gone. Without a running installation Cancel does nothing. An installation in its last step may still succeed.
func (in *Installer) Cancel(ctx context.Context, id string) error {
	if _, err := in.table.row(id); err != nil {
		return err
	}
	in.mu.Lock()
	j := in.jobs[id]
	in.mu.Unlock()
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

// progress returns the progress of an agent's installation, or nil when there is none.
func (in *Installer) progress(id string) *Installing {
	in.mu.Lock()
	j := in.jobs[id]
	in.mu.Unlock()
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

// Running returns the number of running installations.
func (in *Installer) Running() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.jobs)
}

// Rollback swaps the used version of an agent with the version before. Running processes stay on their version. Rollback fails with
// ErrUnknown, ErrNoPrevious and ErrInstalling.
func (in *Installer) Rollback(id string) error {
	return in.alone(id, ErrNoPrevious, func(now current) error {
		if now.Previous == nil {
			return ErrNoPrevious
		}
		back := *now.Previous
		if !filepath.IsLocal(back.Directory) || !filepath.IsLocal(filepath.FromSlash(back.Bin)) {
			return fmt.Errorf("%w: its record is broken", ErrNoPrevious)
		}
		if _, err := in.store.launch(filepath.Join(in.store.home(id), back.Directory), back.Bin); err != nil {
			return fmt.Errorf("%w: %s cannot be started: %w", ErrNoPrevious, back.Version, err)
		}
		in.cfg.Logger.Info("an agent goes back to the version before", "agent", id, "version", back.Version)
		return in.store.setCurrent(id, back, &now.release)
	})
}

// Uninstall removes every version of an agent that Deskhand installed, and nothing else: a program on PATH stays, and so do the agent's own
// files. Uninstall fails with ErrUnknown, ErrNotOurs, ErrInstalling, and with ErrInUse while a process of any version runs.
func (in *Installer) Uninstall(id string) error {
	return in.alone(id, ErrNotOurs, func(now current) error {
		if in.store.anyInUse(id) {
			return ErrInUse
		}
		file := filepath.Join(in.store.home(id), currentName)
		kept, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.Remove(file); err != nil {
			return err
		}
		// From here on no new process starts. A process that started in between keeps its version.
		if in.store.anyInUse(id) {
			return errors.Join(ErrInUse, in.cfg.WriteFile(file, kept, 0o600))
		}
		in.cfg.Logger.Info("an agent is removed", "agent", id, "version", now.Version)
		in.store.sweep(id)
		if dirs := in.store.directories(id); len(dirs) > 0 {
			return fmt.Errorf("%s cannot be removed", dirs[0])
		}
		return nil
	})
}

// alone runs f on the current record of an agent while nobody installs the agent. none is the error for an agent without a record.
func (in *Installer) alone(id string, none error, f func(current) error) (err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%s: %w", id, err)
		}
	}()
	if _, err := in.table.row(id); err != nil {
		return err
	}
	if in.cfg.Dir == "" || in.cfg.WriteFile == nil {
		return none
	}
	if _, err := os.Lstat(filepath.Join(in.store.home(id), currentName)); errors.Is(err, fs.ErrNotExist) {
		if in.progress(id) != nil {
			return ErrInstalling
		}
		return none
	}
	lock := flock.New(filepath.Join(in.store.home(id), lockName), flock.SetPermissions(0o600))
	ours, err := lock.TryLock()
	switch {
	case err != nil:
		return fmt.Errorf("the directory of the agent cannot be locked: %w", err)
	case !ours:
		return ErrInstalling
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	now, err := in.store.current(id)
	if errors.Is(err, errNoneStored) {
		return none
	}
	if err != nil && !errors.Is(none, ErrNotOurs) { // a broken record can be removed, but has no version to go back to
		return fmt.Errorf("%w: %w", none, err)
	}
	return f(now)
}
