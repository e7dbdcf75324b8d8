package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"deskhand/backend/variables"
)

// filled is a server with the variables in its texts replaced, as far as they are set.
type filled struct {
	Server

	names   []string // variables in the entry's texts
	missing []string
	foreign []string
}

// ofDirectory reports whether a variable is an editor's or agent's name for the directory of the entry.
func ofDirectory(name string) bool { return name == "workspaceFolder" || name == "CLAUDE_PROJECT_DIR" }

// fill replaces the variables in the command, its arguments, env, cwd, the URL and the headers.
func (s Server) fill(lookup variables.Lookup, directory string) filled {
	f := filled{Server: s}
	find := func(name string) (string, bool) {
		if ofDirectory(name) {
			return directory, true
		}
		if lookup == nil {
			return "", false
		}
		return lookup(name)
	}
	one := func(text string) string {
		r := variables.Fill(text, find)
		for _, name := range r.Names {
			if !ofDirectory(name) && !slices.Contains(f.names, name) {
				f.names = append(f.names, name)
			}
		}
		f.missing, f.foreign = append(f.missing, r.Missing...), append(f.foreign, r.Foreign...)
		return r.Text
	}
	table := func(texts map[string]string) map[string]string {
		out := make(map[string]string, len(texts))
		for name, text := range texts {
			out[name] = one(text)
		}
		return out
	}
	f.program, f.cwd, f.url = one(s.program), one(s.cwd), one(s.url)
	f.args = make([]string, len(s.args))
	for i, word := range s.args {
		f.args[i] = one(word)
	}
	f.env, f.headers = table(s.env), table(s.headers)
	for _, list := range []*[]string{&f.names, &f.missing, &f.foreign} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return f
}

// problem returns why the server cannot be started or reached with the current variables.
func (f filled) problem() error {
	switch {
	case len(f.missing) == 1:
		return fmt.Errorf("the environment variable %s is not set", f.missing[0])
	case len(f.missing) > 1:
		return fmt.Errorf("the environment variables %s are not set", strings.Join(f.missing, ", "))
	case len(f.foreign) > 0:
		return fmt.Errorf("only another program can fill in %s; write a value, or an environment variable as ${NAME}", strings.Join(printables(f.foreign), ", "))
	case f.program == "" && f.Local():
		return errors.New("its program is empty with the variables as they are")
	}
	return nil
}

// decided returns the parts of the command or the address that contain variables: they are approved with the entry, so that another value
// makes another server. Values that only the server reads are not included, nor are secrets.
func (s Server) decided(f filled) (list []string) {
	add := func(part, written, now string) {
		if variables.Fill(written, nothing).Any() {
			list = append(list, part+" "+now)
		}
	}
	add("command", s.program, f.program)
	add("cwd", s.cwd, f.cwd)
	shown := f.shownArgs()
	for i, word := range s.args {
		add(fmt.Sprintf("args[%d]", i), word, shown[i])
	}
	for _, name := range sortedKeys(s.env) {
		if loads(name) {
			add("env "+name, s.env[name], coverURL(f.env[name]))
		}
	}
	add("url", s.url, f.host())
	return list
}

// host returns the host of a remote server.
func (f filled) host() string {
	u, err := url.Parse(f.url)
	if err != nil {
		return "unknown"
	}
	return u.Scheme + "://" + u.Host
}

func nothing(string) (string, bool) { return "", true }

// Written maps the words that an agent is given, as far as variables changed them, to the words of the entry: only the latter may be
// stored.
func (s Server) Written(t Target) map[string]string {
	f := s.fill(t.Lookup, t.Directory)
	words := map[string]string{}
	for i, now := range f.args {
		if now != s.args[i] {
			words[now] = s.args[i]
		}
	}
	if address, _, err := f.request(t.Lookup); err == nil && f.url != s.url {
		words[address] = s.url
	}
	return words
}
