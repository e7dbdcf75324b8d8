// Package agents knows which agents exist, where each was found on this machine and why, the exact command that starts it, and how
// to get one that is not here.
//
// Ids come from three places: the built-in demo agent (mock), the catalogue that is part of the program (catalogue.json, in the
// format of the public ACP registry, under the short ids of the API), and the user's agents.json, which is read again at every look
// so that an edit counts at once. Only ids of this table can be started; no part of a command ever comes from a request, but for a
// definition that a person writes ([Catalogue.Define], [Catalogue.TestDefinition]). What an agent does otherwise than it says stands in
// the catalogue as data ([Quirks]).
//
// Finding. What Deskhand installed itself comes first, then PATH. Both are looked at anew each time. Our own comes first because a
// person asked for that very version and it has answered to initialize once, while what is on PATH is whatever the machine has;
// the other order would make an installed version that nobody can reach. What was found, where and why is in [Agent.Path] and
// [Agent.Reason].
//
// With [Config.LoginShell] PATH, and the rest of the environment that agents are found with and started in, is that of Deskhand, joined
// with what the person's login shell sets up, which is read once in the background (see [Catalogue.Look]), and after both the places
// where the usual installers put things. Started from a terminal Deskhand's own goes first, from a desktop the shell's. A shell that
// hangs, fails or is of an unknown kind costs its time-out once, and leaves Deskhand's own; the agents that are not found say why.
//
// Installing. What is got is an exact version, in a directory beside those of the other versions: by npm, by uv, or an archive that we
// download and unpack ourselves, as the agent's entry says. Nothing that comes along is run for that: npm's lifecycle scripts are off, and
// uv builds nothing, but for a package whose catalogue entry says that it cannot do without. npm and uv check what they get against the
// checksums of their registries; an archive is checked against the one that its entry gives, and where there is none, that is said. It
// comes over https alone (a mirror on loopback may do without), and out of it come files and directories: a link, a path that leads out,
// a name that comes twice, or more than there may be in it ends the installation. How much is needed is found out first, as far as
// anybody tells (see [Catalogue.Plan]), and with too little room nothing is begun. The new version is used only after it has
// answered to initialize, by the rename of one small file; until then, and after any failure, what was there before is used as it
// was. The version before is kept, older ones go unless a process uses them: who runs is never disturbed. One installation of an agent
// runs at a time, over all processes on one directory: who asks for the same in one process joins it, everybody else waits. The end of
// the context of the last who waits ends npm or uv with all that it started, and when Install returns nothing of it is left.
//
// What is installed can be gone back from, to the version before, and removed again, unless a process uses it. Nothing is ever removed
// that Deskhand has not installed.
//
// The registry. With [Config.CatalogueURL] the public registry, or a mirror, is asked once a day (see [Catalogue.Follow]). It gives newer
// versions to install, and agents that the catalogue does not know; what is installed stays what it is. Its last good document is in
// <Dir>/registry.json; one that cannot be had or is bad changes nothing. The icons that it names are not fetched: they are files of anybody,
// and who fetches them tells a server what is installed here.
//
// Asking. Infos starts agents to hear what they offer, at most two at a time, each in an empty directory that is removed again, and
// keeps the answer until the agent is another version. Test starts one as a session would, and tells of each step how it went.
//
// Signing in. Login tells the ways that an agent offers; the agent does it itself (Authenticate), or its program runs on a terminal
// (LoginCommand), or a person gives values (Keep), which are then in its environment at every start, and in that of no other. They are in
// the keyring of the system, else in a file that only its owner may read, and what tells of them says which. A login ends with its
// context, with all that it has started but a browser. Nobody learns a value from this package but the process that is started.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/proxy"
)

// Errors of Command and File.
var (
	ErrUnknown      = errors.New("unknown agent")
	ErrNotInstalled = errors.New("the agent is not installed")
	ErrFile         = errors.New("agents.json cannot be read")
	ErrClosed       = errors.New("the catalogue is closed")
	// ErrCommand is the ErrNotInstalled of an agent whose command a person has configured: nothing can be installed in its place.
	ErrCommand = fmt.Errorf("%w: the command that agents.json gives cannot be started", ErrNotInstalled)
)

// Demo is the id of the built-in agent.
const Demo = "mock"

// Where an agent comes from.
const (
	Builtin = "builtin"
	Custom  = "custom"
	OnPath  = "path"
	Own     = "installed"
)

// States of an agent.
const (
	Ready      = "ready"
	NeedsLogin = "needs_login" // it said so when it was last asked for a session or a turn
	NotFound   = "not_found"
	Broken     = "broken"
)

// Agent is one agent as people see it.
type Agent struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	State    string   `json:"state" enum:"ready,needs_login,not_found,broken"`
	Source   string   `json:"source" enum:"builtin,custom,path,installed"`
	Path     string   `json:"path,omitempty" doc:"The program that is started"`
	Reason   string   `json:"reason,omitempty" doc:"Why it is this program"`
	Detail   string   `json:"detail,omitempty" doc:"Why it is not ready"`
	Searched []string `json:"searched,omitempty" doc:"The directories that were searched for it, each with where it is from"`

	Version      string      `json:"version,omitempty" doc:"Of the program that is started, where its package says so"`
	Installable  bool        `json:"installable" doc:"Deskhand can install it"`
	Distribution string      `json:"distribution,omitempty" enum:"npm,uvx,binary" doc:"How it is installed; absent where nobody has said how"`
	Package      string      `json:"package,omitempty" doc:"What is installed: a package of npm or of Python, or the URL of an archive"`
	Pinned       string      `json:"pinned,omitempty" doc:"The version of the catalogue, which is installed when none is asked for"`
	Size         *Footprint  `json:"size,omitempty" doc:"Of the pinned version, where it is known before it is installed; a plan asks for it"`
	Previous     string      `json:"previous,omitempty" doc:"The version before, which can be gone back to"`
	Editable     bool        `json:"editable" doc:"It stands in agents.json: there is a definition of it"`
	Quirks       *Quirks     `json:"quirks,omitempty" doc:"What it does otherwise than it says, as it was measured"`
	Installing   *Installing `json:"installing,omitempty" doc:"How far an installation is that runs"`
	Failure      *Failure    `json:"failure,omitempty" doc:"Why the last installation failed; until the next attempt, or the next fresh look"`
}

// Installing is how far an installation is.
type Installing struct {
	Step  string `json:"step" enum:"resolve,download,verify,switch"`
	Bytes int64  `json:"bytes,omitempty" doc:"How much is on the disk: unpacked, of an archive as it is"`
	Total int64  `json:"total,omitempty" doc:"How much it will be; absent where nobody tells"`
}

// Failure is why an installation failed.
type Failure struct {
	Code   string `json:"code" doc:"Stable, such as agent.install_failed"`
	Detail string `json:"detail"`
	Stderr string `json:"stderr,omitempty" doc:"The end of what npm, uv, or the agent that did not answer, wrote there"`
}

// HasUpdate tells whether the catalogue has a later version than the one that is started.
func (a Agent) HasUpdate() bool { return older(a.Version, a.Pinned) }

// IsInstalled tells whether Deskhand installed it.
func (a Agent) IsInstalled() bool { return a.Source == Own }

// IsReady tells whether the agent can be started.
func (a Agent) IsReady() bool { return a.State == Ready }

// IsFound tells whether it is on this machine, in whatever state.
func (a Agent) IsFound() bool { return a.State != NotFound }

// WantsLogin tells whether it would start, but for a login.
func (a Agent) WantsLogin() bool { return a.State == NeedsLogin }

// IsBuiltin tells the demo agent from a person's own.
func (a Agent) IsBuiltin() bool { return a.Source == Builtin }

// Config of a catalogue.
type Config struct {
	// Self is our own program, which holds the demo agent, and tells its environment to a login shell that asks it to.
	Self string
	// File is agents.json; it need not exist.
	File string
	// Environ is the environment that agents are started with; nil means that of this process.
	Environ []string
	// LoginShell adds what the person's login shell sets up, and the known install places. Without it Environ is all there is.
	LoginShell bool
	// Desktop says that we were started from a desktop, whose environment no person has set up: what the login shell says goes first.
	Desktop bool
	// ShellPatience is how long the login shell may take; 0 means 10 s.
	ShellPatience time.Duration
	// Dir is where agents are installed to, one directory each; "" means that none can be.
	Dir string
	// WriteFile replaces a file atomically (store.WriteFile). Without it nothing can be installed.
	WriteFile func(name string, data []byte, mode fs.FileMode) error
	// Rename renames what was just unpacked, which a scanner may still look at (store.Rename); nil means os.Rename.
	Rename func(from, to string) error
	// CatalogueURL is the URL of the agents' registry that Follow asks; "" and "off" mean none, and then a copy of it is not used either.
	CatalogueURL string
	// Registry is the URL of the npm registry; "" means what npm itself is set to.
	Registry string
	// Vault is the file that tells which values are kept for logins, and holds those that no keyring holds; "" keeps none. It is written by
	// WriteFile.
	Vault string
	// Keyring lets values be kept in the keyring of the system.
	Keyring bool
	// Preinstalled keeps Ensure from installing what is missing.
	Preinstalled bool
	// Beside is the set of processes whose watchdog and ledger those of this package share: npm, uv, and agents that are asked something.
	// Nil means none of both. Close the catalogue before it.
	Beside *proxy.Set
	// Patience is how long an agent may take to answer to initialize; 0 means a minute for one that is tested, and two for one that has
	// just been installed. It is also how long a server may take to say what archive it has; there 0 means half a minute.
	Patience time.Duration
	// Logger is told of installations; nil means nobody.
	Logger *slog.Logger
}

// Catalogue is the table of agents. Its methods may be called at the same time.
type Catalogue struct {
	cfg       Config
	bundled   []entry
	table     atomic.Pointer[[]entry] // bundled, with what the registry says
	fault     error                   // of the bundled catalogue; a test sees that there is none
	processes *proxy.Set              // npm, uv, and agents that are asked something
	asking    chan struct{}
	work      sync.WaitGroup
	life      context.Context //nolint:containedctx // ends with Close, and with it what runs in the background
	end       context.CancelFunc
	around    atomic.Pointer[Surroundings]
	vault     *vault

	editing  sync.Mutex // held by who changes agents.json
	registry sync.Mutex // held by who asks the registry

	mu      sync.Mutex // protects the fields below
	closed  bool
	jobs    map[string]*job      // installations under way, by agent
	answers map[string]*answer   // of agents that were asked, by what asked is
	logins  map[string]string    // why agents want a login, by what was asked
	signIns map[string]signIn    // what agents say of logins, likewise
	sizes   map[string]Footprint // that a plan has found out, by agent and version
	watch   func(News)
	reading *reading // of the login shell, the last one
}

// atOnce is how many agents are asked at the same time: they are whole runtimes, of some hundred megabytes each.
const atOnce = 2

// Open makes a catalogue. It starts nothing yet; see Look.
func Open(cfg Config) *Catalogue {
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Rename == nil {
		cfg.Rename = os.Rename
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Catalogue{cfg: cfg, asking: make(chan struct{}, atOnce), jobs: map[string]*job{}, answers: map[string]*answer{}, logins: map[string]string{}, sizes: map[string]Footprint{}}
	c.signIns, c.vault = map[string]signIn{}, &vault{file: cfg.Vault, write: cfg.WriteFile, system: cfg.Keyring, logger: cfg.Logger}
	var unread, unopened, unplaced error
	if cfg.Dir != "" {
		c.cfg.Dir, unplaced = filepath.Abs(cfg.Dir) // npm works in it, and calls things by it
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.around.Store(c.own())
	c.bundled, unread = parseCatalogue(bundled)
	c.table.Store(&c.bundled)
	if u := c.registryURL(); u != nil {
		rows := withRegistry(c.bundled, c.readCopy(u).Document)
		c.table.Store(&rows)
	}
	c.processes, unopened = proxy.Open(proxy.Config{Beside: cfg.Beside, Logger: cfg.Logger, Purpose: ForTest})
	c.fault = errors.Join(unread, unopened, unplaced)
	return c
}

// Close ends installations and agents that are being asked, and waits until nothing of them is left.
func (c *Catalogue) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.work.Wait()
	if c.processes == nil {
		return nil
	}
	return c.processes.Close()
}

// backgroundLocked runs f, which ends with c.life, until Close has waited for it; after Close it does not.
func (c *Catalogue) backgroundLocked(f func()) bool {
	if !c.closed {
		c.work.Go(f)
	}
	return !c.closed
}

// entry is one row: how an agent is started, and what we know of it.
type entry struct {
	id, name, source string
	command          string // an absolute path, or a name to be found on PATH
	args             []string
	env              map[string]string
	cwd              string
	broken           string
	inFile           bool // agents.json says it
	bare             bool // it is started without the values that are kept for it
	known            known
}

// List gives the agents that a person can choose from, ready ones first, and what is wrong with agents.json, if anything. Of those
// that are not here it holds the main ones alone, and those that are being installed: the catalogue has many more than anybody wants
// to read.
func (c *Catalogue) List() ([]Agent, error) {
	return c.list(func(e entry, a Agent) bool {
		return a.State != NotFound || e.inFile || e.known.Main || a.Installing != nil
	})
}

// All is List of the whole catalogue.
func (c *Catalogue) All() ([]Agent, error) {
	return c.list(func(entry, Agent) bool { return true })
}

func (c *Catalogue) list(wanted func(entry, Agent) bool) ([]Agent, error) {
	rows, err := c.rows()
	list := make([]Agent, 0, len(rows))
	for _, e := range rows {
		if a := c.describe(e); wanted(e, a) {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Agent) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	return list, err
}

// Agent is one of the list: ErrUnknown for an id that is not in the table.
func (c *Catalogue) Agent(id string) (Agent, error) {
	e, err := c.row(id)
	if err != nil {
		return Agent{}, err
	}
	return c.describe(e), nil
}

func rank(state string) int {
	return slices.Index([]string{Ready, NeedsLogin, Broken, NotFound}, state)
}

// describe is what was found, and what can be done about it.
func (c *Catalogue) describe(e entry) Agent {
	running := c.installing(e.id) // asked before the files are read: an agent without an installation has all of its new version
	a := c.found(e)
	a.Installing = running
	a.Installable = c.installable(e) == nil
	a.Editable = e.inFile
	if e.source == OnPath {
		a.Package, a.Pinned, a.Distribution = e.known.artefact(), e.known.version, e.known.via
		a.Size = c.size(e)
	}
	if now, err := c.readCurrent(e.id); err == nil && a.Installable && now.Previous != nil && e.owns(now.release) {
		a.Previous = now.Previous.Version
	}
	a.Quirks = e.quirks()
	return a
}

// found is what was found, without what can be done about it.
func (c *Catalogue) found(e entry) Agent {
	a := Agent{ID: e.id, Name: e.name, Source: e.source, State: Broken, Detail: e.broken}
	if e.broken != "" {
		return a
	}
	at, err := c.find(e)
	switch {
	case errors.Is(err, errUnusable):
		a.Source, a.Detail = Own, err.Error()
		return a
	case err != nil:
		a.State, a.Detail = NotFound, err.Error()
		if !filepath.IsAbs(e.command) && !e.known.remote {
			a.Searched = c.searched()
		}
		return a
	}
	a.State, a.Path, a.Reason, a.Version = Ready, at.program, at.reason, at.version
	if at.version != "" {
		a.Source = Own
	} else if e.source == OnPath {
		a.Version = versionBeside(at.program, e.known.npm)
	}
	if why, wants := c.wantsLogin(e, at); wants {
		a.State, a.Detail = NeedsLogin, why
	}
	if err := c.lacks(e); err != nil {
		a.State, a.Detail = Broken, err.Error()
	}
	return a
}

// Known tells whether id is in the table, found on this machine or not.
func (c *Catalogue) Known(id string) bool {
	_, err := c.row(id)
	return err == nil
}

// Name is what people call the agent; of an unknown one its id.
func (c *Catalogue) Name(id string) string {
	if e, err := c.row(id); err == nil {
		return e.name
	}
	return id
}

// Command is how the agent is started in cwd: ErrUnknown for an id that is not in the table, ErrNotInstalled when its program
// is not on this machine. It installs nothing; Ensure does.
func (c *Catalogue) Command(ctx context.Context, id, cwd string) (proxy.Command, error) {
	c.Settle(ctx, false)
	e, err := c.row(id)
	if err != nil {
		return proxy.Command{}, err
	}
	if e.broken != "" {
		return proxy.Command{}, fmt.Errorf("%w: %s: %s: %s", ErrFile, c.cfg.File, id, e.broken)
	}
	at, err := c.locate(e)
	if err != nil && e.source == Custom {
		return proxy.Command{}, fmt.Errorf("%w: %s: %w", ErrCommand, id, err)
	}
	if err != nil {
		return proxy.Command{}, fmt.Errorf("%w: %s: %w", ErrNotInstalled, id, err)
	}
	return c.command(ctx, e, at, cwd), nil
}

func (c *Catalogue) command(ctx context.Context, e entry, at place, cwd string) proxy.Command {
	if e.cwd != "" {
		cwd = e.cwd
	}
	if at.start != nil && !e.inFile {
		e.args, e.env = at.start.Args, at.start.Env
	}
	path, args := at.argv(e.args)
	env := c.environ(e.environ())
	if !e.bare {
		env = append(env, c.vault.environ(ctx, e.id)...)
	}
	if at.home != "" {
		env = append(env, homeVariable+"="+at.home)
	}
	return proxy.Command{Path: path, Args: args, Env: exceptLoopback(env), Dir: cwd, Keeps: at.home}
}

// Ensure is Command that installs first what is missing and can be installed, unless Config.Preinstalled. It fails with an
// *InstallError when that fails.
func (c *Catalogue) Ensure(ctx context.Context, id, cwd string) (proxy.Command, error) {
	cmd, err := c.Command(ctx, id, cwd)
	if c.cfg.Preinstalled || !errors.Is(err, ErrNotInstalled) || errors.Is(err, ErrCommand) {
		return cmd, err
	}
	_, failed := c.Install(ctx, id, InstallRequest{}, nil)
	switch {
	case errors.Is(failed, ErrNotInstallable):
		return cmd, fmt.Errorf("%w; %w", err, failed)
	case failed != nil:
		return cmd, failed
	}
	return c.Command(ctx, id, cwd)
}

// row finds an id in the table.
func (c *Catalogue) row(id string) (entry, error) {
	rows, fileErr := c.rows()
	for _, e := range rows {
		if e.id == id {
			return e, nil
		}
	}
	if fileErr != nil {
		return entry{}, fmt.Errorf("%w: %s (%w)", ErrUnknown, id, fileErr)
	}
	return entry{}, fmt.Errorf("%w: %s", ErrUnknown, id)
}

// FileProblem is what is wrong with agents.json; nil when nothing is.
func (c *Catalogue) FileProblem() error {
	_, err := c.custom()
	return err
}

// rows is the whole table: the demo agent, the catalogue in its order, then what agents.json adds, as far as it can be read. The error is
// what is wrong with that file.
func (c *Catalogue) rows() ([]entry, error) {
	rows := append([]entry{c.demo()}, *c.table.Load()...)
	own, err := c.custom()
	for _, e := range own {
		i := slices.IndexFunc(rows, func(r entry) bool { return r.id == e.id })
		if i >= 0 {
			e.known = rows[i].known.ofAnother(e.known)
			rows[i] = e
		} else {
			rows = append(rows, e)
		}
	}
	return rows, errors.Join(c.fault, err)
}

func (c *Catalogue) demo() entry {
	return entry{
		id: Demo, name: "Demo agent", source: Builtin, command: c.cfg.Self, args: []string{"demo-agent"},
		known: known{Capabilities: allCapabilities(), Modes: demoModes()},
	}
}

// asRoot tells whether agents run as the system's administrator.
func asRoot() bool { return runtime.GOOS != "windows" && os.Geteuid() == 0 }
