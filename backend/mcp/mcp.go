// Package mcp hides what an MCP server of a directory's configuration is: what of an entry an agent is given, what a person has to
// see of it before it may start, which of its values are secrets, and how one is tried.
//
// # Given to agents
//
// [Server.For] writes a server as ACP v1 has it. A local one has no type there, and its program is an absolute file: it is looked for
// at that moment on the PATH of the agents' environment, a relative path from the session's directory. What is named by a variable is
// read at that moment too, and so are the variables in the entry's texts (package variables). What cannot be handed over is a [Skip], never a half of a server: a transport that the agent does not
// take, a program or a variable that is not there, a value that would break out of its header. A cwd other than the session's is
// reached by a shell that changes there, with the program and its arguments as its parameters and never as its text, since ACP has no
// field for it; on Windows such a server is left out. The user and password of a URL become a header: fetch, which most agents use,
// refuses a URL that has them.
//
// # Shown to people
//
// [Server.Review] tells what would run and the hash of it. Two servers have one hash only if they start the same: it covers the entry,
// but for whether it is enabled, and the content of the files inside of the directory that it names to be run (the program, what an
// interpreter is given, and arguments that look like scripts), and what variables decide of the command, its arguments and the host. What such a script loads is not covered. Nothing that is shown can hide
// the rest of it: what is not plain is quoted, and letters that could pass for others are escaped. Values of env and headers are not
// shown, but for those variables that make a program load others. In arguments only what no shell and no launcher could run is hidden:
// a key that stands alone among them is shown.
//
// # Tried
//
// [Check] starts or asks a server with the official SDK, and lists its tools. However the server behaves, it returns within the
// server's time limit and two seconds, with all that the server started ended: processes run in a proxy.Set. What a server says is
// read up to a limit, and no redirect takes its headers elsewhere. It says initialize, as agents do, and not the newer discover, at
// which older servers have hung.
package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Transports of servers.
const (
	Stdio = "stdio"
	HTTP  = "http"
	SSE   = "sse"
)

// ErrEntry is an entry that is none: package config lets no such pass.
var ErrEntry = errors.New("not an MCP server")

// Server is one entry of mcp.json.
type Server struct {
	Name      string
	Transport string
	Enabled   bool

	entry   json.RawMessage // in its canonical form
	program string
	args    []string
	env     map[string]string
	cwd     string
	timeout time.Duration

	url        string
	headers    map[string]string
	bearer     string            // a variable
	envHeaders map[string]string // header to variable
	oauth      bool              // it has settings for it
}

// Entry is the server as package config gives it.
func (s Server) Entry() json.RawMessage { return s.entry }

// Local tells whether it is a program that is started.
func (s Server) Local() bool { return s.Transport == Stdio }

// Parse reads an entry in the form that package config gives it.
func Parse(name string, entry json.RawMessage) (Server, error) {
	fields, err := members(entry)
	if err != nil {
		return Server{}, fmt.Errorf("%w: %q: %w", ErrEntry, name, err)
	}
	// Not into a struct: encoding/json would take "Command" for command, and start what nobody was shown.
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

// readCommand takes a program, or a list of it and its first arguments. A text is never split: a program may have spaces in its name.
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

// member is one of an object, in the order of the text.
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
		name, _ := key.(string) // an object's keys are texts
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		list = append(list, member{name, value})
	}
	return list, nil
}

// object writes members in their order.
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

// quote writes a text as JSON, without the escapes that HTML would need.
func quote(s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text always can be
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
