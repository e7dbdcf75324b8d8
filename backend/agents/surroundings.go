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

// Directory is one that programs are looked for in, and where we have it from.
type Directory struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

func (d Directory) String() string { return d.Path + " (" + d.Source + ")" }

// Surroundings are the environment that agents, node and npm are found with and started in.
type Surroundings struct {
	Shell       string        // the login shell that was asked; "" when none was
	Took        time.Duration // how long that took
	Problem     string        // why it gave nothing
	Directories []Directory   // of PATH, absolute ones, each once, then the known install places
	environ     []string
	path        []string // of PATH, in its order
}

const ownPath = "PATH of Deskhand"

// own are the surroundings without a login shell.
func (c *Catalogue) own() *Surroundings {
	s := &Surroundings{environ: c.cfg.Environ}
	s.add(ownPath, lookup(c.cfg.Environ, "PATH"))
	if c.cfg.LoginShell {
		s.complete()
	}
	return s
}

// merged are the surroundings with what the login shell gave. Where both have a variable, that of a terminal is what the person has
// just set, and that of a desktop is what the person's shell replaces.
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

// withDefaults adds to an environment what it lacks of another.
func withDefaults(environ, defaults []string) []string {
	all := slices.Clone(environ)
	for _, kv := range defaults {
		if !slices.ContainsFunc(environ, func(own string) bool { return sameVariable(nameOf(own), nameOf(kv)) }) {
			all = append(all, kv)
		}
	}
	return all
}

// add adds the directories of a PATH. Programs are not looked for in a relative one, which would depend on where we were started; for
// the agents it stays where it is: people mean the directory that they work in.
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

// complete adds the install places that are there, and makes all of it PATH, so that what is found finds the same.
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

// reading is one reading of the login shell.
type reading struct{ done chan struct{} }

// Look has the login shell read in the background. Until it has answered or its time is up, those wait who need an agent: Command,
// Ensure, Info, Infos, Install and Test. List, All and Agent do not: a window that opens would wait with them. Watch is called for each
// agent that the answer changes, as at the end of an installation.
func (c *Catalogue) Look() { c.reread(true) }

// reread starts a reading, unless one is under way, or there was one and it need not be new.
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
			return r // it is as new as can be
		}
	}
	r := &reading{make(chan struct{})}
	if !c.cfg.LoginShell || !c.backgroundLocked(func() { c.read(r) }) {
		close(r.done)
	}
	c.reading = r
	return r
}

// Settle waits until the surroundings are known; a fresh look has the login shell read anew. It takes no longer than the shell may.
func (c *Catalogue) Settle(ctx context.Context, fresh bool) {
	select {
	case <-c.reread(fresh).done:
	case <-ctx.Done():
	}
}

// read asks the shell, keeps what it gave, and has those told who watch of the agents that this changes.
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
		return // what it gave before is better than nothing
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

// background is backgroundLocked for those who do not hold the lock.
func (c *Catalogue) background(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backgroundLocked(f)
}

// Surroundings tells with what agents are found.
func (c *Catalogue) Surroundings() Surroundings {
	s := *c.around.Load()
	s.Directories = slices.Clone(s.Directories)
	return s
}

// path is the directories that programs are looked for in.
func (c *Catalogue) path() []string {
	var dirs []string
	for _, d := range c.around.Load().Directories {
		dirs = append(dirs, d.Path)
	}
	return dirs
}

// searched tells of the same directories where we have them from, and why there are not more.
func (c *Catalogue) searched() []string {
	var list []string
	for _, d := range c.around.Load().Directories {
		list = append(list, d.String())
	}
	return list
}

// notFound is why a program was not found.
func (c *Catalogue) notFound(what string) error {
	if problem := c.around.Load().Problem; problem != "" {
		return fmt.Errorf("%s is not on PATH (%s)", what, problem)
	}
	return fmt.Errorf("%s is not on PATH", what)
}

// variable is the value of an environment variable of the agents.
func (c *Catalogue) variable(name string) string { return lookup(c.around.Load().environ, name) }

// proxying tells which proxy a request goes through.
type proxying func(*http.Request) (*url.URL, error)

// proxied is the proxying of the environment of agents, which npm and uv have too. Our own environment would not do: started from a
// desktop, it lacks what the person's shell sets up.
func (c *Catalogue) proxied() proxying {
	env := c.environ(nil)
	either := func(name string) string { return cmp.Or(lookup(env, name), lookup(env, strings.ToLower(name))) }
	p := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	choose := p.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

// lookup is the value of a variable; the last one counts, as for a process.
func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if n, v, ok := strings.Cut(kv, "="); ok && sameVariable(n, name) {
			return v
		}
	}
	return ""
}

// Environ is the environment that agents are started in, before an entry's own. It waits for the login shell, like Command.
func (c *Catalogue) Environ(ctx context.Context) []string {
	c.Settle(ctx, false)
	return c.environ(nil)
}

// environ is that of the agents: without what is only for us, plus the entry's own.
func (c *Catalogue) environ(own map[string]string) []string {
	return exceptLoopback(filtered(c.around.Load().environ, own))
}

// proxies are the variables by which programs are told of a proxy, in capital letters.
func proxies() []string { return []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} }

// loopback are the names and addresses of this machine itself.
func loopback() []string { return []string{"127.0.0.1", "localhost", "::1"} }

// exceptLoopback adds this machine to what goes around a proxy, where the environment names one: an agent is told of Deskhand's own tools, and of
// servers of the person's, at addresses of this machine, and would send what opens them to the proxy. Both spellings get what either has, since
// some programs read one of them and some the other. It may be done twice.
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

// ours are the variables that hold our token or may hold a password, or belong to what started us: a service, or an agent, which refuses to start in itself.
func ours(name string) bool {
	switch name {
	case homeVariable, "DESKHAND_TOKEN", "DESKHAND_DATA_DIR", "DESKHAND_CATALOGUE_URL", "SANDBOX_AGENT_TOKEN", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID",
		"LISTEN_FDNAMES", "INVOCATION_ID", "JOURNAL_STREAM", "WATCHDOG_USEC", "WATCHDOG_PID", "SYSTEMD_EXEC_PID", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT":
		return true
	}
	return false
}
