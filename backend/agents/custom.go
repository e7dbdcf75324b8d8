package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

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
		Agents []customAgent `json:"agents"`
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // editors on Windows begin a file with it
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrFile, lineOf(data, err), err)
	}
	var list []entry
	for _, a := range file.Agents {
		e := a.entry()
		shadows := slices.ContainsFunc(c.bundled, func(k entry) bool { return k.id == a.ID })
		switch {
		case !validID.MatchString(a.ID):
			return list, fmt.Errorf("%w: %q is no agent id (lower-case letters, digits and -, a letter first)", ErrFile, a.ID)
		case a.ID == Demo:
			return list, fmt.Errorf("%w: the id %s belongs to the demo agent", ErrFile, Demo)
		case shadows && !a.Override:
			return list, fmt.Errorf(`%w: %s is known already; say "override": true to replace it`, ErrFile, a.ID)
		case slices.ContainsFunc(list, func(other entry) bool { return other.id == a.ID }):
			return list, fmt.Errorf("%w: %s stands in it twice", ErrFile, a.ID)
		}
		list = append(list, e)
	}
	return list, nil
}

// customAgent is one entry of agents.json.
type customAgent struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Cwd      string            `json:"cwd"`
	Override bool              `json:"override"`
}

func (a customAgent) entry() entry {
	e := entry{
		id: a.ID, name: a.Name, source: Custom, command: a.Command, args: a.Args, env: a.Env, cwd: a.Cwd,
		known: known{Capabilities: plainCapabilities()},
	}
	if e.name == "" {
		e.name = a.ID
	}
	e.broken = a.fault()
	return e
}

// fault is why no system would start it; "" when there is no reason.
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
