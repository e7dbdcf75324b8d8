package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Errors of Install and Ensure.
var (
	ErrInstall        = errors.New("the agent could not be installed") // an *InstallError has the details
	ErrNotInstallable = errors.New("it cannot be installed by Deskhand")
	ErrVersion        = errors.New("no version to install")
	ErrInstalling     = errors.New("an installation of the agent is under way")
	ErrCancelled      = errors.New("the installation was cancelled")
)

// InstallRequest says what to install.
type InstallRequest struct {
	Reinstall           bool   `json:"reinstall,omitempty" doc:"Install it anew even where it is installed; without a version, the one of the catalogue"`
	AgentVersion        string `json:"agentVersion,omitempty" doc:"The exact version of the agent itself, where it is no adapter's affair"`
	AgentProcessVersion string `json:"agentProcessVersion,omitempty" doc:"The exact version of the program that speaks ACP: the adapter, or the agent itself"`
}

// Installed is the outcome of Install.
type Installed struct {
	AlreadyInstalled bool       `json:"already_installed"`
	Artifacts        []Artifact `json:"artifacts"`
}

// Artifact is one program of an agent. The agent_process is the one that is started; native_agent is the same file where the agent
// speaks ACP by itself, and is left out where it is the adapter's affair.
type Artifact struct {
	Kind    string `json:"kind" enum:"native_agent,agent_process"`
	Path    string `json:"path"`
	Source  string `json:"source" enum:"registry,fallback,local_path,builtin"`
	Version string `json:"version,omitempty"`
}

// The steps of an installation.
const (
	StepResolve  = "resolve"
	StepDownload = "download"
	StepVerify   = "verify"
	StepSwitch   = "switch"
)

// Progress is told while an installation runs.
type Progress struct {
	Step  string `json:"step" enum:"resolve,download,verify,switch"`
	Bytes int64  `json:"bytes,omitempty" doc:"How much is unpacked on the disk"`
	Total int64  `json:"total,omitempty" doc:"How much it will be; absent where the registry does not tell"`
	Log   string `json:"log,omitempty" doc:"A line of npm's stderr"`
}

// InstallError is a failed installation. It is an ErrInstall.
type InstallError struct {
	Agent  string
	Step   string
	Stderr string // the end of what npm, or the agent that did not answer, wrote there; at most 8 KiB
	Err    error
}

func (e *InstallError) Error() string { return fmt.Sprintf("%s, at %s: %v", e.Agent, e.Step, e.Err) }

// Is makes every InstallError an ErrInstall.
func (e *InstallError) Is(target error) bool { return target == ErrInstall }

// Unwrap is the reason.
func (e *InstallError) Unwrap() error { return e.Err }

// plan is what an installation does. Equal plans of one agent are one installation.
type plan struct {
	version   string // exact
	asked     bool   // by the caller, so that no other version will do
	reinstall bool
}

// exactVersion is a version of semver 2 and nothing else that npm takes in its place: no tag, range, URL, alias, path or flag.
var exactVersion = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$`)

// planOf checks what is asked for an agent.
func (e entry) planOf(r InstallRequest) (plan, error) {
	for _, v := range []string{r.AgentVersion, r.AgentProcessVersion} {
		if v != "" && !exactVersion.MatchString(v) {
			return plan{}, fmt.Errorf("%w: %q is not an exact version like 1.2.3", ErrVersion, v)
		}
	}
	asked := r.AgentProcessVersion
	switch {
	case r.AgentVersion == "":
	case e.source != OnPath || e.known.npm == "":
	case !e.known.Native && e.known.Needs != nil:
		return plan{}, fmt.Errorf("%w: %s starts the %s on PATH, whatever its version", ErrVersion, e.known.npm, e.known.Needs.Program)
	case !e.known.Native:
		return plan{}, fmt.Errorf("%w: the agent itself comes with its adapter, %s: choose agentProcessVersion", ErrVersion, e.known.npm)
	case asked != "" && asked != r.AgentVersion:
		return plan{}, fmt.Errorf("%w: %s is the agent itself, so it cannot be %s and %s", ErrVersion, e.known.npm, r.AgentVersion, asked)
	default:
		asked = r.AgentVersion
	}
	p := plan{version: asked, asked: asked != "", reinstall: r.Reinstall}
	if !p.asked {
		p.version = e.known.version
	}
	return p, nil
}

// Install gets an agent from npm, unless it is here: then it does nothing, but for Reinstall or when another version is asked for.
// progress, which may be nil, is called by this goroutine; while it blocks, numbers that are overtaken are left out. The end of ctx
// ends the installation, and nothing of it is left when Install returns, unless others wait for the same one.
//
// It fails with ErrUnknown, ErrVersion, ErrNotInstallable (the error says how to get the agent), and with an *InstallError.
func (c *Catalogue) Install(ctx context.Context, id string, r InstallRequest, progress func(Progress)) (Installed, error) {
	e, err := c.row(id)
	if err != nil {
		return Installed{}, err
	}
	p, err := e.planOf(r)
	if err != nil {
		return Installed{}, fmt.Errorf("%s: %w", id, err)
	}
	c.Settle(ctx, false)
	if done, ok := c.already(e, p); ok {
		return done, nil
	}
	if err := c.installable(e); err != nil {
		return Installed{}, fmt.Errorf("%s: %w", id, err)
	}
	for {
		j, w, err := c.job(e, p) //nolint:contextcheck // others may wait for the job too
		if err != nil {
			return Installed{}, err
		}
		if w != nil {
			return j.wait(ctx, w, progress)
		}
		select {
		case <-j.done: // another plan, or one that is being given up: then it is our turn
		case <-ctx.Done():
			return Installed{}, ctx.Err()
		}
	}
}

// already tells whether what a plan wants is here. A version that is asked for is known of our own installations alone.
func (c *Catalogue) already(e entry, p plan) (Installed, bool) {
	at, err := c.find(e)
	ours := e.source == OnPath && e.known.npm != ""
	if err != nil || ours && (p.reinstall || p.asked && at.version != p.version) {
		return Installed{}, false
	}
	return Installed{AlreadyInstalled: true, Artifacts: e.artifacts(at)}, true
}

func (e entry) artifacts(at place) []Artifact {
	a := Artifact{Kind: "agent_process", Path: at.program, Source: "local_path", Version: at.version}
	switch {
	case e.source == Builtin:
		a.Source = "builtin"
	case at.version != "":
		a.Source = "registry"
	}
	list := []Artifact{a}
	if e.known.Native {
		a.Kind = "native_agent"
		list = append(list, a)
	}
	return list
}

func (c *Catalogue) installable(e entry) error {
	switch {
	case e.source == Custom:
		return fmt.Errorf("%w: agents.json says where it is, and it is not there", ErrNotInstallable)
	case e.source == Builtin:
		return fmt.Errorf("%w: it is part of Deskhand", ErrNotInstallable)
	case e.known.npm == "":
		return fmt.Errorf("%w: %s", ErrNotInstallable, e.how())
	case c.cfg.Dir == "" || c.cfg.WriteFile == nil:
		return fmt.Errorf("%w: there is no directory to install to", ErrNotInstallable)
	}
	return nil
}

// job is one installation under way.
type job struct {
	plan   plan
	cancel context.CancelFunc
	done   chan struct{}
	result Installed // valid once done is closed, like err
	err    error

	mu      sync.Mutex // protects the fields below
	waiting map[*waiter]struct{}
	given   bool // up: the last who waited has gone, or somebody has ended it
	ended   bool // by somebody
	last    Progress
}

// waiter is one caller of Install: what it has not been told yet.
type waiter struct {
	wake chan struct{}
	news []Progress
}

// maxNews is how much is kept for a caller that is slow to take it.
const maxNews = 1000

// job finds the installation of an agent that is under way, or begins one. The caller waits for it as w; w is nil when it is not the
// one that is wanted.
func (c *Catalogue) job(e entry, p plan) (j *job, w *waiter, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[e.id]; j != nil {
		if j.plan != p {
			return j, nil, nil
		}
		return j, j.join(), nil
	}
	return c.beginLocked(e, p)
}

// beginLocked begins an installation of an agent that has none under way.
func (c *Catalogue) beginLocked(e entry, p plan) (j *job, w *waiter, err error) {
	ctx, cancel := context.WithCancel(c.life)
	j = &job{plan: p, cancel: cancel, done: make(chan struct{}), waiting: map[*waiter]struct{}{}}
	w = j.join()
	began := c.backgroundLocked(func() {
		defer cancel()
		tell := func(p Progress) {
			j.tell(p)
			c.announce(News{Agent: e.id, Progress: p})
		}
		tell(Progress{Step: StepResolve})
		j.result, j.err = c.install(ctx, e, p, tell)
		j.err = j.reason(e.id)
		c.mu.Lock()
		delete(c.jobs, e.id)
		c.mu.Unlock()
		c.announce(News{Agent: e.id, Ended: true, Err: j.err})
		close(j.done)
	})
	if !began {
		cancel()
		return nil, nil, ErrClosed
	}
	c.jobs[e.id] = j
	return j, w, nil
}

// join counts a caller in, unless the job is being given up.
func (j *job) join() *waiter {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.given {
		return nil
	}
	w := &waiter{wake: make(chan struct{}, 1)}
	j.waiting[w] = struct{}{}
	if j.last.Step != "" {
		w.tell(j.last)
	}
	return w
}

// leave counts a caller out. The last one ends the job.
func (j *job) leave(w *waiter) (last bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.waiting, w)
	j.given = len(j.waiting) == 0
	if j.given {
		j.cancel()
	}
	return j.given
}

// wait waits as w, and passes on the news.
func (j *job) wait(ctx context.Context, w *waiter, progress func(Progress)) (Installed, error) {
	for {
		select {
		case <-j.done:
			j.pass(w, progress)
			j.leave(w)
			return j.result, j.err
		case <-w.wake:
			j.pass(w, progress)
		case <-ctx.Done():
			if j.leave(w) {
				<-j.done // so that nothing is left when we return
			}
			return Installed{}, ctx.Err()
		}
	}
}

func (j *job) pass(w *waiter, progress func(Progress)) {
	j.mu.Lock()
	news := w.news
	w.news = nil
	j.mu.Unlock()
	for _, p := range news {
		if progress != nil {
			progress(p)
		}
	}
}

// tell says how far the job is. A line of the log is told once; the rest stands until it changes.
func (j *job) tell(p Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = p
	j.last.Log = ""
	for w := range j.waiting {
		w.tell(p)
	}
}

// tell adds to the news. Of numbers that nobody has heard yet the newest are enough.
func (w *waiter) tell(p Progress) {
	n := len(w.news)
	switch {
	case n > 0 && p.Log == "" && w.news[n-1].Log == "" && w.news[n-1].Step == p.Step:
		w.news[n-1] = p
	case n < maxNews:
		w.news = append(w.news, p)
	default:
		w.news = append(w.news[1:], p)
	}
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// lockEvery is how often we look whether another process has ended its installation of the same agent.
const lockEvery = 100 * time.Millisecond

// install does the work of a job, alone among all processes.
func (c *Catalogue) install(ctx context.Context, e entry, p plan, tell func(Progress)) (Installed, error) {
	c.Settle(ctx, false)
	i := &installation{c: c, e: e, plan: p, tell: tell, home: c.home(e.id), step: StepResolve}
	done, err := i.alone(ctx)
	if err == nil || ctx.Err() != nil && c.life.Err() == nil {
		return done, err // who waited has gone
	}
	if c.life.Err() != nil {
		err = ErrClosed
	}
	failed := &InstallError{Agent: e.id, Step: i.step, Stderr: i.stderr, Err: err}
	c.cfg.Logger.Warn("an agent was not installed", "agent", e.id, "version", p.version, "step", i.step, "error", err)
	return Installed{}, failed
}

// installation is one run of the steps.
type installation struct {
	c    *Catalogue
	e    entry
	plan plan
	tell func(Progress)
	home string

	step   string // under way
	stderr string // of what failed
	total  int64  // bytes unpacked; 0 = unknown
	npm    npm
	dir    string // where it is made
	at     release

	unpacked bool // what is downloaded is on the disk
}

// alone takes the agent's lock and installs, unless another process has done it meanwhile.
func (i *installation) alone(ctx context.Context) (done Installed, err error) {
	if i.npm, err = i.c.findNPM(); err != nil {
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
		if done, ok := i.c.already(i.e, i.plan); ok {
			return done, nil
		}
	}
	i.c.sweep(i.e.id)
	if i.dir, err = os.MkdirTemp(i.home, newPattern); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(i.dir)) }()
	return i.run(ctx)
}

func (i *installation) run(ctx context.Context) (Installed, error) {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{{StepResolve, i.resolve}, {StepDownload, i.download}, {StepVerify, i.verify}, {StepSwitch, i.change}} {
		i.step = step.name
		i.tell(Progress{Step: step.name})
		if err := step.run(ctx); err != nil {
			return Installed{}, err
		}
	}
	at, err := i.c.stored(i.e)
	if err != nil {
		return Installed{}, err
	}
	i.c.cfg.Logger.Info("an agent was installed", "agent", i.e.id, "version", i.at.Version, "path", at.program)
	i.c.sweep(i.e.id)
	return Installed{Artifacts: i.e.artifacts(at)}, nil
}

// verify starts what was installed, and has it answer to initialize.
func (i *installation) verify(ctx context.Context) error {
	bin, err := i.program()
	if err != nil {
		return err
	}
	i.at.Bin = bin
	at, err := i.c.launch(i.dir, bin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(i.c.cfg.Patience, verifyLimit))
	defer cancel()
	_, err = i.c.ask(ctx, i.e.id, i.c.command(i.e, at, ""), false)
	if silent, ok := errors.AsType[*askError](err); ok {
		i.stderr = silent.stderr
	}
	return err
}

// verifyLimit is how long a new agent may take to answer: OpenCode takes 4 s, on a machine with nothing else to do.
const verifyLimit = 2 * time.Minute

// change puts the new version into use. From the first rename on it is not cancelled: what is left to do takes no time.
func (i *installation) change(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	before, err := i.c.readCurrent(i.e.id)
	var previous *release
	if err == nil {
		previous = &before.release
		if before.Version == i.at.Version {
			previous = before.Previous // the same once more is nothing to go back to
		}
	}
	i.at.Directory = freeName(i.home, i.at.Version)
	if i.e.known.remote {
		i.at.Start = &start{i.e.args, i.e.env}
	}
	i.at.Installed = time.Now().UTC().Truncate(time.Second)
	final := filepath.Join(i.home, i.at.Directory)
	if err := os.Rename(i.dir, final); err != nil {
		return err
	}
	if err := i.c.writeCurrent(i.e.id, i.at, previous); err != nil {
		return errors.Join(err, os.RemoveAll(final))
	}
	return nil
}
