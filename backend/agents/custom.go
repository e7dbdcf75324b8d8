package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/jsonerr"
)

// ErrFile is the error of an agents.json that cannot be read, or that has an entry which no agent can have.
var ErrFile = errors.New("agents.json cannot be read")

var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// readCustom reads agents.json; table is the catalogue without that file. A file that is not JSON gives an error with the line; a wrong entry becomes a broken agent, so that people see
// the entry where they look for the agent; an impossible id is an error, and the other entries still count.
func readCustom(name string, table []entry) ([]entry, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || name == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err) // the error names the path
	}
	var file struct {
		Agents []customAgent `json:"agents"`
	}
	data = jsonerr.Text(data)
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%w: %s, line %d: %w", ErrFile, name, jsonerr.Line(data, err), err)
	}
	var list []entry
	var wrong []error
	fault := func(a customAgent, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%w: %s, line %d: %s", ErrFile, name, lineOf(data, a.ID), fmt.Sprintf(format, args...)))
	}
	for _, a := range file.Agents {
		e := a.entry()
		if e.broken != "" {
			e.broken = fmt.Sprintf("line %d: %s", lineOf(data, a.ID), e.broken)
		}
		switch why := wrongID(a.ID); {
		case why != "":
			fault(a, "%s", why)
		case a.shadows(table):
			fault(a, `%s is known already; say "override": true to replace it`, a.ID)
		case slices.ContainsFunc(list, func(other entry) bool { return other.id == a.ID }):
			fault(a, "%s stands in it twice", a.ID)
		default:
			list = append(list, e)
		}
	}
	return list, errors.Join(wrong...)
}

// lineOf returns the last line of agents.json that contains id as a JSON string, or 1.
func lineOf(data []byte, id string) int {
	at := bytes.LastIndex(data, []byte(strconv.Quote(id)))
	return 1 + bytes.Count(data[:max(at, 0)], []byte("\n"))
}

// wrongID returns why no agent of agents.json can have id, or "".
func wrongID(id string) string {
	switch {
	case !validID.MatchString(id):
		return fmt.Sprintf("%q is no agent id (lower-case letters, digits and -, a letter first)", id)
	case id == Demo:
		return "the id " + Demo + " belongs to the demo agent"
	}
	return ""
}

// shadows reports whether a has the id of a known agent without asking to override that agent.
func (a customAgent) shadows(table []entry) bool {
	return !a.Override && slices.ContainsFunc(table, func(k entry) bool { return k.id == a.ID })
}

// customAgent is an entry of agents.json.
type customAgent struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Cwd      string            `json:"cwd"`
	Override bool              `json:"override"`

	// In place of the command, an entry in the registry's format has these.
	Version      string        `json:"version"`
	Website      string        `json:"website"`
	Distribution *distribution `json:"distribution"`
}

func (a customAgent) entry() entry {
	e := entry{
		id: a.ID, name: a.Name, source: Custom, command: a.Command, args: a.Args, env: a.Env, cwd: a.Cwd,
		known: known{Capabilities: plainCapabilities()},
	}
	if a.Command == "" && a.Distribution != nil {
		e = a.brought()
	} else {
		e.broken = a.fault()
	}
	if e.name == "" {
		e.name = a.ID
	}
	e.inFile = true
	return e
}

// brought returns an entry that agents.json has in the registry's format, which says how the agent is installed.
func (a customAgent) brought() entry {
	r := registryEntry{ID: a.ID, Name: a.Name, Version: a.Version, Website: a.Website, Distribution: *a.Distribution}
	e, ok := r.foreign()
	if !ok {
		return entry{id: a.ID, name: a.Name, source: Custom, broken: "its distribution gives no exact version of anything that can be installed"}
	}
	e.cwd = a.Cwd
	env := maps.Clone(e.env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, a.Env)
	e.env = env
	e.broken = customAgent{Command: e.command, Args: e.args, Env: e.env, Cwd: a.Cwd}.fault()
	return e
}

// fault returns why no system would start the agent, or "".
func (a customAgent) fault() string {
	holds0 := func(text string) bool { return strings.Contains(text, "\x00") }
	for name, value := range a.Env {
		if name == "" || strings.Contains(name, "=") || holds0(name) {
			return fmt.Sprintf("%q cannot be the name of a variable", name)
		}
		if holds0(value) {
			return "its variable " + name + " holds a character 0"
		}
	}
	switch {
	case a.Command == "":
		return "it has no command"
	case holds0(a.Command), holds0(a.Cwd), slices.ContainsFunc(a.Args, holds0):
		return "its command line or cwd holds a character 0"
	case !filepath.IsAbs(a.Command) && (filepath.Base(a.Command) != a.Command || a.Command == "." || a.Command == ".."):
		return "its command is neither an absolute path nor a name to be found on PATH"
	case a.Cwd != "" && !filepath.IsAbs(a.Cwd):
		return "its cwd is not absolute"
	}
	return ""
}
