package agents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

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
func (c *Catalogue) own() *Surroundings {
	s := &Surroundings{environ: c.cfg.Environ}
	s.add(ownPath, lookup(c.cfg.Environ, "PATH"))
	if c.cfg.LoginShell {
		s.complete()
	}
	return s
}

// merged returns the surroundings with the environment of the login shell. Where both define a variable, Deskhand's value wins when started
// from a terminal, where the person has just set the variable, and the shell's value wins when started from a desktop.
func (c *Catalogue) merged(file string, shell []string) *Surroundings {
	first, then := c.cfg.Environ, shell
	firstPath, thenPath := ownPath, "PATH of the login shell "+file
	if c.cfg.Desktop {
		first, then, firstPath, thenPath = then, first, thenPath, firstPath
	}
	s := &Surroundings{environ: withDefaults(first, then)}
	s.add(firstPath, lookup(first, "PATH"))
	s.add(thenPath, lookup(then, "PATH"))
	s.complete()
	return s
}

// withDefaults adds to environ the variables of defaults that environ lacks.
func withDefaults(environ, defaults []string) []string {
	all := slices.Clone(environ)
	for _, kv := range defaults {
		if !slices.ContainsFunc(environ, func(own string) bool { return sameVariable(nameOf(own), nameOf(kv)) }) {
			all = append(all, kv)
		}
	}
	return all
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

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

// reading is a reading of the login shell.
type reading struct{ done chan struct{} }

// Look reads the login shell in the background. Until the shell has answered or timed out, the calls that need an agent wait: Command,
// Ensure, Info, Infos, Install and Test. List, All and Agent do not, since an opening window would wait with them. For each agent that the
// answer changes, the callback of Watch is called as at the end of an installation.
func (c *Catalogue) Look() { c.reread(true) }

// reread starts a reading and returns it. A running reading is returned instead, and so is a finished reading unless fresh is set.
func (c *Catalogue) reread(fresh bool) *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.reading; r != nil {
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
	if !c.cfg.LoginShell || !c.backgroundLocked(func() { c.read(r) }) {
		close(r.done)
	}
	c.reading = r
	return r
}

// Settle waits until the surroundings are known; fresh has the login shell read anew. The wait is limited by the shell's time-out.
func (c *Catalogue) Settle(ctx context.Context, fresh bool) {
	select {
	case <-c.reread(fresh).done:
	case <-ctx.Done():
	}
}

// read asks the shell, stores its environment, and reports the agents that this changes to the callback of Watch.
func (c *Catalogue) read(r *reading) {
	begun := time.Now()
	file, environ, err := c.askShell()
	if c.life.Err() != nil {
		close(r.done)
		return
	}
	c.changing(func() {
		c.keep(file, environ, err, time.Since(begun))
		close(r.done)
	})
}

func (c *Catalogue) keep(file string, environ []string, err error, took time.Duration) {
	var now *Surroundings
	if err != nil {
		now = c.own()
		now.Problem = "the login shell gave no environment: " + err.Error()
		c.cfg.Logger.Warn("the login shell gave no environment", "shell", file, "took", took, "error", err)
	} else {
		now = c.merged(file, environ)
		c.cfg.Logger.Info("the login shell was read", "shell", file, "took", took, "variables", len(environ))
	}
	now.Shell, now.Took = file, took
	if before := c.around.Load(); err != nil && before.Shell != "" && before.Problem == "" {
		return // the earlier environment is better than none
	}
	c.around.Store(now)
}

func (c *Catalogue) askShell() (file string, environ []string, err error) {
	if file, err = loginShell(c.cfg.Environ); err != nil {
		return file, nil, err
	}
	s := shell{
		file: file, environ: filtered(c.cfg.Environ, nil), print: environmentPrinter(runtime.GOOS, c.cfg.Self), patience: cmp.Or(c.cfg.ShellPatience, shellPatience), life: c.life.Done(), work: c.background, show: c.show,
	}
	environ, err = s.ask(c.life)
	return file, environ, err
}

// background is backgroundLocked for a caller that does not hold the lock.
func (c *Catalogue) background(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backgroundLocked(f)
}

// Surroundings returns the environment in which agents are found.
func (c *Catalogue) Surroundings() Surroundings {
	s := *c.around.Load()
	s.Directories = slices.Clone(s.Directories)
	return s
}

// path returns the directories in which programs are looked up.
func (c *Catalogue) path() []string {
	var dirs []string
	for _, d := range c.around.Load().Directories {
		dirs = append(dirs, d.Path)
	}
	return dirs
}

// searched returns the directories of path with their sources, for people.
func (c *Catalogue) searched() []string {
	var list []string
	for _, d := range c.around.Load().Directories {
		list = append(list, d.String())
	}
	return list
}

// notFound returns the error for a program that is not on PATH.
func (c *Catalogue) notFound(what string) error {
	if problem := c.around.Load().Problem; problem != "" {
		return fmt.Errorf("%s is not on PATH (%s)", what, problem)
	}
	return fmt.Errorf("%s is not on PATH", what)
}

// variable returns a variable of the agents' environment.
func (c *Catalogue) variable(name string) string { return lookup(c.around.Load().environ, name) }

// proxying chooses the proxy of a request.
type proxying func(*http.Request) (*url.URL, error)

// proxied returns the proxying of the agents' environment, which npm and uv get too. Deskhand's own environment would not do: when started
// from a desktop, that environment lacks the variables that the person's shell sets.
func (c *Catalogue) proxied() proxying {
	env := c.environ(nil)
	either := func(name string) string { return cmp.Or(lookup(env, name), lookup(env, strings.ToLower(name))) }
	p := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	choose := p.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

// lookup returns the value of a variable; the last definition counts, as for a process.
func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if n, v, ok := strings.Cut(kv, "="); ok && sameVariable(n, name) {
			return v
		}
	}
	return ""
}

// Environ returns the environment that agents are started in, before an entry's own variables. Like Command, Environ waits for the login
// shell.
func (c *Catalogue) Environ(ctx context.Context) []string {
	c.Settle(ctx, false)
	return c.environ(nil)
}

// environ returns the environment of an agent: without Deskhand's private variables, plus the entry's own.
func (c *Catalogue) environ(own map[string]string) []string {
	return exceptLoopback(filtered(c.around.Load().environ, own))
}

// proxies returns the names of the proxy variables, in capital letters.
func proxies() []string { return []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} }

// loopback returns the names and addresses of this machine.
func loopback() []string { return []string{"127.0.0.1", "localhost", "::1"} }

// exceptLoopback adds this machine to NO_PROXY, where the environment names a proxy: agents are given addresses on this machine, those of
// Deskhand's own tools and of the person's servers, and would send the secrets in those addresses to the proxy. Both spellings get the
// values of either, since some programs read only either. Calling exceptLoopback twice changes nothing more.
func exceptLoopback(env []string) []string {
	either := func(name string) []string { return []string{lookup(env, name), lookup(env, strings.ToLower(name))} }
	if !slices.ContainsFunc(proxies(), func(name string) bool { return strings.Join(either(name), "") != "" }) {
		return env
	}
	var all []string
	for _, list := range append(either("NO_PROXY"), loopback()...) {
		for host := range strings.SplitSeq(list, ",") {
			if host = strings.TrimSpace(host); host != "" && !slices.Contains(all, host) {
				all = append(all, host)
			}
		}
	}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.EqualFold(nameOf(kv), "NO_PROXY") })
	value := "=" + strings.Join(all, ",")
	if sameVariable("NO_PROXY", "no_proxy") {
		return append(env, "NO_PROXY"+value)
	}
	return append(env, "NO_PROXY"+value, "no_proxy"+value)
}

func filtered(environ []string, own map[string]string) []string {
	env := make([]string, 0, len(environ)+len(own))
	for _, kv := range environ {
		name := nameOf(kv)
		if _, replaced := own[name]; replaced || ours(name) {
			continue
		}
		env = append(env, kv)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	return env
}

// ours reports whether a variable holds Deskhand's token or perhaps a password, or belongs to the program that started Deskhand: a service,
// or an agent, which refuses to start in itself.
func ours(name string) bool {
	switch name {
	case homeVariable, "DESKHAND_TOKEN", "DESKHAND_DATA_DIR", "DESKHAND_CATALOGUE_URL", "SANDBOX_AGENT_TOKEN", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID",
		"LISTEN_FDNAMES", "INVOCATION_ID", "JOURNAL_STREAM", "WATCHDOG_USEC", "WATCHDOG_PID", "SYSTEMD_EXEC_PID", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT":
		return true
	}
	return false
}
