// Package cli holds every command of the program. A command parses the command line, uses a backend or the running app, and turns the outcome
// into words and an exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

// Exit codes of every command; exitCodes describes them.
const (
	exitOK       = 0
	exitError    = 1
	exitUsage    = 2
	exitRefused  = 3
	exitCancel   = 4
	exitApproval = 5
	exitLogin    = 6
	exitMissing  = 7
	exitUnread   = 141 // the code that a shell reports for a program ended by a closed pipe
)

// Program is the environment of a command: its arguments, its streams and its embedded files.
type Program struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Version string
	Assets  fs.FS
	// Window opens the window on a backend and returns when the window is closed. Window is nil in the program without a window.
	Window func(ctx context.Context, w Window) error

	raw bool // set by --raw: print changes no character unless a terminal reads the output
}

// Window is the input of Program.Window.
type Window struct {
	Backend  *backend.Host
	Places   datadir.Paths
	Assets   fs.FS
	Logger   *slog.Logger
	Activate <-chan struct{} // receives a value each time the program is started again
}

type commands struct {
	Open      openCommand     `cmd:"" default:"withargs" help:"Open the app (default)."`
	Server    serverCommand   `cmd:"" help:"Serve the API, and the app to a browser, on this machine."`
	Prompt    promptCommand   `cmd:"" help:"Run one turn of an agent from the terminal."`
	Agents    agentsCommand   `cmd:"" help:"List, install, update and remove agents."`
	Doctor    doctorCommand   `cmd:"" help:"Start agents for a test, and tell what was found and what to do."`
	Login     loginCommand    `cmd:"" help:"Sign in to an agent."`
	Logout    logoutCommand   `cmd:"" help:"Sign out of an agent, and forget the values that are kept for it."`
	Ps        psCommand       `cmd:"" help:"Show the agents that run, for whom, and what they take of the machine."`
	Sessions  sessionsCommand `cmd:"" help:"List, show, search and export conversations."`
	Inbox     inboxCommand    `cmd:"" help:"List and answer what waits for a person."`
	Trust     trustCommand    `cmd:"" help:"Show, approve and revoke what a directory starts beside an agent."`
	Places    placesCommand   `cmd:"" help:"List, add, check and remove the runtimes on other machines that agents can run in."`
	Discord   discordCommand  `cmd:"" help:"Set up Discord, where the same conversations can be shown and spoken in, and bind channels to them."`
	Tail      tailCommand     `cmd:"" help:"Show what is said in a conversation, as it is said."`
	Data      dataCommand     `cmd:"" help:"Tell where the data is, and use another directory."`
	Verify    verifyCommand   `cmd:"" help:"Compare what is kept with its journal, and repair it."`
	Link      linkCommand     `cmd:"" help:"Print a fresh one-time link for a browser to the running server or app."`
	Tokens    tokensCommand   `cmd:"" help:"Make and revoke tokens for the API on this machine, and show who called."`
	Version   versionCommand  `cmd:"" help:"Print the version, and what the program was built from."`
	Licenses  licensesCommand `cmd:"" help:"Print the licences of the program and of all that it is made of."`
	Agent     agentCommand    `cmd:"" help:"Be an agent that plays a recorded conversation."`
	ACP       acpCommand      `cmd:"" name:"acp" help:"Be an agent for an editor: its conversations are Deskhand's."`
	DemoAgent demoCommand     `cmd:"" hidden:""`
	Watchdog  watchdogCommand `cmd:"" hidden:""`
	Environ   environCommand  `cmd:"" name:"environment" hidden:""`
	MCP       mcpCommand      `cmd:"" name:"mcp" hidden:""`
	OpenURL   openURLCommand  `cmd:"" name:"open-url" hidden:""`
}

// common holds the flags of every command that uses data.
type common struct {
	DataDir string `name:"data-dir" env:"DESKHAND_DATA_DIR" placeholder:"DIR" help:"Keep everything in this directory instead of the usual places."`
	Verbose bool   `help:"Write more to the log."`
}

// failure is an error with an exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Run runs the command and returns its exit code.
func (p *Program) Run() int {
	// A write to a closed pipe must fail, and must not end this process by SIGPIPE: turns of other commands or of an editor may run here.
	// SIGPIPE is caught and not ignored, since child processes would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var cmds commands
	exited := -1
	parser, err := kong.New(&cmds, kong.Name("deskhand"), kong.Description("The agent client that cannot lose your work."),
		kong.Writers(p.Stdout, p.Stderr), kong.Exit(func(code int) { exited = code }), kong.UsageOnError(), kong.Vars{"replay_faults": replayFaults()})
	if err != nil {
		return p.fail(err)
	}
	ctx, err := parser.Parse(p.Args)
	if exited >= 0 {
		return exited // kong has answered --help
	}
	if p.unread(err) {
		return exitUnread
	}
	if err != nil {
		parser.Errorf("%s", err)
		p.say("Run \"%s --help\" to see how it is used.\n", p.misused(err))
		return exitUsage
	}
	if err := ctx.Run(p); err != nil {
		return p.fail(err)
	}
	return exitOK
}

// misused names the command whose arguments are wrong, as far as the parser understood the command line.
func (p *Program) misused(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context == nil || wrong.Context.Selected() == nil {
		return "deskhand"
	}
	command := wrong.Context.Selected()
	if command.Parent.DefaultCmd == command && !slices.Contains(p.Args, command.Name) {
		command = command.Parent // without a subcommand, the help of the parent applies
	}
	return command.FullPath()
}

func (p *Program) fail(err error) int {
	if p.unread(err) {
		return exitUnread
	}
	code := exitError
	if f, ok := errors.AsType[*failure](err); ok {
		code = f.code
	}
	if text := err.Error(); text != "" {
		p.say("deskhand: %s\n", strings.ReplaceAll(text, "\r\n", "\n")) // a program's output on Windows, for example, has such line ends
	}
	return code
}

// unread reports whether err says only that nobody reads this program's output any more, as when a pager was quit or head has read enough. Any
// other broken pipe or socket is an error.
func (p *Program) unread(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !p.unread(err) })
	}
	failed, ok := errors.AsType[*fs.PathError](err)
	out, isFile := p.Stdout.(*os.File)
	return ok && isFile && failed.Path == out.Name() && errors.Is(failed, syscall.EPIPE)
}

// say writes to standard error for people. say makes control characters visible, since many messages quote an agent.
func (p *Program) say(format string, args ...any) {
	_, _ = io.WriteString(p.Stderr, visible(fmt.Sprintf(format, args...))) // a failed write to stderr can be reported nowhere
}

// print writes to standard output. Without --raw, print escapes control characters for a pipe too, since most pipes end at a terminal.
func (p *Program) print(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if !p.raw || isTerminal(p.Stdout) {
		text = visible(text)
	}
	_, err := io.WriteString(p.Stdout, text)
	return err
}

// interruptible is a context that SIGINT, SIGTERM and SIGHUP cancel.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// config reads the settings of a backend and opens its log.
func (p *Program) config(c common, kind string) (backend.Config, io.Closer, error) {
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return backend.Config{}, nil, err
	}
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	logger, log, err := places.OpenLog(level)
	if err != nil {
		return backend.Config{}, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return backend.Config{}, nil, errors.Join(err, log.Close())
	}
	return backend.Config{
		Places: places, Version: p.Version, Kind: kind, Lasting: kind != "command", Self: self, Assets: p.Assets, Logger: logger,
		LoginShell: os.Getenv(shellVariable) != "off", Desktop: kind == "window" && !p.onTerminal(), CatalogueURL: catalogueURL(places),
		Keyring: os.Getenv(keyringVariable) != "off", LeastIdle: leastIdle(),
	}, log, nil
}

// leastIdle is the idle time after which an agent may sleep. Tests shorten the time by DESKHAND_LEAST_IDLE.
func leastIdle() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("DESKHAND_LEAST_IDLE")) // an invalid duration is 0, which means the usual time
	return max(d, 0)
}

// shellVariable set to off makes Deskhand find and start agents with its own environment, without asking a login shell.
const shellVariable = "DESKHAND_LOGIN_SHELL"

// keyringVariable set to off keeps the values entered for agents in a file instead of the system's keyring.
const keyringVariable = "DESKHAND_KEYRING"

// catalogueURL is the address of the agents' registry: the public registry, unless the environment or the settings name another address or
// none.
func catalogueURL(places datadir.Paths) string {
	if u, ok := os.LookupEnv("DESKHAND_CATALOGUE_URL"); ok {
		return u
	}
	if u := backend.CatalogueURL(places); u != "" {
		return u
	}
	return "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
}

// onTerminal reports whether one of the three standard streams is a terminal. A desktop starts programs without a terminal, and so do services
// and scripts, which give their own environment and must not be taken for a desktop.
func (p *Program) onTerminal() bool {
	for _, stream := range []any{p.Stdin, p.Stdout, p.Stderr} {
		if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return true
		}
	}
	return false
}

type demoCommand struct {
	Login bool `hidden:"" help:"Sign in at this terminal, where the agent's environment asks for that."`
}

// Run is the demo agent on standard input and output.
func (demoCommand) Run(p *Program) error {
	return backend.DemoAgent(context.Background(), p.Stdin, p.Stdout)
}

type watchdogCommand struct{}

// Run is the watchdog process, which ends the agents when Deskhand is killed.
func (watchdogCommand) Run(p *Program) error { return backend.Watchdog(p.Stdin) }

type environCommand struct{}

// Run prints the environment that a login shell gave this process.
func (environCommand) Run(p *Program) error { return backend.PrintEnvironment(p.Stdout) }

type serverCommand struct {
	common
	Host           string        `short:"H" default:"127.0.0.1" help:"Address to listen on."`
	Port           int           `short:"p" default:"2468" help:"Port to listen on; 0 = any free one."`
	Token          string        `short:"t" xor:"token" help:"Token of /v1 and /acp, 16 characters or more, instead of the one in the data directory. Every user of this machine can read it in the list of processes: DESKHAND_TOKEN and --token-file keep it from them."`
	TokenFile      string        `xor:"token" placeholder:"FILE" help:"Take that token from a file. Without either flag it is taken from the variable DESKHAND_TOKEN, where that is set."`
	NoToken        bool          `xor:"token" help:"Ask for no token on /v1 (this machine only)."`
	Root           []string      `placeholder:"DIR" help:"Directory that the API may work in; repeatable. Default: your home."`
	AllowHost      []string      `placeholder:"HOST:PORT" help:"Accept this Host as well; repeatable."`
	AllowOrigin    []string      `name:"cors-allow-origin" short:"O" placeholder:"ORIGIN" help:"Let web pages of this origin call /v1; repeatable."`
	RequestTimeout time.Duration `help:"How long a request to an agent may take; 0 = as long as the agent lives."`
	MaxUpload      int64         `default:"2147483648" placeholder:"BYTES" help:"How long an uploaded file may be."`
	Preinstalled   bool          `name:"require-preinstall" help:"Never install an agent that a request names; it must be there."`
}

// Run serves until a signal ends the process.
func (s *serverCommand) Run(p *Program) error {
	cfg, log, err := p.config(s.common, "server")
	if err != nil {
		return err
	}
	defer log.Close()
	if cfg.Token, err = s.token(); err != nil {
		return &failure{exitUsage, err}
	}
	cfg.NoToken, cfg.Roots = s.NoToken, s.Root
	cfg.AllowHosts, cfg.AllowOrigins, cfg.RequestTimeout = s.AllowHost, s.AllowOrigin, s.RequestTimeout
	if s.MaxUpload <= 0 {
		return &failure{exitUsage, errors.New("--max-upload must be greater than 0")}
	}
	cfg.MaxUpload, cfg.Preinstalled = s.MaxUpload, s.Preinstalled
	return p.serve(cfg, s.Host, s.Port)
}

// serve runs a backend for browsers and programs until a signal ends the process.
func (p *Program) serve(cfg backend.Config, host string, port int) (err error) {
	ctx, stop := interruptible()
	defer stop()
	b, err := backend.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	p.sayReadOnly(b)
	p.sayAgentsFile(b)
	l, err := b.Listen(ctx, host, port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w\nAnother program has this port. Choose another with --port, or --port 0 for any free one", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if held := b.Alone(); held != nil {
		p.say("%s.\nOnly the API under /v1 is served here, without the app and its sessions.\n", held)
		if err := p.print("%s\n", l.URL); err != nil {
			return err
		}
	} else {
		url, err := b.Link()
		if err != nil {
			return err
		}
		p.say("Deskhand is at this address. The link works once, within a minute; `deskhand link` prints another.\n")
		if err := p.print("%s\n", url); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

type linkCommand struct{ common }

// Run asks the running program for a link.
func (l *linkCommand) Run(p *Program) error {
	return withRunning(l.common, func(ctx context.Context, api *api) error {
		var link struct {
			URL string `json:"url"`
		}
		if err := api.call(ctx, "POST", "links", nil, &link); err != nil {
			return unanswered(ctx, err)
		}
		return p.print("%s\n", link.URL)
	})
}

type openCommand struct{ common }

// Run opens the window of this program, or starts the program with the window that lies beside this program. Without a window or a display,
// Run serves a browser.
func (o *openCommand) Run(p *Program) error {
	cfg, log, err := p.config(o.common, "window")
	if err != nil {
		return err
	}
	defer log.Close()
	if p.Window != nil {
		return p.window(cfg)
	}
	program := filepath.Join(filepath.Dir(cfg.Self), windowProgram)
	if _, err := os.Stat(program); err == nil && hasDisplay() {
		return become(program, p.Args)
	}
	why := "there is no display"
	if hasDisplay() {
		why = windowProgram + " is not beside this program"
	}
	p.say("The window cannot be opened: %s. Serving the app to a browser instead.\n", why)
	cfg.Kind = "server"
	err = p.serve(cfg, "127.0.0.1", defaultPort)
	if errors.Is(err, syscall.EADDRINUSE) {
		p.say("Port %d is taken; using a free one.\n", defaultPort)
		return p.serve(cfg, "127.0.0.1", 0)
	}
	return err
}

const defaultPort = 2468

// window opens the window of this program. When another process has a window on the same data, window raises that window instead.
func (p *Program) window(cfg backend.Config) (err error) {
	if !hasDisplay() {
		return errors.New("there is no display; `deskhand server` serves the app to a browser")
	}
	ctx, stop := interruptible()
	defer stop()
	again := make(chan struct{}, 1)
	cfg.Activate = func() {
		select {
		case again <- struct{}{}:
		default: // a pending value is enough
		}
	}
	h, err := backend.OpenHost(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if held := h.Alone(); held != nil {
		api, err := dial(ctx, cfg.Places)
		if err == nil {
			err = api.call(ctx, "POST", "activate", nil, nil)
		}
		if err != nil {
			return fmt.Errorf("%w; its window cannot be brought forward: %w", held, err)
		}
		p.say("%s. Its window was brought forward.\n", held)
		return nil
	}
	h.OpenLocal(ctx, defaultPort)
	return p.Window(ctx, Window{Backend: h, Places: cfg.Places, Assets: h.Assets(), Logger: cfg.Logger, Activate: again})
}
