// Package agents is the catalogue of agents: which agents exist, where each was found on this machine and why, the exact command that
// starts an agent, and how an agent that is missing gets installed.
//
// Ids come from three places: the built-in demo agent (mock), the catalogue that is part of the program (catalogue.json, in the format of
// the public ACP registry, under the short ids of the API), and the user's agents.json. The package reads agents.json again for every
// query, so that an edit takes effect at once. Only ids of this table can be started. No part of a command ever comes from a request,
// except for a definition that a person writes ([Definitions.Define], [Catalogue.TestDefinition]). The catalogue records as data where an
// agent behaves differently from its own announcements ([Quirks]).
//
// Finding. An agent that Deskhand installed goes before a program on PATH. Both are looked up anew for each query. The installed version
// goes first because a person asked for that very version and the version has answered to initialize once, while the program on PATH is
// whichever the machine happens to have; with the other order nobody could reach an installed version. [Agent.Path] and [Agent.Reason] name
// the program that was found, and why.
//
// Agents are found and started in the environment of package environ (see [Catalogue.Environment]); agents that are not found say why when the
// login shell gave no environment.
//
// Installing. An installation gets an exact version into a directory beside those of the other versions: by npm, by uv, or by downloading
// and unpacking an archive, as the agent's entry says. No program of the package runs meanwhile: npm's lifecycle scripts are off, and uv
// builds nothing, except for a package whose catalogue entry says that the package needs its scripts. npm and uv check downloads against
// the checksums of their registries; an archive is checked against the checksum of its entry, and an archive without a checksum is reported
// as such. Archives come over https alone (a mirror on loopback may use http), and only files and directories are unpacked: a link, a path
// that leads out, a name that comes twice, or a size above the limits ends the installation. The needed space is found out first, as far as
// a server tells (see [Installer.Plan]), and an installation does not begin without enough room. The new version is used only after the
// agent has answered to initialize, by the rename of one small file; until then, and after any failure, the version before is used
// unchanged. The version before is kept, older versions are removed unless a process uses them, so a running agent is never disturbed. One
// installation of an agent runs at a time, over all processes that share the directory: a second request for the same version in one
// process joins the first, all others wait. When the context of the last waiting caller ends, npm or uv is ended with everything that npm
// or uv started, and nothing of the installation is left when Install returns.
//
// A person can go back to the version before, and remove an installed agent unless a process uses the agent. The package never removes a
// program that Deskhand did not install.
//
// The registry. With [Config.CatalogueURL] the public registry, or a mirror, is asked once a day (see [Registry.Follow]). The registry
// offers newer versions, and agents that the catalogue does not know; installed agents stay as they are. The last good document is in
// <Dir>/registry.json; a document that is bad or cannot be fetched changes nothing. Icons that the registry names are not fetched: anybody
// can serve them, and the fetch would tell a server which agents are installed here.
//
// Asking. Infos starts agents to learn their offers, at most two at a time, each in an empty directory that is removed afterwards, and
// keeps the answer until the agent's version changes. Test starts an agent as a session would, and reports how each step went.
//
// Signing in. [Logins.Methods] lists the ways that an agent offers. The agent signs in by itself ([Logins.Authenticate]), its program runs
// on a terminal ([Logins.Command]), or a person gives values ([Logins.Keep]), which are then in the environment of that agent at every start,
// and of no other agent. The values are in a vault; LoginMethods.Keyring names the place. A login ends with its context, together with every
// process that the login started, except a browser. Only the started process learns a value from this package.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"deskhand/backend/background"
	"deskhand/backend/environ"
	"deskhand/backend/probe"
	"deskhand/backend/proxy"
	"deskhand/backend/vault"
)

// Catalogue is the table of agents. Its methods may be called concurrently.
type Catalogue struct {
	cfg         Config
	table       *table
	definitions *Definitions
	registry    *Registry
	installer   *Installer
	store       *store
	finder      *finder
	launcher    *launcher
	environment *environ.Environment
	vault       *vault.Vault
	prober      *probe.Prober
	background  *background.Group
	news        announcer
	notes       *loginNotes
	logins      *Logins
	offers      *offers
	asking      chan struct{} // a slot for each agent that is asked or tested
}

// atOnce is how many agents are asked at the same time: each is a whole runtime of some hundred megabytes.
const atOnce = 2

// Open makes a catalogue and starts nothing; see [environ.Environment.Look].
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
	var unread, unopened, unplaced error
	if cfg.Dir != "" {
		cfg.Dir, unplaced = filepath.Abs(cfg.Dir) // npm works in Dir, and names files by its path
	}
	c := &Catalogue{cfg: cfg, asking: make(chan struct{}, atOnce), notes: &loginNotes{why: map[string]string{}}}
	c.vault, c.background = cmp.Or(cfg.Vault, vault.Open(vault.Config{})), background.New()
	c.table = &table{demo: demo(cmp.Or(cfg.Demo, cfg.Self))}
	c.table.bundled, unread = parseCatalogue(bundled)
	c.prober = &probe.Prober{Logger: cfg.Logger}
	c.prober.Processes, unopened = proxy.Open(proxy.Config{Beside: cfg.Beside, Logger: cfg.Logger, Purpose: ForTest})
	c.table.fault = errors.Join(unread, unopened, unplaced)
	c.definitions = &Definitions{
		file: cfg.File, write: cfg.WriteFile, bundled: c.table.bundled, background: c.background, news: &c.news, changing: c.changing,
	}
	c.table.definitions = c.definitions
	c.environment = environ.Open(environ.Config{
		Environ: cfg.Environ, LoginShell: cfg.LoginShell, Desktop: cfg.Desktop, Self: cfg.Self, Patience: cfg.ShellPatience, Logger: cfg.Logger,
		Changing: c.changing, Show: c.showShell,
	})
	c.store = &store{dir: cfg.Dir, write: cfg.WriteFile, environment: c.environment, logger: cfg.Logger}
	c.finder = &finder{store: c.store, environment: c.environment}
	c.launcher = &launcher{environment: c.environment, vault: c.vault, prober: c.prober}
	c.installer = &Installer{
		cfg: cfg, table: c.table, store: c.store, finder: c.finder, launcher: c.launcher, environment: c.environment, background: c.background,
		news: &c.news, jobs: map[string]*job{}, sizes: map[string]Footprint{},
	}
	c.offers = &offers{launcher: c.launcher, background: c.background, notes: c.notes, asking: c.asking, answers: map[string]*answer{}}
	c.logins = &Logins{
		cfg: cfg, table: c.table, finder: c.finder, launcher: c.launcher, environment: c.environment, vault: c.vault, background: c.background,
		news: &c.news, notes: c.notes, offers: c.offers, signIns: map[string]signIn{},
	}
	c.registry = &Registry{
		address: cfg.CatalogueURL, table: c.table, store: c.store, environment: c.environment, background: c.background, changing: c.changing,
		logger: cfg.Logger,
	}
	c.registry.load()
	return c
}

// Close ends installations and agents that are being asked, and waits until all their processes are gone.
func (c *Catalogue) Close() error {
	c.background.Stop()
	c.environment.Close()
	c.background.Wait()
	if c.prober.Processes == nil {
		return nil
	}
	return c.prober.Processes.Close()
}

// Definitions returns the agents of agents.json.
func (c *Catalogue) Definitions() *Definitions { return c.definitions }

// Registry returns what asks the public registry of agents.
func (c *Catalogue) Registry() *Registry { return c.registry }

// Installer returns what installs and removes the agents.
func (c *Catalogue) Installer() *Installer { return c.installer }

// Vault returns the vault of the values that people have entered for logins.
func (c *Catalogue) Vault() *vault.Vault { return c.vault }

// Logins returns what signs people in to the agents.
func (c *Catalogue) Logins() *Logins { return c.logins }

// Environment returns the environment in which agents are found and started. Until its login shell has answered or timed out, the calls that
// need an agent wait: Command, Ensure, Info, Infos, Test, and Install of the installer. List, All and Agent do not, since an opening window
// would wait with them. For each agent that the answer changes, the callback of Watch is called as at the end of an installation.
func (c *Catalogue) Environment() *environ.Environment { return c.environment }

// showShell lists the login shell while the shell runs. The shell is not in the catalogue's process set: a process that detaches from the
// shell belongs to the person.
func (c *Catalogue) showShell(file string, pid int) (hide func()) {
	if c.prober.Processes == nil {
		return func() {}
	}
	return c.prober.Processes.Show(ForShell, filepath.Base(file), pid)
}

// List returns the agents that a person can choose from, ready agents first, and the error of agents.json, if any. Of the agents that are
// not on this machine, List returns only the main ones and those that are being installed: the catalogue has many more than anybody wants
// to read.
func (c *Catalogue) List() ([]Agent, error) {
	return c.list(func(e entry, a Agent) bool {
		return a.State != NotFound || e.inFile || e.known.Main || a.Installing != nil
	})
}

// All returns List for the whole catalogue.
func (c *Catalogue) All() ([]Agent, error) {
	return c.list(func(entry, Agent) bool { return true })
}

func (c *Catalogue) list(wanted func(entry, Agent) bool) ([]Agent, error) {
	rows, err := c.table.rows()
	list := make([]Agent, 0, len(rows))
	for _, e := range rows {
		if a := c.describe(e); wanted(e, a) {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Agent) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	return list, err
}

// Agent returns an agent of the table, or ErrUnknown.
func (c *Catalogue) Agent(id string) (Agent, error) {
	e, err := c.table.row(id)
	if err != nil {
		return Agent{}, err
	}
	return c.describe(e), nil
}

// describe returns e as found on this machine, together with the actions that are possible.
func (c *Catalogue) describe(e entry) Agent {
	running := c.installer.progress(e.id) // asked before the files are read: an agent without a running installation has its new version completely
	a := c.found(e)
	a.Installing = running
	a.Installable = c.store.installable(e) == nil
	a.Editable = e.inFile
	if e.source == OnPath {
		a.Package, a.Pinned, a.Distribution = e.known.artefact(), e.known.version, e.known.via
		a.Size = c.installer.size(e)
	}
	if now, err := c.store.current(e.id); err == nil && a.Installable && now.Previous != nil && e.owns(now.release) {
		a.Previous = now.Previous.Version
	}
	a.Quirks = e.quirks()
	return a
}

// found returns e as found on this machine, without the actions that are possible.
func (c *Catalogue) found(e entry) Agent {
	a := Agent{ID: e.id, Name: e.name, Source: e.source, State: Broken, Detail: e.broken}
	if e.broken != "" {
		return a
	}
	at, err := c.finder.find(e)
	switch {
	case errors.Is(err, errUnusable):
		a.Source, a.Detail = Own, err.Error()
		return a
	case err != nil:
		a.State, a.Detail = NotFound, err.Error()
		if !filepath.IsAbs(e.command) && !e.known.remote {
			for _, d := range c.environment.Surroundings().Directories {
				a.Searched = append(a.Searched, d.String())
			}
		}
		return a
	}
	a.State, a.Path, a.Reason, a.Version, a.Account = Ready, at.program, at.reason, at.version, c.notes.accountOf(e.id)
	if at.version != "" {
		a.Source = Own
	} else if e.source == OnPath {
		a.Version = versionBeside(at.program, e.known.npm)
	}
	if why, wants := c.notes.of(e, at); wants {
		a.State, a.Detail = NeedsLogin, why
	}
	if err := c.finder.lacks(e); err != nil {
		a.State, a.Detail = Broken, err.Error()
	}
	return a
}

// Known reports whether id is in the table, found on this machine or not.
func (c *Catalogue) Known(id string) bool {
	_, err := c.table.row(id)
	return err == nil
}

// Name returns the display name of an agent, or id for an unknown agent.
func (c *Catalogue) Name(id string) string {
	if e, err := c.table.row(id); err == nil {
		return e.name
	}
	return id
}

// Command returns the command that starts the agent in cwd. Command fails with ErrUnknown for an id that is not in the table, and with
// ErrNotInstalled when the program is not on this machine. Command installs nothing; Ensure does.
func (c *Catalogue) Command(ctx context.Context, id, cwd string) (proxy.Command, error) {
	c.environment.Settle(ctx, false)
	e, err := c.table.row(id)
	if err != nil {
		return proxy.Command{}, err
	}
	if e.broken != "" {
		return proxy.Command{}, fmt.Errorf("%w: %s: %s: %s", ErrFile, c.cfg.File, id, e.broken)
	}
	at, err := c.finder.locate(e)
	if err != nil && e.source == Custom {
		return proxy.Command{}, fmt.Errorf("%w: %s: %w", ErrCommand, id, err)
	}
	if err != nil {
		return proxy.Command{}, fmt.Errorf("%w: %s: %w", ErrNotInstalled, id, err)
	}
	return c.launcher.command(ctx, e, at, cwd), nil
}

// Ensure is Command, after installing a missing agent that can be installed, unless Config.Preinstalled is set. A failed installation is an
// *InstallError.
func (c *Catalogue) Ensure(ctx context.Context, id, cwd string) (proxy.Command, error) {
	cmd, err := c.Command(ctx, id, cwd)
	if c.cfg.Preinstalled || !errors.Is(err, ErrNotInstalled) || errors.Is(err, ErrCommand) {
		return cmd, err
	}
	_, failed := c.installer.Install(ctx, id, InstallRequest{}, nil)
	switch {
	case errors.Is(failed, ErrNotInstallable):
		return cmd, fmt.Errorf("%w; %w", err, failed)
	case failed != nil:
		return cmd, failed
	}
	return c.Command(ctx, id, cwd)
}

// Watch has f called with the news of all installations, in the order of each. f must not block.
func (c *Catalogue) Watch(f func(News)) { c.news.watch.Store(&f) }

// changing runs f, and announces the agents that f changed to the callback of Watch.
func (c *Catalogue) changing(f func()) {
	before, _ := c.List() // other callers of List get the error of agents.json
	f()
	after, _ := c.List()
	for _, a := range after {
		if !slices.ContainsFunc(before, func(b Agent) bool { return reflect.DeepEqual(a, b) }) {
			c.news.announce(News{Agent: a.ID, Ended: true, Aside: true})
		}
	}
}
