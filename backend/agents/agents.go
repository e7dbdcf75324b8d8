// Package agents knows which agents exist on this machine, where each was found and why, and the exact command that starts it.
//
// Ids come from three places: the built-in demo agent (mock), the agents Deskhand knows by name and finds on PATH, and the
// user's agents.json, which is read again at every look so that an edit counts at once. Only ids of this table can be started;
// no part of a command ever comes from a request.
package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/proxy"
)

// Errors of Command and File.
var (
	ErrUnknown      = errors.New("unknown agent")
	ErrNotInstalled = errors.New("the agent is not installed")
	ErrFile         = errors.New("agents.json cannot be read")
)

// Demo is the id of the built-in agent.
const Demo = "mock"

// Where an agent comes from.
const (
	Builtin = "builtin"
	Custom  = "custom"
	OnPath  = "path"
)

// States of an agent.
const (
	Ready    = "ready"
	NotFound = "not_found"
	Broken   = "broken"
)

// Agent is one agent as people see it.
type Agent struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	State    string   `json:"state" enum:"ready,not_found,broken"`
	Source   string   `json:"source" enum:"builtin,custom,path"`
	Path     string   `json:"path,omitempty" doc:"The program that is started"`
	Detail   string   `json:"detail,omitempty" doc:"Why it is not ready"`
	Searched []string `json:"searched,omitempty" doc:"The directories that were searched for it"`
}

// IsReady tells whether the agent can be started.
func (a Agent) IsReady() bool { return a.State == Ready }

// IsBuiltin tells the demo agent from a person's own.
func (a Agent) IsBuiltin() bool { return a.Source == Builtin }

// Config of a catalogue.
type Config struct {
	// Self is our own program, which holds the demo agent.
	Self string
	// File is agents.json; it need not exist.
	File string
	// Environ is the environment that agents are started with; nil means that of this process.
	Environ []string
}

// Catalogue is the table of agents. Its methods may be called at the same time.
type Catalogue struct{ cfg Config }

// Open makes a catalogue. It starts nothing and reads nothing yet.
func Open(cfg Config) *Catalogue {
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	return &Catalogue{cfg: cfg}
}

// entry is one row: how an agent is started.
type entry struct {
	id, name, source string
	command          string
	args             []string
	env              map[string]string
	cwd              string
	broken           string
}

// known are the agents found on PATH under the name of the adapter that speaks ACP (claude itself does not, for one).
func known() []entry {
	claude := entry{id: "claude", name: "Claude Code", source: OnPath, command: "claude-agent-acp"}
	if os.Geteuid() == 0 {
		// It refuses to start a session as root without this.
		claude.env = map[string]string{"IS_SANDBOX": "1"}
	}
	return []entry{
		claude,
		{id: "opencode", name: "OpenCode", source: OnPath, command: "opencode", args: []string{"acp"}},
	}
}

// List gives every agent, ready ones first, and what is wrong with agents.json, if anything.
func (c *Catalogue) List() ([]Agent, error) {
	rows, err := c.rows()
	list := make([]Agent, 0, len(rows))
	for _, e := range rows {
		list = append(list, c.describe(e))
	}
	slices.SortStableFunc(list, func(a, b Agent) int { return rank(a.State) - rank(b.State) })
	return list, err
}

func rank(state string) int { return slices.Index([]string{Ready, Broken, NotFound}, state) }

func (c *Catalogue) describe(e entry) Agent {
	a := Agent{ID: e.id, Name: e.name, Source: e.source, State: Broken, Detail: e.broken}
	if e.broken != "" {
		return a
	}
	path, err := c.find(e.command)
	if err != nil {
		a.State, a.Detail = NotFound, err.Error()
		if !filepath.IsAbs(e.command) {
			a.Searched = c.path()
		}
		return a
	}
	a.State, a.Path = Ready, path
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
// is not on this machine.
func (c *Catalogue) Command(_ context.Context, id, cwd string) (proxy.Command, error) {
	e, err := c.row(id)
	if err != nil {
		return proxy.Command{}, err
	}
	if e.broken != "" {
		return proxy.Command{}, fmt.Errorf("%w: %s: %s", ErrFile, id, e.broken)
	}
	path, err := c.find(e.command)
	if err != nil {
		return proxy.Command{}, fmt.Errorf("%w: %s: %w", ErrNotInstalled, id, err)
	}
	if e.cwd != "" {
		cwd = e.cwd
	}
	return proxy.Command{Path: path, Args: e.args, Env: c.environ(e.env), Dir: cwd}, nil
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
	case "DESKHAND_TOKEN", "DESKHAND_DATA_DIR", "SANDBOX_AGENT_TOKEN", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "INVOCATION_ID":
		return true
	}
	return false
}

// find resolves a program: an absolute path as it is, a bare name on PATH.
func (c *Catalogue) find(command string) (string, error) {
	if filepath.IsAbs(command) {
		return command, executable(command)
	}
	for _, dir := range c.path() {
		for _, name := range programNames(command) {
			file := filepath.Join(dir, name)
			if executable(file) == nil {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not on PATH", command)
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
	value := ""
	for _, kv := range c.cfg.Environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			value = v
		}
	}
	return slices.DeleteFunc(filepath.SplitList(value), func(dir string) bool { return !filepath.IsAbs(dir) })
}

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

// rows is the whole table. With an error it holds what is not from agents.json.
func (c *Catalogue) rows() ([]entry, error) {
	rows := append([]entry{{id: Demo, name: "Demo agent", source: Builtin, command: c.cfg.Self, args: []string{"demo-agent"}}}, known()...)
	custom, err := c.custom()
	for _, e := range custom {
		i := slices.IndexFunc(rows, func(r entry) bool { return r.id == e.id })
		if i >= 0 {
			rows[i] = e
		} else {
			rows = append(rows, e)
		}
	}
	return rows, err
}

var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// custom reads agents.json. A file that is not JSON is one error with its line; an entry that is wrong is a broken agent, so that
// it is seen where it is looked for.
func (c *Catalogue) custom() ([]entry, error) {
	data, err := os.ReadFile(c.cfg.File)
	if errors.Is(err, fs.ErrNotExist) || c.cfg.File == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	var file struct {
		Agents []struct {
			ID       string            `json:"id"`
			Name     string            `json:"name"`
			Command  string            `json:"command"`
			Args     []string          `json:"args"`
			Env      map[string]string `json:"env"`
			Cwd      string            `json:"cwd"`
			Override bool              `json:"override"`
		} `json:"agents"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrFile, lineOf(data, err), err)
	}
	builtins := known()
	var list []entry
	for _, a := range file.Agents {
		e := entry{id: a.ID, name: a.Name, source: Custom, command: a.Command, args: a.Args, env: a.Env, cwd: a.Cwd}
		if e.name == "" {
			e.name = a.ID
		}
		shadows := slices.ContainsFunc(builtins, func(k entry) bool { return k.id == a.ID })
		switch {
		case !validID.MatchString(a.ID):
			return list, fmt.Errorf("%w: %q is no agent id (lower-case letters, digits and -, a letter first)", ErrFile, a.ID)
		case a.ID == Demo:
			return list, fmt.Errorf("%w: the id %s belongs to the demo agent", ErrFile, Demo)
		case shadows && !a.Override:
			return list, fmt.Errorf(`%w: %s is known already; say "override": true to replace it`, ErrFile, a.ID)
		case slices.ContainsFunc(list, func(other entry) bool { return other.id == a.ID }):
			return list, fmt.Errorf("%w: %s stands in it twice", ErrFile, a.ID)
		case a.Command == "":
			e.broken = "it has no command"
		case !filepath.IsAbs(a.Command) && filepath.Base(a.Command) != a.Command:
			e.broken = "its command is neither an absolute path nor a name to be found on PATH"
		case a.Cwd != "" && !filepath.IsAbs(a.Cwd):
			e.broken = "its cwd is not absolute"
		}
		list = append(list, e)
	}
	return list, nil
}

// lineOf finds the line that a JSON error means.
func lineOf(data []byte, err error) int {
	offset := len(data)
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = int(syntax.Offset)
	case errors.As(err, &wrongType):
		offset = int(wrongType.Offset)
	}
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}
