package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Target describes the agent that a server is for.
type Target struct {
	Transports []string                         // transports that the agent supports
	Directory  string                           // of the session
	Lookup     func(name string) (string, bool) // returns a variable of the agents' environment
}

// Skip is a server that an agent does not get, or not completely, with the reason in words.
type Skip struct {
	Server string
	Reason string
	Partly bool // the agent gets the rest
}

func (s *Skip) String() string { return fmt.Sprintf("%s: %s", s.Server, s.Reason) }

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// For returns the server in the form of ACP v1, or nil when the agent cannot have the server.
func (s Server) For(t Target) (json.RawMessage, *Skip) {
	skip := func(format string, args ...any) (json.RawMessage, *Skip) {
		return nil, &Skip{Server: s.Name, Reason: fmt.Sprintf(format, args...)}
	}
	if !slices.Contains(t.Transports, s.Transport) {
		return skip("the agent takes no MCP servers over %s", s.Transport)
	}
	f := s.fill(t.Lookup, t.Directory)
	if err := f.problem(); err != nil {
		return skip("%s", err)
	}
	s = f.Server
	if s.Local() {
		program, args, err := s.argv(t)
		if err != nil {
			return skip("%s", err)
		}
		env := []pair{}
		for _, name := range sortedKeys(s.env) {
			env = append(env, pair{name, s.env[name]})
		}
		return encode(struct {
			Name    string   `json:"name"`
			Command string   `json:"command"`
			Args    []string `json:"args"`
			Env     []pair   `json:"env"`
		}{s.Name, program, args, env}), nil
	}
	address, headers, err := s.request(t.Lookup)
	if err != nil {
		return skip("%s", err)
	}
	raw := encode(struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		URL     string `json:"url"`
		Headers []pair `json:"headers"`
	}{s.Transport, s.Name, address, headers})
	if s.oauth {
		return raw, &Skip{Server: s.Name, Reason: "its oauth settings cannot be handed over: the agent signs in by means of its own", Partly: true}
	}
	return raw, nil
}

// encode marshals without HTML escapes: agents display the text.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("mcp: a record that is no JSON: " + err.Error())
	}
	return raw
}

// argv returns the path of the program, and its arguments.
func (s Server) argv(t Target) (program string, args []string, err error) {
	dir := s.directory(t.Directory)
	if program, err = find(s.program, dir, t.Lookup); err != nil {
		return "", nil, err
	}
	args = append([]string{}, s.args...)
	if dir == filepath.Clean(t.Directory) {
		return program, args, nil
	}
	const shell = "/bin/sh"
	if runtime.GOOS == "windows" {
		return "", nil, fmt.Errorf("it is to start in %s, which agents cannot be told", s.cwd)
	}
	return shell, append([]string{"-c", `cd -- "$1" && shift && exec "$@"`, "sh", dir, program}, args...), nil
}

// directory returns the server's working directory.
func (s Server) directory(session string) string {
	if filepath.IsAbs(s.cwd) {
		return filepath.Clean(s.cwd)
	}
	return filepath.Join(session, s.cwd)
}

// find looks up a program. Relative directories of PATH are skipped: they would be in the workspace, where anybody may put a "git".
func find(program, dir string, lookup func(string) (string, bool)) (string, error) {
	candidates := []string{program}
	switch {
	case filepath.IsAbs(program):
	case strings.ContainsAny(program, `/`+string(filepath.Separator)):
		candidates[0] = filepath.Join(dir, program)
	default:
		candidates = nil
		path, _ := lookup("PATH")
		for _, d := range filepath.SplitList(path) {
			if filepath.IsAbs(d) {
				candidates = append(candidates, filepath.Join(d, program))
			}
		}
	}
	for _, c := range candidates {
		if file, err := exec.LookPath(c); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("its program %s was not found", printable(program))
}

// request returns the address and the headers of a remote server. Of two headers with the same name the more specific wins: one from a
// variable over a written header, and the bearer's variable over both.
func (s Server) request(lookup func(string) (string, bool)) (address string, headers []pair, err error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return "", nil, fmt.Errorf("its URL cannot be read")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", nil, errors.New("its URL is no http or https address with the variables as they are")
	}
	headers = []pair{}
	set := func(name, value string) {
		headers = slices.DeleteFunc(headers, func(p pair) bool { return strings.EqualFold(p.Name, name) })
		headers = append(headers, pair{name, value})
	}
	if u.User != nil {
		password, _ := u.User.Password()
		set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		u.User = nil
	}
	for _, name := range sortedKeys(s.headers) {
		if strings.ContainsFunc(s.headers[name], unsendable) { // caused by a variable: package config refuses such a text
			return "", nil, fmt.Errorf("the value of its header %s cannot be sent with the variables as they are", printable(name))
		}
		set(name, s.headers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.envHeaders)) {
		value, err := variable(lookup, s.envHeaders[name])
		if err != nil {
			return "", nil, err
		}
		set(name, value)
	}
	if s.bearer != "" {
		value, err := variable(lookup, s.bearer)
		if err != nil {
			return "", nil, err
		}
		set("Authorization", "Bearer "+value)
	}
	return u.String(), headers, nil
}

// unsendable reports whether a header may not contain a character.
func unsendable(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// variable returns a variable's value as part of a header.
func variable(lookup func(string) (string, bool), name string) (string, error) {
	value, ok := lookup(name)
	value = strings.TrimSpace(value)
	switch {
	case !ok || value == "":
		return "", fmt.Errorf("the environment variable %s is not set", printable(name))
	case strings.ContainsFunc(value, unsendable):
		return "", fmt.Errorf("the environment variable %s cannot be part of a header", printable(name))
	}
	return value, nil
}
