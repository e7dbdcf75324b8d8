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
	Bytes int64  `json:"bytes,omitempty" doc:"How much is on the disk: unpacked, of an archive as it is"`
	Total int64  `json:"total,omitempty" doc:"How much it will be; absent where nobody tells"`
	Log   string `json:"log,omitempty" doc:"A line of npm's or uv's stderr, or of ours"`
}

// InstallError is a failed installation. It is an ErrInstall.
type InstallError struct {
	Agent  string
	Step   string
	Stderr string // the end of what npm, uv, or the agent that did not answer, wrote there; at most 8 KiB
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

// pythonVersion is one of PEP 440 that is exact, without an epoch or a local part.
var pythonVersion = regexp.MustCompile(`^\d{1,9}(\.\d{1,9}){0,5}((a|b|rc)\d{1,9})?(\.post\d{1,9})?(\.dev\d{1,9})?$`)

// archiveVersion is what the publisher of an archive calls it; it becomes the name of a directory.
var archiveVersion = regexp.MustCompile(`^\d[0-9A-Za-z.+_-]{0,63}$`)

// exact tells whether v is a version of the agent, as it is installed, and nothing else.
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

// planOf checks what is asked for an agent.
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

// Install gets an agent from where its catalogue says, unless it is here: then it does nothing, but for Reinstall or when another version is asked for.
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
		case <-j.done: // another plan, or one that is being given up: then it is our turn, unless that one has brought what is wanted
			if done, ok := c.already(e, p); ok {
				return done, nil
			}
		case <-ctx.Done():
			return Installed{}, ctx.Err()
		}
	}
}

// already tells whether what a plan wants is here. A version that is asked for is known of our own installations alone.
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

// whence tells where an agent is from that Deskhand does not install.
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

	step    string // under way
	stderr  string // of what failed
	supply  supply
	dir     string // where it is made
	final   bool   // dir is where it stays, rather than beside that
	kept    bool   // it is in use now
	planned bool   // nothing is installed: somebody wants to know
	at      release

	// What resolve has found out; 0 = unknown.
	packages int
	download int64 // bytes that are downloaded
	total    int64 // bytes unpacked
	measured bool  // these are those of the catalogue
}

// supply is one way to get an agent into the directory of an installation.
type supply interface {
	// resolve finds out what is to be got and how large it is, and writes nothing that counts.
	resolve(ctx context.Context) error
	// fetch gets it.
	fetch(ctx context.Context) error
	// program is what there is to start now, inside of the directory, with slashes.
	program() (string, error)
}

// source is how the agent is got. What is needed for it on this machine is looked for here.
func (i *installation) source() (supply, error) {
	switch i.e.known.via {
	case viaUVX:
		return i.fromPython()
	case viaBinary:
		return &archiveSupply{i}, nil
	}
	return i.fromNPM()
}

// alone takes the agent's lock and installs, unless another process has done it meanwhile.
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

// place makes the directory to install in. A Python environment knows its own path in every script, and cannot be renamed: it is made
// where it stays, and is none of ours until current.json names it; who is killed before leaves what the next sweep removes.
func (i *installation) place() (err error) {
	if i.e.known.via == viaUVX {
		i.final, i.dir = true, filepath.Join(i.home, freeName(i.home, i.plan.version))
		return os.Mkdir(i.dir, 0o700)
	}
	i.dir, err = realTemp(i.home, newPattern)
	return err
}

// realTemp makes a temporary directory and gives its path without links: npm, given one below a link, writes paths into its lock file
// that lead there.
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

// resolve finds out what is to be got, and whether there is room for it.
func (i *installation) resolve(ctx context.Context) error {
	if err := i.supply.resolve(ctx); err != nil {
		return err
	}
	i.estimate()
	return i.room()
}

// verify starts what was installed, and has it answer to initialize.
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

// verifyLimit is how long a new agent may take to answer: OpenCode takes 4 s, on a machine with nothing else to do.
const verifyLimit = 2 * time.Minute

// change puts the new version into use. From the first rename on it is not cancelled: what is left to do takes no time.
func (i *installation) change(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	before, err := i.c.readCurrent(i.e.id)
	var previous *release
	if err == nil && i.e.owns(before.release) {
		previous = &before.release
		if before.Version == i.at.Version {
			previous = before.Previous // the same once more is nothing to go back to
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
