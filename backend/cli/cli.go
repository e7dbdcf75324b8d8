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
	"slices"
	"strings"
	"syscall"
	"time"

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

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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
		Places: places, Version: p.Version, Kind: kind, Lasting: kind != "command", Self: self, Demo: os.Getenv(demoVariable), Assets: p.Assets, Logger: logger,
		LoginShell: os.Getenv(shellVariable) != "off", Desktop: kind == "window" && !p.onTerminal(), CatalogueURL: catalogueURL(places),
		Keyring: os.Getenv(keyringVariable) != "off", LeastIdle: ofTests("DESKHAND_LEAST_IDLE"), HoldPrompt: ofTests("DESKHAND_HOLD_PROMPT"),
	}, log, nil
}

// ofTests returns a duration of which tests ask for another one by a variable; 0, which means the usual one, where there is none, or none that is
// valid.
func ofTests(variable string) time.Duration {
	d, _ := time.ParseDuration(os.Getenv(variable))
	return max(d, 0)
}

// shellVariable set to off makes Deskhand find and start agents with its own environment, without asking a login shell.
const shellVariable = "DESKHAND_LOGIN_SHELL"

// keyringVariable set to off keeps the values entered for agents in a file instead of the system's keyring.
const keyringVariable = "DESKHAND_KEYRING"

// demoVariable names the program that is the demo agent. Tests set it to the agent of package agenttest, which has words for tests.
const demoVariable = "DESKHAND_DEMO_AGENT"

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
