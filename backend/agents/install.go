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

// InstallRequest says which version to install.
type InstallRequest struct {
	Reinstall           bool   `json:"reinstall,omitempty" doc:"Install the agent even when it is installed; without a version, the version of the catalogue"`
	AgentVersion        string `json:"agentVersion,omitempty" doc:"Exact version of the agent itself, when an adapter does not determine it"`
	AgentProcessVersion string `json:"agentProcessVersion,omitempty" doc:"Exact version of the program that speaks ACP: the adapter, or the agent itself"`
}

// Installed is the outcome of Install.
type Installed struct {
	AlreadyInstalled bool       `json:"already_installed"`
	Artifacts        []Artifact `json:"artifacts"`
}

// Artifact is a program of an agent. The agent_process is the program that is started; native_agent is the same file for an agent that
// speaks ACP by itself, and is left out for an adapter, which brings the agent along.
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

// Progress is a report of a running installation.
type Progress struct {
	Step  string `json:"step" enum:"resolve,download,verify,switch"`
	Bytes int64  `json:"bytes,omitempty" doc:"Bytes on the disk so far: unpacked packages, archives as downloaded"`
	Total int64  `json:"total,omitempty" doc:"Expected bytes on the disk; absent when unknown"`
	Log   string `json:"log,omitempty" doc:"Line of stderr of npm or uv, or a line of Deskhand's own"`
}

// InstallError is a failed installation; errors.Is finds ErrInstall.
type InstallError struct {
	Agent  string
	Step   string
	Stderr string // the end of the stderr of npm, uv, or the agent that did not answer; at most 8 KiB
	Err    error
}

func (e *InstallError) Error() string { return fmt.Sprintf("%s, at %s: %v", e.Agent, e.Step, e.Err) }

// Is reports target == ErrInstall.
func (e *InstallError) Is(target error) bool { return target == ErrInstall }

// Unwrap returns the reason.
func (e *InstallError) Unwrap() error { return e.Err }

// plan identifies an installation: equal plans of an agent share an installation.
type plan struct {
	version   string // exact
	asked     bool   // the caller demands this version and no other
	reinstall bool
}

// exactVersion matches a version of semver 2, and none of npm's alternatives: tag, range, URL, alias, path or flag.
var exactVersion = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$`)

// pythonVersion matches an exact version of PEP 440 without an epoch or a local part.
var pythonVersion = regexp.MustCompile(`^\d{1,9}(\.\d{1,9}){0,5}((a|b|rc)\d{1,9})?(\.post\d{1,9})?(\.dev\d{1,9})?$`)

// archiveVersion matches a publisher's version of an archive, which becomes the name of a directory.
var archiveVersion = regexp.MustCompile(`^\d[0-9A-Za-z.+_-]{0,63}$`)

// exact returns why v is no exact version of the agent.
func (e entry) exact(v string) error {
	fits := exactVersion
	switch e.known.via {
	case viaUVX:
		fits = pythonVersion
	case viaBinary:
		if v != e.known.version {
			return fmt.Errorf("%w: %q is not %s, the only one whose archive is known", ErrVersion, v, e.known.version)
		}
		fits = archiveVersion
	}
	if !fits.MatchString(v) {
		return fmt.Errorf("%w: %q is not an exact version like 1.2.3", ErrVersion, v)
	}
	return nil
}

// planOf checks a request for an agent.
func (e entry) planOf(r InstallRequest) (plan, error) {
	for _, v := range []string{r.AgentVersion, r.AgentProcessVersion} {
		if v == "" {
			continue
		}
		if err := e.exact(v); err != nil {
			return plan{}, err
		}
	}
	asked := r.AgentProcessVersion
	switch {
	case r == (InstallRequest{Reinstall: r.Reinstall}):
	case e.source != OnPath || e.known.via == "":
		return plan{}, fmt.Errorf("%w: Deskhand installs no version of it: %s", ErrVersion, e.whence())
	case r.AgentVersion == "":
	case !e.known.Native && e.known.Needs != nil:
		return plan{}, fmt.Errorf("%w: %s starts the %s on PATH, whatever its version", ErrVersion, e.known.artefact(), e.known.Needs.Program)
	case !e.known.Native:
		return plan{}, fmt.Errorf("%w: the agent itself comes with its adapter, %s: choose agentProcessVersion", ErrVersion, e.known.artefact())
	case asked != "" && asked != r.AgentVersion:
		return plan{}, fmt.Errorf("%w: %s is the agent itself, so it cannot be %s and %s", ErrVersion, e.known.artefact(), r.AgentVersion, asked)
	default:
		asked = r.AgentVersion
	}
	p := plan{version: asked, asked: asked != "", reinstall: r.Reinstall}
	if !p.asked {
		p.version = e.known.version
	}
	return p, nil
}

// Install installs an agent as its catalogue entry says. An agent that is present already is left alone, unless r has Reinstall or asks for
// another version. This goroutine calls progress, which may be nil; while progress blocks, superseded numbers are dropped. The end of ctx
// ends the installation, and nothing of the installation is left when Install returns, unless other callers wait for the same installation.
//
// Install fails with ErrUnknown, ErrVersion, ErrNotInstallable (the error says how to get the agent), and with an *InstallError.
func (c *Catalogue) Install(ctx context.Context, id string, r InstallRequest, progress func(Progress)) (Installed, error) {
	e, err := c.row(id)
	if err != nil {
		return Installed{}, err
	}
	p, err := e.planOf(r)
	if err != nil {
		return Installed{}, fmt.Errorf("%s: %w", id, err)
	}
	c.environment.Settle(ctx, false)
	if done, ok := c.already(e, p); ok {
		return done, nil
	}
	if err := c.installable(e); err != nil {
		return Installed{}, fmt.Errorf("%s: %w", id, err)
	}
	for {
		j, w, err := c.job(e, p) //nolint:contextcheck // other callers may wait for the job too
		if err != nil {
			return Installed{}, err
		}
		if w != nil {
			return j.wait(ctx, w, progress)
		}
		select {
		case <-j.done: // another plan, or a job that is being given up: try again once that job is done, since the job may have installed the wanted version
			if done, ok := c.already(e, p); ok {
				return done, nil
			}
		case <-ctx.Done():
			return Installed{}, ctx.Err()
		}
	}
}

// already returns the installed agent that satisfies a plan, if any. Versions are only known of Deskhand's own installations.
func (c *Catalogue) already(e entry, p plan) (Installed, bool) {
	at, err := c.find(e)
	ours := e.source == OnPath && e.known.via != ""
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

// whence tells a person where an agent comes from that Deskhand does not install.
func (e entry) whence() string {
	switch e.source {
	case Custom:
		return "agents.json says where it is"
	case Builtin:
		return "it is part of Deskhand"
	}
	return e.how()
}

func (c *Catalogue) installable(e entry) error {
	switch {
	case e.source == Custom:
		return fmt.Errorf("%w: %s, and it is not there", ErrNotInstallable, e.whence())
	case e.source == Builtin, e.known.via == "":
		return fmt.Errorf("%w: %s", ErrNotInstallable, e.whence())
	case c.cfg.Dir == "" || c.cfg.WriteFile == nil:
		return fmt.Errorf("%w: there is no directory to install to", ErrNotInstallable)
	}
	return nil
}

// job is a running installation.
type job struct {
	plan   plan
	cancel context.CancelFunc
	done   chan struct{}
	result Installed // valid once done is closed, like err
	err    error

	mu      sync.Mutex // protects the fields below
	waiting map[*waiter]struct{}
	given   bool // given up: the last waiter has left, or somebody has cancelled
	ended   bool // cancelled by somebody
	last    Progress
}

// waiter is a caller of Install, with the progress that the caller has not received yet.
type waiter struct {
	wake chan struct{}
	news []Progress
}

// maxNews limits the progress that is kept for a slow caller.
const maxNews = 1000

// job returns the running installation of an agent, or begins another. The caller waits as w; w is nil when the running installation has
// another plan.
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

// beginLocked begins an installation of an agent that has none. The caller holds c.mu.
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

// join adds a waiter, or returns nil when the job is being given up.
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

// leave removes a waiter. The last to leave ends the job.
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

// wait waits for the job as w, and passes the news to progress.
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
				<-j.done // so that nothing is left on return
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

// tell reports progress to all waiters, and keeps the report, without its log line, for later waiters.
func (j *job) tell(p Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = p
	j.last.Log = ""
	for w := range j.waiting {
		w.tell(p)
	}
}

// tell adds to the waiter's news. Of unread numbers only the newest are kept.
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
	default: // the waiter is awake already
	}
}

// lockEvery is how often the lock of another process's installation is tried.
const lockEvery = 100 * time.Millisecond

// install runs the job, alone among all processes.
func (c *Catalogue) install(ctx context.Context, e entry, p plan, tell func(Progress)) (Installed, error) {
	c.environment.Settle(ctx, false)
	i := &installation{c: c, e: e, plan: p, tell: tell, home: c.home(e.id), step: StepResolve}
	done, err := i.alone(ctx)
	if err == nil || ctx.Err() != nil && c.life.Err() == nil {
		return done, err // the last waiter has left
	}
	if c.life.Err() != nil {
		err = ErrClosed
	}
	failed := &InstallError{Agent: e.id, Step: i.step, Stderr: i.stderr, Err: err}
	c.cfg.Logger.Warn("an agent was not installed", "agent", e.id, "version", p.version, "step", i.step, "error", err)
	return Installed{}, failed
}

// installation is a run of the steps.
type installation struct {
	c    *Catalogue
	e    entry
	plan plan
	tell func(Progress)
	home string

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
		if done, ok := i.c.already(i.e, i.plan); ok {
			return done, nil
		}
	}
	i.c.sweep(i.e.id)
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
	at, err := i.c.stored(i.e)
	if err != nil {
		return Installed{}, err
	}
	i.c.cfg.Logger.Info("an agent was installed", "agent", i.e.id, "version", i.at.Version, "path", at.program)
	i.c.sweep(i.e.id)
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
	at, err := i.c.launch(i.dir, bin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(i.c.cfg.Patience, verifyLimit))
	defer cancel()
	cmd := i.c.command(ctx, i.e, at, "")
	cmd.Purpose = ForInstall
	_, err = i.c.ask(ctx, i.e.id, cmd, false)
	if silent, ok := errors.AsType[*askError](err); ok {
		i.stderr = silent.stderr
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
	before, err := i.c.readCurrent(i.e.id)
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
		if err := i.c.cfg.Rename(i.dir, final); err != nil {
			return err
		}
		i.dir = final
	}
	if err := i.c.writeCurrent(i.e.id, i.at, previous); err != nil {
		return err
	}
	i.kept = true
	return nil
}
