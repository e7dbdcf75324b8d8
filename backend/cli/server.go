package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"deskhand/backend"
)

// defaultPort is the port of a Deskhand that was told no other; serverCommand.Port repeats it, since a tag is no expression.
const defaultPort = 2468

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
	frugal()
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
	frugal()
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

type demoCommand struct {
	Login bool `hidden:"" help:"Sign in at this terminal, where the agent's environment asks for that."`
}

// Run is the demo agent on standard input and output.
func (demoCommand) Run(p *Program) error {
	frugal()
	return backend.DemoAgent(context.Background(), p.Stdin, p.Stdout)
}

type watchdogCommand struct{}

// Run is the watchdog process, which ends the agents when Deskhand is killed.
func (watchdogCommand) Run(p *Program) error {
	frugal()
	return backend.Watchdog(p.Stdin)
}

// frugal lets a program that stays take less memory: a garbage collection starts when the heap has grown by half, where Go waits until the
// heap has doubled. With three streams and a hundred conversations that is a fifth less memory, for a tenth more processor time during the
// streams. A command that ends soon would spend a seventh of its time on three collections before it begins.
func frugal() {
	if _, told := os.LookupEnv("GOGC"); !told {
		debug.SetGCPercent(50)
	}
}

type environCommand struct{}

// Run prints the environment that a login shell gave this process.
func (environCommand) Run(p *Program) error { return backend.PrintEnvironment(p.Stdout) }
