// Package backend composes the program: a Backend owns a data directory and everything that runs on the directory. The window, the server and
// the command line use the package.
package backend

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/compare"
	"deskhand/backend/datadir"
	"deskhand/backend/discord"
	"deskhand/backend/entries"
	"deskhand/backend/export"
	"deskhand/backend/files"
	"deskhand/backend/forge"
	"deskhand/backend/git"
	"deskhand/backend/host"
	"deskhand/backend/httpapi"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/remotes"
	"deskhand/backend/roster"
	"deskhand/backend/sample"
	"deskhand/backend/search"
	"deskhand/backend/session"
	"deskhand/backend/settings"
	"deskhand/backend/setup"
	"deskhand/backend/skills"
	"deskhand/backend/snapshot"
	"deskhand/backend/store"
	"deskhand/backend/tools"
	"deskhand/backend/usage"
	"deskhand/backend/vault"
)

// Config configures a Backend.
type Config struct {
	Places  datadir.Paths
	Version string
	Kind    string   // the process's role for people: window, server or command
	Lasting bool     // the process stays, and may connect to Discord: a command would take messages there and end
	Self    string   // path of this program, which contains the demo agent and the watchdog
	Demo    string   // path of the program that is the demo agent in place of Self; empty = Self
	Assets  fs.FS    // the frontend; nil = none
	Roots   []string // where /v1 may work; empty = the home directory
	Logger  *slog.Logger

	Activate func() // raises the window when a second start asks for that; nil without a window

	Token          string        // replaces the data directory's token of /v1
	NoToken        bool          // /v1 needs no token; loopback only
	AllowHosts     []string      // exact host:port pairs besides our own
	AllowOrigins   []string      // origins from which browsers may call /v1
	RequestTimeout time.Duration // limit of a POST without a limit of its own; 0 = the agent's life
	MaxUpload      int64         // bytes per upload; 0 = 2 GiB
	Preinstalled   bool          // /v1 installs no agent by itself

	LoginShell bool // agents get the login shell's environment, and are also looked for in the usual places
	Desktop    bool // a desktop started this process, whose environment nobody has set up

	LeastIdle  time.Duration // idle time after which an agent may sleep; 0 = the default of session.Config
	HoldPrompt time.Duration // how long a prompt waits for the snapshot before its turn; 0 = the default of session.Config

	LineStall time.Duration // longest silence of a remote runtime's connection; 0 = the default of remotes.Deps

	Keyring bool // store the values that people enter for agents and places in the system's keyring, if there is one

	CatalogueURL string // address of the agents' registry, which is asked once a day; empty or off = none
}

// Backend is an open backend.
type Backend struct {
	cfg       Config
	lock      *datadir.Lock      // nil when another process holds the data directory
	holder    *datadir.HeldError // that process
	db        *store.DB
	processes processSets
	agents    *agents.Catalogue
	roster    *roster.Agents
	skills    *skills.Library
	kept      *snapshot.Library // the snapshots around turns
	remotes   *remotes.Library
	settings  *settings.Library
	setups    *setup.Library
	search    *search.Index
	tally     *usage.Tally
	client    *session.Client
	forge     *forge.Library
	compare   *compare.Library
	discord   *discord.Surface

	discordProblem string // why Discord is absent, when its stored data is damaged

	tools  *tools.Server // our MCP servers for agents
	api    *httpapi.API
	access *httpapi.Access
	codes  codes
	tabs   *httpapi.Tabs
	socket *Listener
	local  localAPI
	life   context.Context //nolint:containedctx // every call's context ends with life
	stop   context.CancelFunc

	address address // for browsers
}

// processSets are the processes of agents.
type processSets struct {
	api      *proxy.Set // of /v1
	sessions *proxy.Set // of the client's sessions
}

// close ends the processes.
func (p *processSets) close() error {
	var errs []error
	if p.sessions != nil {
		errs = append(errs, p.sessions.Close())
	}
	if p.api != nil {
		errs = append(errs, p.api.Close())
	}
	return errors.Join(errs...)
}

// address is the URL for browsers, empty while nothing is served to browsers.
type address struct {
	mu  sync.Mutex
	url string
}

func (a *address) set(url string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.url = url
}

func (a *address) get() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.url
}

// AgentsFileProblem says why agents.json cannot be read; empty when it can.
func (b *Backend) AgentsFileProblem() string {
	if err := b.agents.Definitions().Problem(); err != nil {
		return err.Error()
	}
	return ""
}

// Open locks the data directory and starts the program on the directory. When another process holds the directory, the runtime works (see
// Alone) and there is no client.
func Open(ctx context.Context, cfg Config) (*Backend, error) {
	b := &Backend{cfg: cfg}
	b.life, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.agents.Environment().Look() // last: a start need not share the processor with a login shell
	b.agents.Registry().Follow()  //nolint:contextcheck // the registry is followed until Close
	if b.discord != nil && b.cfg.Lasting && b.client.ReadOnly() == nil {
		b.discord.Start()
	}
	return b, nil
}

// take locks the data directory, or records the process that holds the directory.
func (b *Backend) take() (err error) {
	b.lock, err = b.cfg.Places.Acquire(b.cfg.Logger)
	if held, is := errors.AsType[*datadir.HeldError](err); is {
		b.holder = held
		return nil
	}
	return err
}

func (b *Backend) open(ctx context.Context) error {
	if err := b.take(); err != nil {
		return err
	}
	dir := b.cfg.Places.Data
	token, err := b.token(ctx, "token")
	if err != nil {
		return err
	}
	clientToken, err := b.token(ctx, "client-token")
	if err != nil {
		return err
	}
	b.tabs = httpapi.NewTabs(clientToken)
	if err := b.openProcesses(); err != nil {
		return err
	}
	b.agents = agents.Open(agents.Config{
		Self: b.cfg.Self, Demo: b.cfg.Demo, File: filepath.Join(b.cfg.Places.Config, "agents.json"), Dir: filepath.Join(dir, "agents"), WriteFile: store.WriteFile, Rename: store.Rename,
		Preinstalled: b.cfg.Preinstalled, Beside: b.processes.api, Logger: b.cfg.Logger, LoginShell: b.cfg.LoginShell, Desktop: b.cfg.Desktop,
		CatalogueURL: b.cfg.CatalogueURL, Vault: b.vault("logins.json"),
	})
	b.settings = settings.New(b.cfg.Places.Settings())
	var client http.Handler
	if b.lock != nil {
		c, err := b.openClient(ctx, token, clientToken)
		if err != nil {
			return err
		}
		client = c
	}
	if b.cfg.Token != "" {
		token = b.cfg.Token
	}
	b.api, err = httpapi.New(httpapi.Config{
		Version: b.cfg.Version, Runtime: b.processes.api, Agents: b.agents, Client: client, Assets: b.cfg.Assets, RuntimeToken: token,
		ClientToken: clientToken, Tabs: b.tabs, NoToken: b.cfg.NoToken, AllowHosts: b.cfg.AllowHosts, AllowOrigins: b.cfg.AllowOrigins,
		Roots: b.cfg.Roots, Private: b.private(), MaxUpload: b.cfg.MaxUpload,
		RequestTimeout: b.cfg.RequestTimeout, Logger: b.cfg.Logger, Access: b.access,
	})
	if err != nil {
		return err
	}
	if b.lock == nil {
		return nil
	}
	return b.openSocket(ctx)
}

// sessionLog limits the log of a session's agent. The journal keeps all that the session has read, so the log only has to hold unread
// messages; with logs of 4 MiB three streaming agents had 10 MiB in memory. The log of a /v1 instance, which callers read again, would take
// 300 MiB for ten agents.
const sessionLog = 1 << 20

// openProcesses opens the two sets of agents. The holder of the data directory keeps the ledger; a process beside the holder has the watchdog
// only.
func (b *Backend) openProcesses() error {
	cfg := proxy.Config{Watchdog: []string{b.cfg.Self, "watchdog"}, Logger: b.cfg.Logger, Purpose: processes.ForAPI}
	if b.lock != nil {
		cfg.Ledger = b.cfg.Places.Ledger()
	}
	var err error
	if b.processes.api, err = proxy.Open(cfg); err != nil {
		return err
	}
	b.processes.sessions, err = proxy.Open(proxy.Config{Beside: b.processes.api, LogBytes: sessionLog, Logger: b.cfg.Logger, Purpose: processes.ForSession})
	return err
}

// ShortestSecret is the least length of a chosen token that is redacted from stored texts: redacting a shorter token could remove ordinary
// words, and a shorter token can be guessed anyway.
const ShortestSecret = 16

func (b *Backend) openTools() {
	b.tools = tools.Open(tools.Config{
		Self: b.cfg.Self, Version: b.cfg.Version, Private: b.private(), Logger: b.cfg.Logger,
		Serve: func(ln net.Listener, h http.Handler) io.Closer { return serve(ln, h) }, Socket: b.toolSocket,
	})
}

func (b *Backend) openClient(ctx context.Context, secrets ...string) (http.Handler, error) {
	var err error
	if b.db, err = store.Open(ctx, b.cfg.Places.Data); err != nil {
		return nil, err
	}
	if err := b.db.Sign(b.cfg.Version); err != nil { // an older version would not know everything
		b.cfg.Logger.Warn("the data directory cannot be signed", "error", err)
	}
	if len(b.cfg.Token) >= ShortestSecret {
		secrets = append(secrets, b.cfg.Token)
	}
	if err := b.openLibraries(ctx); err != nil {
		return nil, err
	}
	b.openTools()
	ofDiscord, ofPlaces := b.vault("discord-token.json"), b.vault("place-tokens.json")
	b.remotes = remotes.New(remotes.Deps{
		Store: b.db, Tokens: ofPlaces, Logger: b.cfg.Logger, Version: b.cfg.Version, Stall: b.cfg.LineStall, AgentName: b.agents.Name,
	})
	b.search = search.New(search.Deps{Store: b.db, Logger: b.cfg.Logger, AgentName: b.agents.Name})
	b.setups = setup.New(setup.Deps{Store: b.db, Processes: b.processes.sessions, Environ: b.agents.Environment().Environ, Logger: b.cfg.Logger})
	known := roster.NewSecrets(b.agents, []*vault.Vault{ofPlaces, ofDiscord}, secrets, b.cfg.Logger)
	b.roster = roster.New(roster.Deps{Catalogue: b.agents, Secrets: known})
	b.client, err = session.Open(ctx, session.Config{
		Store: b.db, Agents: b.agents, Proxy: b.processes.sessions, Logger: b.cfg.Logger, Version: b.cfg.Version, Roster: b.roster,
		Skills:    b.skills,
		Snapshots: b.kept,
		Replace:   files.Replace, Everywhere: b.cfg.Places.Config,
		Files:     b.agentFiles(),
		Settings:  b.settings,
		LeastIdle: b.cfg.LeastIdle, HoldPrompt: b.cfg.HoldPrompt,
		Tools:   &host.Tools{Give: b.tools.Give, End: b.tools.End},
		Remotes: b.remotes,
		Search:  b.search,
		Setups:  b.setups,
	})
	if err != nil {
		return nil, b.blame(err)
	}
	if err := b.openForge(ctx); err != nil {
		return nil, err
	}
	b.compare, err = compare.Open(ctx, compare.Deps{
		Store: b.db, Sessions: b.client, Setups: b.setups, Clean: b.roster.Secrets().Redactor().Text, Agents: b.agents, Logger: b.cfg.Logger,
	})
	if err != nil {
		return nil, b.blame(err)
	}
	b.search.Start(ctx)
	b.tally = usage.New(usage.Deps{Store: b.db, Logger: b.cfg.Logger, Agent: b.agents.Name})
	b.tally.Start(ctx)
	b.tools.Use(b.client)
	if err := b.openDiscord(ctx, ofDiscord); err != nil {
		return nil, err
	}
	if b.access, err = httpapi.OpenAccess(ctx, b.db, b.cfg.Logger); err != nil {
		return nil, b.blame(err)
	}
	return b.clientHandler(), nil
}

// openLibraries opens the skills and the snapshots, which lie in files beside the database.
func (b *Backend) openLibraries(ctx context.Context) (err error) {
	b.skills, err = skills.Open(ctx, skills.Config{
		Dir: filepath.Join(b.cfg.Places.Data, "skills"), Beside: b.processes.api, Environ: b.agents.Environment().Environ, Logger: b.cfg.Logger,
	})
	if err != nil {
		return err
	}
	b.kept, err = snapshot.Open(ctx, snapshot.Config{
		Dir: filepath.Join(b.cfg.Places.Data, "snapshots"), Beside: b.processes.api, Environ: b.agents.Environment().Environ, Replace: files.ReplaceIf, Logger: b.cfg.Logger,
	})
	return err
}

// openForge opens the library of pull requests.
func (b *Backend) openForge(ctx context.Context) (err error) {
	stored := entries.New(b.db)
	b.forge, err = forge.Open(ctx, forge.Deps{
		Landing: b.client.Landing(), Beside: b.processes.api, Environ: b.agents.Environment().Environ, Clean: b.roster.Secrets().Redactor().Text, Logger: b.cfg.Logger,
		Program: func(ctx context.Context, name string) (string, error) {
			_, find := b.Programs(ctx)
			return find(name)
		},
		Answer:  stored.LastAnswer,
		Choices: func() string { return b.settings.Get().Forges },
		Choose: func(list string) error {
			_, err := b.settings.Change(settings.SettingsPatch{Forges: &list})
			return err
		},
	})
	return err
}

// startedIn returns the working directory when a person may have chosen it to work in. A desktop starts programs in the home directory, in a
// root, or in the directory of the program.
func startedIn(home, self string) string {
	cwd, err := os.Getwd()
	if err != nil || cwd == home || cwd == filepath.Dir(cwd) || cwd == filepath.Dir(self) {
		return ""
	}
	return cwd
}

// makeSample makes the sample project of the demo agent.
func (b *Backend) makeSample(ctx context.Context) (string, error) {
	return sample.Make(ctx, b.cfg.Places.Sample(), func(ctx context.Context, dir string, in []byte, args ...string) error {
		err := git.Run(ctx, b.processes.api, git.Command{
			Whose: git.Ours, Environ: b.agents.Environment().Environ(ctx), Dir: dir, GitDir: filepath.Join(dir, ".git"), In: in, Args: args,
		})
		if errors.Is(err, git.ErrAbsent) {
			return nil // the project does without
		}
		return err
	})
}

// clientHandler returns the API of the window, the page and the commands.
func (b *Backend) clientHandler() http.Handler {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	return httpapi.NewClient(httpapi.ClientConfig{
		Version:        b.cfg.Version,
		Sessions:       b.client,
		Remotes:        b.remotes,
		Forge:          b.forge,
		Compare:        b.compare,
		Setups:         b.setups,
		Exports:        b.exporter(),
		Agents:         b.agents,
		Roster:         b.roster,
		Discord:        b.discord,
		DiscordProblem: b.discordProblem,
		Files:          b.within(),
		Home:           home,
		Started:        startedIn(home, b.cfg.Self),
		Sample:         b.makeSample,
		Data:           b.cfg.Places.Data,
		Activate:       b.cfg.Activate,
		Link:           b.Link,
		URL:            b.address.get,
		Login:          b.codes.take,
		Tabs:           b.tabs,
		Search:         b.search,
		Tally:          b.tally,
		Access:         b.access,
		Local:          b.localState,
		SwitchLocal:    b.switchLocal,
	})
}

func (b *Backend) exporter() *export.Exporter {
	return export.New(export.Deps{
		Store: b.db, Logger: b.cfg.Logger, Version: b.cfg.Version, Session: b.client.Get, Stored: b.client.Stored,
		LoadSecrets: func(ctx context.Context) error { return b.roster.Secrets().Load(ctx, vault.Asking) }, Redactor: b.client.Redactor, Begin: b.client.Maintenance().BeginWork,
	})
}

// damages reports whether err stems from a damaged database: from its pages or from a stored record.
func damages(err error) bool {
	return err != nil && (store.Corrupt(err) || record.Damaged(err))
}

// blame adds advice for a person to an error of a damaged database.
func (b *Backend) blame(err error) error {
	if _, told := errors.AsType[*store.DamagedError](err); damages(err) && !told {
		return &store.DamagedError{Dir: b.cfg.Places.Data, Err: err}
	}
	return err
}

// vault opens the vault of a file in the data directory.
func (b *Backend) vault(name string) *vault.Vault {
	return vault.Open(vault.Config{
		File: filepath.Join(b.cfg.Places.Data, name), WriteFile: store.WriteFile, Keyring: b.cfg.Keyring, Logger: b.cfg.Logger,
	})
}

// Places are the directories of this backend. The data directory may be another than that of Config, as of a `deskhand data use` since.
func (b *Backend) Places() datadir.Paths { return b.cfg.Places }

// Alone is the process that holds the data directory, or nil when this process does. Beside another process there is /v1 and no client.
func (b *Backend) Alone() *datadir.HeldError { return b.holder }

// ReadOnly says that a newer version has written the data, which is then shown and not changed; empty when the data can be changed.
func (b *Backend) ReadOnly() string {
	if b.client == nil || b.client.ReadOnly() == nil {
		return ""
	}
	n := b.db.Newer()
	by := "a newer version"
	if n.By != "" && n.By != b.cfg.Version {
		by = n.By
	}
	return fmt.Sprintf("The data in %s was written by %s of Deskhand (schema %d; this one, %s, knows %d). It can be read, and nothing is changed",
		b.cfg.Places.Data, by, n.Schema, b.cfg.Version, n.Known)
}

// Window is the handler of the window's asset server.
func (b *Backend) Window() http.Handler { return b.bounded(b.api.Window()) }

// bounded passes calls to next, with contexts that end when the backend closes.
func (b *Backend) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(b.life, cancel)() //nolint:contextcheck // ctx ends the call
		next.ServeHTTP(w, r.WithContext(httpapi.WithLife(ctx, b.life)))
	})
}

// Programs returns the lookup of variables and programs in the agents' environment, which the login shell has set up.
func (b *Backend) Programs(ctx context.Context) (env func(name string) string, find func(name string) (string, error)) {
	return b.agents.Environment().Programs(ctx)
}

// Editor returns the words of the settings that open a file at a line in the person's editor; none when the settings name none.
func (b *Backend) Editor(file, line string) []string {
	return b.settings.Get().EditorCommand(file, line)
}

// Running is the number of running turns.
func (b *Backend) Running() int {
	if b.client == nil {
		return 0
	}
	return b.client.Running()
}

// Installing is the number of running installations of agents.
func (b *Backend) Installing() int {
	if b.agents == nil {
		return 0
	}
	return b.agents.Installer().Running()
}

// Working is the number of running turns that wait for no person.
func (b *Backend) Working() int {
	if b.client == nil {
		return 0
	}
	return b.client.Working()
}

// Close ends the callers first, then the surfaces such as Discord, the conversations and the agents, and the database last, so that nothing is
// lost.
func (b *Backend) Close() error {
	errs := []error{b.local.close()}
	if b.socket != nil {
		errs = append(errs, b.socket.Close())
	}
	b.stop() // also ends calls that outlive their callers
	if b.api != nil {
		b.api.Close()
	}
	if b.tools != nil {
		errs = append(errs, b.tools.Close())
	}
	if b.discord != nil {
		errs = append(errs, b.discord.Close())
	}
	if b.forge != nil {
		errs = append(errs, b.forge.Close())
	}
	if b.client != nil {
		errs = append(errs, b.client.Close())
	}
	if b.tally != nil {
		b.tally.Close()
	}
	if b.search != nil {
		b.search.Close()
	}
	if b.kept != nil {
		errs = append(errs, b.kept.Close())
	}
	if b.skills != nil {
		errs = append(errs, b.skills.Close())
	}
	if b.agents != nil {
		errs = append(errs, b.agents.Close())
	}
	errs = append(errs, b.processes.close())
	if b.access != nil {
		errs = append(errs, b.access.Close())
	}
	if b.db != nil {
		errs = append(errs, b.db.Close())
	}
	if b.lock != nil {
		errs = append(errs, b.lock.Release())
	}
	return errors.Join(errs...)
}

// Listener serves a handler until Close.
type Listener struct {
	Addr   net.Addr
	URL    string
	server *http.Server
	done   chan error
	close  func() error // end, once
	remove string       // a directory of ours to remove afterwards

	unmount func() // tells the source of callers to stop sending them; nil = no source

	mu      sync.Mutex // protects the fields below
	closing bool
	fresh   map[net.Conn]struct{} // connections without a request so far
}

// note records connections without a request. Shutdown would wait for their first request, and clients such as Node's keep a spare connection
// for each abandoned stream, so that every Shutdown would take its full time.
func (l *Listener) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(l.fresh, c)
	case l.closing:
		_ = c.Close() // the connection has no request
	default:
		l.fresh[c] = struct{}{}
	}
}

// dropFresh closes the connections without a request, now and from now on.
func (l *Listener) dropFresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	for c := range l.fresh {
		_ = c.Close() // its goroutine removes the connection from fresh
	}
}

func serve(ln net.Listener, h http.Handler) *Listener {
	l := &Listener{Addr: ln.Addr(), done: make(chan error, 1), server: httpapi.NewServer(h), fresh: map[net.Conn]struct{}{}}
	l.close = sync.OnceValue(l.end)
	l.server.ConnState = l.note
	ctx, cancel := context.WithCancel(context.Background())
	l.server.BaseContext = func(net.Listener) context.Context { return ctx }
	l.server.RegisterOnShutdown(cancel) // ends held requests, so that Shutdown need not wait for them
	go func() { l.done <- l.server.Serve(ln) }()
	return l
}

const farewell = 2 * time.Second

// Close ends held requests, waits a moment for the others, and returns when the listener has stopped. Any number of goroutines may call Close.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if l.unmount != nil {
		l.unmount()
	}
	l.dropFresh()
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = l.server.Close()
	}
	if served := <-l.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if l.remove != "" {
		err = errors.Join(err, os.RemoveAll(l.remove))
	}
	return err
}

// Listen serves the API, and the app for browsers, on host and port (0 = any). The error of a taken port gives advice.
func (b *Backend) Listen(ctx context.Context, host string, port int) (*Listener, error) {
	if b.cfg.NoToken && !loopback(host) {
		return nil, fmt.Errorf("without a token only this machine may call: %s is not a loopback address", host)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", net.JoinHostPort(host, strconv.Itoa(port)), err)
	}
	_, p, _ := net.SplitHostPort(ln.Addr().String())
	shown := host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		shown = "127.0.0.1"
	}
	h, unmount := b.bounded(b.api.Loopback(ln.Addr())), func() {}
	if b.tools != nil {
		h, unmount = b.tools.Mount(ln.Addr(), h)
	}
	l := serve(ln, h) //nolint:contextcheck // the listener lives until Close, not as long as ctx
	l.unmount, l.URL = unmount, "http://"+net.JoinHostPort(shown, p)
	b.address.set(l.URL)
	if b.lock != nil {
		b.describe(l.URL)
	}
	return l, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Link is a URL that signs a browser in, once, within a minute.
func (b *Backend) Link() (string, error) {
	url := b.address.get()
	if url == "" {
		return "", errors.New("nothing is served to browsers")
	}
	return url + "/#code=" + b.codes.make(), nil
}

// token reads a token of the data directory, or creates the token at the first start: 256 random bits, readable by us alone. Only the
// directory's holder creates a token; another process waits for that a moment.
func (b *Backend) token(ctx context.Context, name string) (string, error) {
	file := filepath.Join(b.cfg.Places.Data, name)
	data, err := os.ReadFile(file)
	for tries := 40; b.lock == nil && err != nil && tries > 0; tries-- {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		data, err = os.ReadFile(file)
	}
	if err == nil && len(strings.TrimSpace(string(data))) >= 32 {
		return strings.TrimSpace(string(data)), nil
	}
	if err != nil && (b.lock == nil || !errors.Is(err, fs.ErrNotExist)) {
		return "", fmt.Errorf("the token cannot be read: %w", err)
	}
	token := secret()
	return token, store.WriteFile(file, []byte(token+"\n"), 0o600)
}

func secret() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

// codes are one-time codes for browsers.
type codes struct {
	mu   sync.Mutex
	good map[string]time.Time // expiry by code
}

const codeLife = time.Minute

func (c *codes) make() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.good == nil {
		c.good = map[string]time.Time{}
	}
	now := time.Now()
	for code, until := range c.good {
		if now.After(until) {
			delete(c.good, code)
		}
	}
	code := secret()
	c.good[code] = now.Add(codeLife)
	return code
}

func (c *codes) take(code string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.good[code]
	delete(c.good, code)
	return ok && time.Now().Before(until)
}
