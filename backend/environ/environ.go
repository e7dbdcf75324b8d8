// Package environ hides how the environment is found that agents, and the programs that install agents, are started in: which variables it
// has, which programs are on its PATH, and by which proxy it reaches the network.
//
// With Config.LoginShell the environment is Deskhand's own joined with that of the person's login shell, which is read once in the
// background (see [Environment.Look]); PATH ends with the directories that the usual installers use. Deskhand's variables win when Deskhand
// was started from a terminal, those of the shell when Deskhand was started from a desktop. A shell that hangs, fails or is of an unknown
// kind costs its time-out once, and leaves Deskhand's own environment.
package environ

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"

	"deskhand/backend/proxy"
)

// Config is the configuration of an Environment.
type Config struct {
	Environ    []string      // of this process
	LoginShell bool          // adds the environment of the person's login shell, and the known install directories
	Desktop    bool          // Deskhand was started from a desktop, whose environment no person has set up: variables of the login shell win
	Self       string        // Deskhand's own program, which prints its environment for a shell
	Patience   time.Duration // how long the login shell may take; 0 means 10 s
	Logger     *slog.Logger
	// Changing is called with a change of the environment, and must call it.
	Changing func(change func())
	// Show lists the login shell among the processes of the program until hide is called.
	Show func(file string, pid int) (hide func())
}

// Environment is the environment of agents. Its methods may be called concurrently.
type Environment struct {
	cfg  Config
	now  atomic.Pointer[Surroundings]
	work sync.WaitGroup
	life context.Context //nolint:containedctx // ends with Close, and every process of the login shell with it
	end  context.CancelFunc

	mu      sync.Mutex // protects the fields below
	closed  bool
	reading *reading // the last reading of the login shell
}

// Open returns the environment without that of a login shell, and starts nothing; see Look.
func Open(cfg Config) *Environment {
	e := &Environment{cfg: cfg}
	e.life, e.end = context.WithCancel(context.Background())
	e.now.Store(e.own())
	return e
}

// Close ends the login shell, and waits until all its processes are gone.
func (e *Environment) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.end()
	e.work.Wait()
}

// Directory is a directory in which programs are looked up, and the source that named the directory.
type Directory struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

func (d Directory) String() string { return d.Path + " (" + d.Source + ")" }

// Surroundings is the environment in which agents, node and npm are found and started.
type Surroundings struct {
	Shell       string        // the login shell that was asked; "" = none
	Took        time.Duration // how long the shell took
	Problem     string        // why the shell gave no environment
	Directories []Directory   // absolute directories of PATH, each once, then the known install directories
	environ     []string
	path        []string // PATH, in its order
}

const ownPath = "PATH of Deskhand"

// own returns the surroundings without a login shell.
func (e *Environment) own() *Surroundings {
	s := &Surroundings{environ: e.cfg.Environ}
	s.add(ownPath, Lookup(e.cfg.Environ, "PATH"))
	if e.cfg.LoginShell {
		s.complete()
	}
	return s
}

// merged returns the surroundings with the environment of the login shell. Where both define a variable, Deskhand's value wins when started
// from a terminal, where the person has just set the variable, and the shell's value wins when started from a desktop.
func (e *Environment) merged(file string, shell []string) *Surroundings {
	first, then := e.cfg.Environ, shell
	firstPath, thenPath := ownPath, "PATH of the login shell "+file
	if e.cfg.Desktop {
		first, then, firstPath, thenPath = then, first, thenPath, firstPath
	}
	s := &Surroundings{environ: withDefaults(first, then)}
	s.add(firstPath, Lookup(first, "PATH"))
	s.add(thenPath, Lookup(then, "PATH"))
	s.complete()
	return s
}

// add adds the directories of a PATH. Programs are not looked up in a relative directory, which would depend on where Deskhand was started;
// for the agents the relative directory stays in PATH: people mean their working directory.
func (s *Surroundings) add(source, path string) {
	for _, dir := range filepath.SplitList(path) {
		if dir != "" {
			dir = filepath.Clean(dir)
		}
		if dir == "" || slices.Contains(s.path, dir) {
			continue
		}
		s.path = append(s.path, dir)
		if filepath.IsAbs(dir) {
			s.Directories = append(s.Directories, Directory{dir, source})
		}
	}
}

// complete adds the known install directories that exist, and sets PATH to all of them, so that agents find the same programs as Deskhand.
func (s *Surroundings) complete() {
	for _, p := range knownPlaces(s.environ) {
		s.add("known place of "+p.Source, p.Path)
	}
	environ := slices.DeleteFunc(slices.Clone(s.environ), func(kv string) bool { return sameVariable(nameOf(kv), "PATH") })
	s.environ = append(environ, "PATH="+strings.Join(s.path, string(filepath.ListSeparator)))
}

// reading is a reading of the login shell.
type reading struct{ done chan struct{} }

// Look reads the login shell in the background. Until the shell has answered or timed out, Settle waits, and so do Environ, Programs and
// PersonShell.
func (e *Environment) Look() { e.reread(true) }

// reread starts a reading and returns it. A running reading is returned instead, and so is a finished reading unless fresh is set.
func (e *Environment) reread(fresh bool) *reading {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.reading; r != nil {
		select {
		case <-r.done:
			if !fresh {
				return r
			}
		default:
			return r // a running reading is fresh enough
		}
	}
	r := &reading{make(chan struct{})}
	if !e.cfg.LoginShell || !e.backgroundLocked(func() { e.read(r) }) {
		close(r.done)
	}
	e.reading = r
	return r
}

// Settle waits until the surroundings are known; fresh has the login shell read anew. The wait is limited by the shell's time-out.
func (e *Environment) Settle(ctx context.Context, fresh bool) {
	select {
	case <-e.reread(fresh).done:
	case <-ctx.Done():
	}
}

// read asks the shell, and stores its environment within a call of Config.Changing.
func (e *Environment) read(r *reading) {
	begun := time.Now()
	file, environ, err := e.askShell()
	if e.life.Err() != nil {
		close(r.done)
		return
	}
	e.cfg.Changing(func() {
		e.keep(file, environ, err, time.Since(begun))
		close(r.done)
	})
}

func (e *Environment) keep(file string, environ []string, err error, took time.Duration) {
	var now *Surroundings
	if err != nil {
		now = e.own()
		now.Problem = "the login shell gave no environment: " + err.Error()
		e.cfg.Logger.Warn("the login shell gave no environment", "shell", file, "took", took, "error", err)
	} else {
		now = e.merged(file, environ)
		e.cfg.Logger.Info("the login shell was read", "shell", file, "took", took, "variables", len(environ))
	}
	now.Shell, now.Took = file, took
	if before := e.now.Load(); err != nil && before.Shell != "" && before.Problem == "" {
		return // the earlier environment is better than none
	}
	e.now.Store(now)
}

func (e *Environment) askShell() (file string, environ []string, err error) {
	if file, err = loginShell(e.cfg.Environ); err != nil {
		return file, nil, err
	}
	s := shell{
		file: file, environ: With(e.cfg.Environ, nil), print: environmentPrinter(runtime.GOOS, e.cfg.Self), patience: cmp.Or(e.cfg.Patience, shellPatience), life: e.life.Done(), work: e.background, show: e.cfg.Show,
	}
	environ, err = s.ask(e.life)
	return file, environ, err
}

// background runs f in a goroutine that Close waits for, and reports whether f runs: after Close f does not. f must end when e.life does.
func (e *Environment) background(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.backgroundLocked(f)
}

// backgroundLocked is background for a caller that holds e.mu.
func (e *Environment) backgroundLocked(f func()) bool {
	if !e.closed {
		e.work.Go(f)
	}
	return !e.closed
}

// Surroundings returns the environment in which agents are found.
func (e *Environment) Surroundings() Surroundings {
	s := *e.now.Load()
	s.Directories = slices.Clone(s.Directories)
	return s
}

// NotFound returns the error for a program that is not on PATH.
func (e *Environment) NotFound(what string) error {
	if problem := e.now.Load().Problem; problem != "" {
		return fmt.Errorf("%s is not on PATH (%s)", what, problem)
	}
	return fmt.Errorf("%s is not on PATH", what)
}

// Variable returns a variable of the environment, or "".
func (e *Environment) Variable(name string) string { return Lookup(e.now.Load().environ, name) }

// Proxy chooses the proxy of a request, as http.Transport does.
type Proxy func(*http.Request) (*url.URL, error)

// Proxy returns the Proxy of the agents' environment, which npm and uv get too. Deskhand's own environment would not do: when started
// from a desktop, that environment lacks the variables that the person's shell sets.
func (e *Environment) Proxy() Proxy {
	env := e.With(nil)
	either := func(name string) string { return cmp.Or(Lookup(env, name), Lookup(env, strings.ToLower(name))) }
	p := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	choose := p.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

// Environ returns the environment that agents are started in, before an agent's own variables. Environ waits for the login shell.
func (e *Environment) Environ(ctx context.Context) []string {
	e.Settle(ctx, false)
	return e.With(nil)
}

// With returns the environment of an agent: without Deskhand's private variables, plus the agent's own. With does not wait for the login
// shell.
func (e *Environment) With(own map[string]string) []string {
	return ExceptLoopback(With(e.now.Load().environ, own))
}

// PersonShell returns the command of the person's shell for a terminal: in the environment that agents get, so without Deskhand's private
// variables, and without the values that are stored for agents. Variables that the person's own files export stay.
func (e *Environment) PersonShell(ctx context.Context) (proxy.Command, error) {
	file, err := loginShell(e.cfg.Environ)
	if err != nil {
		return proxy.Command{}, err
	}
	cmd := proxy.Command{Path: file, Env: OnTerminal(e.Environ(ctx))}
	if Lookup(cmd.Env, "SHELL") == "" {
		cmd.Env = append(cmd.Env, "SHELL="+file)
	}
	// macOS terminals start login shells. Elsewhere the environment already has the variables of login files, and aliases are in the other
	// files, which some shells read only when they are no login shells.
	if _, _, foreign := shellOptions(file); foreign == nil && runtime.GOOS == "darwin" {
		cmd.Args = []string{"-l"}
	}
	return cmd, nil
}
