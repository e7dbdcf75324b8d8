// Package mcp hides the entries of MCP servers in a directory's configuration: which part of an entry an agent gets, which part a person
// must see before the server may start, which of its values are secrets, and how a server is checked.
//
// # For agents
//
// [Server.For] returns a server in the form of ACP v1. In that form a local server has no type, and its program is an absolute path: the
// program is looked up at that moment on PATH of the agents' environment, a relative path from the session's directory. Variables, by name
// or in the entry's texts (package variables), are read at that moment too. A server that cannot be handed over completely is a [Skip]:
// because the agent lacks the transport, a program or a variable is missing, or a value would break out of its header. A cwd other than the
// session's, for which ACP has no field, is reached by a shell that changes the directory; program and arguments are parameters of the
// shell, and never its text. On Windows such a server is skipped. The user and password of a URL become a header, because fetch, which most
// agents use, refuses a URL that contains them.
//
// # For people
//
// [Server.Review] returns a description of the program or address, and a hash. Servers have the same hash only if they start the same: the
// hash covers the entry, except whether the server is enabled, the content of files in the directory that would be run (the program, an
// interpreter's script, and arguments that look like scripts), and the variables in the command, its arguments and the host. Files that
// such a script loads are not covered. No part of the description can hide another: words that are not plain are quoted, and look-alike
// letters are escaped. Values of env and headers are not shown, except variables that make a program load others. In arguments only values
// that no shell and no launcher could run are hidden: a key that stands alone is shown.
//
// # Checks
//
// [Check] starts or calls a server with the official SDK, and lists its tools. However the server behaves, Check returns within the
// server's time limit and two seconds, after ending every process of the server: processes run in a proxy.Set. The output of a server is
// read up to a limit, and no redirect takes its headers to another host. Check calls initialize, as agents do, and not the newer discover,
// at which older servers have hung.
package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The transports of servers.
const (
	Stdio = "stdio"
	HTTP  = "http"
	SSE   = "sse"
)

// ErrEntry is the error of an invalid entry, which package config never returns.
var ErrEntry = errors.New("not an MCP server")

// Server is an entry of mcp.json.
type Server struct {
	Name      string
	Transport string
	Enabled   bool
	// Anywhere is set for an entry that holds in all directories: what a person is shown and approves names no directory, as long as the server
	// runs no file of the directory.
	Anywhere bool

	entry   json.RawMessage // canonical form
	program string
	args    []string
	env     map[string]string
	cwd     string
	timeout time.Duration

	url        string
	headers    map[string]string
	bearer     string            // name of a variable
	envHeaders map[string]string // header to variable
	oauth      bool              // has settings for OAuth
}

// AnyDirectory is how the description of a server that holds in all directories names the directory, and the directory of a Review that is for
// none.
const AnyDirectory = "${workspaceFolder}"

// Entry returns the server in package config's form.
func (s Server) Entry() json.RawMessage { return s.entry }

// Local reports whether the server is a program.
func (s Server) Local() bool { return s.Transport == Stdio }

// Parse parses an entry in package config's form.
func Parse(name string, entry json.RawMessage) (Server, error) {
	fields, err := members(entry)
	if err != nil {
		return Server{}, fmt.Errorf("%w: %q: %w", ErrEntry, name, err)
	}
	// Not into a struct: encoding/json would accept "Command" for command, and a program that nobody was shown would start.
	at := map[string]json.RawMessage{}
	for _, f := range fields {
		at[f.name] = f.value
	}
	s := Server{Name: name, Enabled: true, entry: entry}
	var kind string
	var millis int64
	read := func(name string, into any) {
		if raw, ok := at[name]; ok {
			err = errors.Join(err, json.Unmarshal(raw, into))
		}
	}
	read("type", &kind)
	read("enabled", &s.Enabled)
	read("timeoutMs", &millis)
	s.timeout = time.Duration(min(millis, int64(longest/time.Millisecond))) * time.Millisecond
	if kind == "local" {
		s.Transport = Stdio
		read("args", &s.args)
		read("env", &s.env)
		read("cwd", &s.cwd)
		err = errors.Join(err, s.readCommand(at["command"]))
	} else {
		s.Transport = HTTP
		read("transport", &s.Transport)
		read("url", &s.url)
		read("headers", &s.headers)
		read("bearerTokenEnvVar", &s.bearer)
		read("envHeaders", &s.envHeaders)
		raw := bytes.TrimSpace(at["oauth"])
		s.oauth = len(raw) > 0 && string(raw) != "false"
	}
	if err != nil {
		return Server{}, fmt.Errorf("%w: %q: %w", ErrEntry, name, err)
	}
	return s, nil
}

// readCommand reads a program, or a list of the program and its first arguments. A string is never split: a program may have spaces in its
// name.
func (s *Server) readCommand(raw json.RawMessage) error {
	var words []string
	if json.Unmarshal(raw, &s.program) == nil && s.program != "" {
		return nil
	}
	if err := json.Unmarshal(raw, &words); err != nil {
		return err
	}
	if len(words) == 0 || words[0] == "" {
		return errors.New("no command")
	}
	s.program, s.args = words[0], append(words[1:len(words):len(words)], s.args...)
	return nil
}

// member is a member of an object, in the order of the text.
type member struct {
	name  string
	value json.RawMessage
}

func members(object json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("not an object"), err)
	}
	var list []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the keys of an object are strings
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		list = append(list, member{name, value})
	}
	return list, nil
}

// object encodes members in their order.
func object(list []member) json.RawMessage {
	out := []byte("{")
	for i, m := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(m.name)...), ':'), m.value...)
	}
	return append(out, '}')
}

// quote encodes a text as JSON, without HTML escapes.
func quote(s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings always encode
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
