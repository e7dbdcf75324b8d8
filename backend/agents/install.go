package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"deskhand/backend/background"
	"deskhand/backend/environ"
	"deskhand/backend/probe"
)

// Installer installs agents, takes them back to the version before, and removes them. Its methods may be called concurrently.
type Installer struct {
	cfg         Config
	table       *table
	store       *store
	finder      *finder
	launcher    *launcher
	environment *environ.Environment
	background  *background.Group
	news        *announcer

	mu    sync.Mutex           // protects the fields below
	jobs  map[string]*job      // installations under way, by agent
	sizes map[string]Footprint // found out by plans, by agent and version
}

// Install installs an agent as its catalogue entry says. An agent that is present already is left alone, unless r has Reinstall or asks for
// another version. This goroutine calls progress, which may be nil; while progress blocks, superseded numbers are dropped. The end of ctx
// ends the installation, and nothing of the installation is left when Install returns, unless other callers wait for the same installation.
//
// Install fails with ErrUnknown, ErrVersion, ErrNotInstallable (the error says how to get the agent), and with an *InstallError.
func (in *Installer) Install(ctx context.Context, id string, r InstallRequest, progress func(Progress)) (Installed, error) {
	e, err := in.table.row(id)
	if err != nil {
		return Installed{}, err
	}
	p, err := e.planOf(r)
	if err != nil {
		return Installed{}, fmt.Errorf("%s: %w", id, err)
	}
	in.environment.Settle(ctx, false)
	if done, ok := in.already(e, p); ok {
		return done, nil
	}
	if err := in.store.installable(e); err != nil {
		return Installed{}, fmt.Errorf("%s: %w", id, err)
	}
	for {
		j, w, err := in.job(e, p) //nolint:contextcheck // other callers may wait for the job too
		if err != nil {
			return Installed{}, err
		}
		if w != nil {
			return j.wait(ctx, w, progress)
		}
		select {
		case <-j.done: // another plan, or a job that is being given up: try again once that job is done, since the job may have installed the wanted version
			if done, ok := in.already(e, p); ok {
				return done, nil
			}
		case <-ctx.Done():
			return Installed{}, ctx.Err()
		}
	}
}

// already returns the installed agent that satisfies a plan, if any. Versions are only known of Deskhand's own installations.
func (in *Installer) already(e entry, p plan) (Installed, bool) {
	at, err := in.finder.find(e)
	ours := e.source == OnPath && e.known.via != ""
	if err != nil || ours && (p.reinstall || p.asked && at.version != p.version) {
		return Installed{}, false
	}
	return Installed{AlreadyInstalled: true, Artifacts: e.artifacts(at)}, true
}

// job returns the running installation of an agent, or begins another. The caller waits as w; w is nil when the running installation has
// another plan.
func (in *Installer) job(e entry, p plan) (j *job, w *waiter, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if j := in.jobs[e.id]; j != nil {
		if j.plan != p {
			return j, nil, nil
		}
		return j, j.join(), nil
	}
	return in.beginLocked(e, p)
}

// beginLocked begins an installation of an agent that has none. The caller holds in.mu.
func (in *Installer) beginLocked(e entry, p plan) (j *job, w *waiter, err error) {
	ctx, cancel := context.WithCancel(in.background.Life())
	j = &job{plan: p, cancel: cancel, done: make(chan struct{}), waiting: map[*waiter]struct{}{}}
	w = j.join()
	began := in.background.Start(func() {
		defer cancel()
		tell := func(p Progress) {
			j.tell(p)
			in.news.announce(News{Agent: e.id, Progress: p})
		}
		tell(Progress{Step: StepResolve})
		j.result, j.err = in.install(ctx, e, p, tell)
		j.err = j.reason(e.id)
		in.mu.Lock()
		delete(in.jobs, e.id)
		in.mu.Unlock()
		in.news.announce(News{Agent: e.id, Ended: true, Err: j.err})
		close(j.done)
	})
	if !began {
		cancel()
		return nil, nil, ErrClosed
	}
	in.jobs[e.id] = j
	return j, w, nil
}

// lockEvery is how often the lock of another process's installation is tried.
const lockEvery = 100 * time.Millisecond

// install runs the job, alone among all processes.
func (in *Installer) install(ctx context.Context, e entry, p plan, tell func(Progress)) (Installed, error) {
	in.environment.Settle(ctx, false)
	i := &installation{installer: in, e: e, plan: p, tell: tell, home: in.store.home(e.id), step: StepResolve}
	done, err := i.alone(ctx)
	if err == nil || ctx.Err() != nil && !in.background.Stopped() {
		return done, err // the last waiter has left
	}
	if in.background.Stopped() {
		err = ErrClosed
	}
	failed := &InstallError{Agent: e.id, Step: i.step, Stderr: i.stderr, Err: err}
	in.cfg.Logger.Warn("an agent was not installed", "agent", e.id, "version", p.version, "step", i.step, "error", err)
	return Installed{}, failed
}

// installation is a run of the steps.
type installation struct {
	installer *Installer
	e         entry
	plan      plan
	tell      func(Progress)
	home      string

	step    string // current step
	stderr  string // of the program that failed
	supply  supply
	dir     string // directory that is being filled
	final   bool   // dir is its final place, and never renamed
	kept    bool   // dir is in use now
	planned bool   // only a plan: nothing is installed
	at      release

	// Found out by resolve; 0 = unknown.
	packages int
	download int64 // bytes to download
	total    int64 // bytes unpacked
	measured bool  // the numbers are those of the catalogue
}

// supply is a way to get an agent's files into the directory of an installation.
type supply interface {
	// resolve finds out the packages and their size, and writes nothing permanent.
	resolve(ctx context.Context) error
	// fetch downloads the agent.
	fetch(ctx context.Context) error
	// program returns the path of the program to start, relative to the directory, with slashes.
	program() (string, error)
}

// source returns the supply for the agent, or an error when this machine lacks the program for that supply.
func (i *installation) source() (supply, error) {
	switch i.e.known.via {
	case viaUVX:
		return i.fromPython()
	case viaBinary:
		return &archiveSupply{i}, nil
	}
	return i.fromNPM()
}

// alone takes the agent's lock and installs, unless another process has installed the version meanwhile.
func (i *installation) alone(ctx context.Context) (done Installed, err error) {
	if i.supply, err = i.source(); err != nil {
		return done, err
	}
	if err := os.MkdirAll(i.home, 0o700); err != nil {
		return done, err
	}
	lock := flock.New(filepath.Join(i.home, lockName), flock.SetPermissions(0o600))
	first, err := lock.TryLock()
	if err == nil && !first {
		i.tell(Progress{Step: i.step, Log: "another Deskhand is installing this agent: waiting for it"})
		_, err = lock.TryLockContext(ctx, lockEvery)
	}
	if err != nil {
		return done, fmt.Errorf("the directory of the agent cannot be locked: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if !first {
		if done, ok := i.installer.already(i.e, i.plan); ok {
			return done, nil
		}
	}
	i.installer.store.sweep(i.e.id)
	if err := i.place(); err != nil {
		return done, err
	}
	defer func() {
		if !i.kept {
			err = errors.Join(err, os.RemoveAll(i.dir))
		}
	}()
	return i.run(ctx)
}

// place makes the directory to install in. Every script of a Python environment contains the path of the environment, which therefore
// cannot be renamed: the environment is made in its final place, and counts only once current.json names it. After a kill, the next sweep
// removes it.
func (i *installation) place() (err error) {
	if i.e.known.via == viaUVX {
		i.final, i.dir = true, filepath.Join(i.home, freeName(i.home, i.plan.version))
		return os.Mkdir(i.dir, 0o700)
	}
	i.dir, err = realTemp(i.home, newPattern)
	return err
}

// realTemp makes a temporary directory and returns its path without links: npm, given a path below a link, writes paths into its lock file
// that lead to the link.
func realTemp(in, pattern string) (string, error) {
	dir, err := os.MkdirTemp(in, pattern)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return real, nil
}

func (i *installation) run(ctx context.Context) (Installed, error) {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{{StepResolve, i.resolve}, {StepDownload, i.supply.fetch}, {StepVerify, i.verify}, {StepSwitch, i.change}} {
		i.step = step.name
		i.tell(Progress{Step: step.name})
		if err := step.run(ctx); err != nil {
			return Installed{}, err
		}
	}
	at, err := i.installer.store.find(i.e)
	if err != nil {
		return Installed{}, err
	}
	i.installer.cfg.Logger.Info("an agent was installed", "agent", i.e.id, "version", i.at.Version, "path", at.program)
	i.installer.store.sweep(i.e.id)
	return Installed{Artifacts: i.e.artifacts(at)}, nil
}

// resolve runs the supply's resolve, and checks that there is enough room.
func (i *installation) resolve(ctx context.Context) error {
	if err := i.supply.resolve(ctx); err != nil {
		return err
	}
	i.estimate()
	return i.room()
}

// verify starts the installed program, and waits for its answer to initialize.
func (i *installation) verify(ctx context.Context) error {
	bin, err := i.supply.program()
	if err != nil {
		return err
	}
	i.at.Bin = bin
	at, err := i.installer.store.launch(i.dir, bin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(i.installer.cfg.Patience, verifyLimit))
	defer cancel()
	cmd := i.installer.launcher.command(ctx, i.e, at, "")
	cmd.Purpose = ForInstall
	_, err = i.installer.launcher.ask(ctx, i.e, cmd, false)
	if silent, ok := errors.AsType[*probe.Error](err); ok {
		i.stderr = silent.Stderr
	}
	return err
}

// verifyLimit is how long a new agent may take to answer: OpenCode takes 4 s on an idle machine.
const verifyLimit = 2 * time.Minute

// change puts the new version into use. After the first rename the context is ignored: the remaining work takes no time.
func (i *installation) change(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	before, err := i.installer.store.current(i.e.id)
	var previous *release
	if err == nil && i.e.owns(before.release) {
		previous = &before.release
		if before.Version == i.at.Version {
			previous = before.Previous // the same version again is nothing to go back to
		}
	}
	if i.at.Directory = filepath.Base(i.dir); !i.final {
		i.at.Directory = freeName(i.home, i.at.Version)
	}
	if i.e.known.remote {
		i.at.Start = &start{i.e.args, i.e.env}
	}
	i.at.Installed = time.Now().UTC().Truncate(time.Second)
	final := filepath.Join(i.home, i.at.Directory)
	if !i.final {
		if err := i.installer.cfg.Rename(i.dir, final); err != nil {
			return err
		}
		i.dir = final
	}
	if err := i.installer.store.setCurrent(i.e.id, i.at, previous); err != nil {
		return err
	}
	i.kept = true
	return nil
}
