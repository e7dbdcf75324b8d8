package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// place is where an agent was found.
type place struct {
	program string   // what people are told: the agent's own file
	node    []string // node and its arguments, when the program is a script for it
	version string   // of one that we installed, and the directory of it
	home    string
	reason  string
}

// argv is the command line with the agent's arguments.
func (p place) argv(args []string) (string, []string) {
	if len(p.node) == 0 {
		return p.program, args
	}
	return p.node[0], slices.Concat(p.node[1:], []string{p.program}, args)
}

var errUnusable = errors.New("what Deskhand installed cannot be used")

// locate finds an agent that can be started.
func (c *Catalogue) locate(e entry) (place, error) {
	at, err := c.find(e)
	if err != nil {
		return place{}, err
	}
	return at, c.lacks(e)
}

// find looks in our own store, then on PATH.
func (c *Catalogue) find(e entry) (place, error) {
	onPath, missing := c.findProgram(e)
	if e.source != OnPath || c.cfg.Dir == "" {
		return onPath, missing
	}
	at, err := c.stored(e)
	switch {
	case err == nil && missing == nil:
		at.reason += "; it goes before " + onPath.program
		return at, nil
	case err == nil:
		return at, nil
	case errors.Is(err, errNoneStored):
		return onPath, missing
	}
	err = fmt.Errorf("%w: %w", errUnusable, err)
	if missing == nil {
		onPath.reason += "; " + err.Error()
		return onPath, nil
	}
	return place{}, err
}

// findProgram looks where the entry says: at a path, or on PATH.
func (c *Catalogue) findProgram(e entry) (place, error) {
	switch {
	case e.source == Builtin:
		return place{program: e.command, reason: "it is part of Deskhand"}, executable(e.command)
	case filepath.IsAbs(e.command):
		return place{program: e.command, reason: "agents.json gives its path"}, executable(e.command)
	}
	for file := range c.onPath(e.command) {
		if !e.known.Ambiguous || isOfPackage(file, e.known.npm) {
			return place{program: file, reason: "the first of that name on PATH"}, nil
		}
	}
	if e.known.Ambiguous {
		return place{}, fmt.Errorf("%s of the npm package %s is not on PATH", e.command, e.known.npm)
	}
	return place{}, fmt.Errorf("%s is not on PATH", e.command)
}

// isOfPackage tells whether a program was put on PATH by npm for that package: by a link into it, or, on Windows, beside it.
func isOfPackage(file, npm string) bool {
	if real, err := filepath.EvalSymlinks(file); err == nil && strings.Contains(filepath.ToSlash(real), "/node_modules/"+npm+"/") {
		return true
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(file), "node_modules", filepath.FromSlash(npm)))
	return err == nil && info.IsDir()
}

// lacks tells what a found agent still needs.
func (c *Catalogue) lacks(e entry) error {
	n := e.known.Needs
	if n == nil || c.variable(n.Variable) != "" {
		return nil
	}
	for range c.onPath(n.Program) {
		return nil
	}
	return fmt.Errorf("%s is here, but it starts %s, which is not on PATH: %s", e.command, n.Program, n.Hint)
}

// onPath gives the programs of that name on PATH, first ones first.
func (c *Catalogue) onPath(command string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, dir := range c.path() {
			for _, name := range programNames(command) {
				file := filepath.Join(dir, name)
				if executable(file) == nil && !yield(file) {
					return
				}
			}
		}
	}
}

// program is the first of that name on PATH, or "".
func (c *Catalogue) program(name string) string {
	for file := range c.onPath(name) {
		return file
	}
	return ""
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", file)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", file)
	case !mayRun(info):
		return fmt.Errorf("%s is not executable", file)
	}
	return nil
}

// path is PATH as absolute directories; a relative one would depend on where we were started.
func (c *Catalogue) path() []string {
	return slices.DeleteFunc(filepath.SplitList(c.variable("PATH")), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// variable is the value of an environment variable of the agents; the last one counts, as for a process.
func (c *Catalogue) variable(name string) string {
	value := ""
	for _, kv := range c.cfg.Environ {
		if n, v, ok := strings.Cut(kv, "="); ok && sameVariable(n, name) {
			value = v
		}
	}
	return value
}

// environ is ours without what is only for us, plus the entry's own.
func (c *Catalogue) environ(own map[string]string) []string {
	env := make([]string, 0, len(c.cfg.Environ)+len(own))
	for _, kv := range c.cfg.Environ {
		name, _, _ := strings.Cut(kv, "=")
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

// ours are the variables that hold our token or belong to the service that started us.
func ours(name string) bool {
	switch name {
	case homeVariable, "DESKHAND_TOKEN", "DESKHAND_DATA_DIR", "SANDBOX_AGENT_TOKEN", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "INVOCATION_ID":
		return true
	}
	return false
}
