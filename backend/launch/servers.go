package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/config"
	"deskhand/backend/mcp"
	"deskhand/backend/refusal"
)

// MCPServers are the MCP servers of a directory.
type MCPServers struct {
	Items   []MCPServer `json:"items"`
	Path    string      `json:"path" doc:"The file that they are in, which need not be there"`
	Problem string      `json:"problem,omitempty" doc:"What of the file cannot be read, with the line where that is known; it is never overwritten then"`
}

// MCPServer is an MCP server of a directory.
type MCPServer struct {
	Name       string          `json:"name"`
	Entry      json.RawMessage `json:"entry" doc:"In canonical form, with secrets hidden; one that comes back hidden stays what it is"`
	Enabled    bool            `json:"enabled"`
	Type       string          `json:"type" enum:"local,remote"`
	Transport  string          `json:"transport" enum:"stdio,http,sse"`
	Approved   bool            `json:"approved" doc:"Agents get it, when it is enabled"`
	Hash       string          `json:"hash" doc:"Of what would start"`
	Executable *Executable     `json:"executable,omitempty"`
}

// MCPTest is the answer of a server that was tested.
type MCPTest struct {
	OK     bool          `json:"ok"`
	Millis int64         `json:"ms"`
	Server *mcp.Identity `json:"server,omitempty" doc:"What it calls itself"`
	Tools  []mcp.Tool    `json:"tools"`
	Detail string        `json:"detail,omitempty" doc:"Why it is not ok"`
	Stderr string        `json:"stderr,omitempty" doc:"The end of what it wrote there"`
}

// readServers reads the entries of mcp.json, by name, but for those whose names are taken. The error tells of the entries that are left out.
func (g *Gate) readServers(ctx context.Context, at *entries, taken map[string]bool) ([]Executable, error) {
	servers, err := g.parseServers(ctx, at)
	var list []Executable
	reading := reading{begun: time.Now()}
	for _, s := range servers {
		if taken[s.Name] || reading.full(ctx) {
			continue
		}
		if e := g.ofServer(ctx, s, at); reading.takes(e) {
			list = append(list, e)
		}
	}
	return list, errors.Join(err, reading.problem())
}

// parseServers parses mcp.json, by name. The error tells of the entries that are left out.
func (g *Gate) parseServers(ctx context.Context, at *entries) (list []mcp.Server, err error) {
	entries, err := at.List(ctx, config.MCP)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		s, broken := mcp.Parse(name, entries[name])
		if broken != nil {
			err = errors.Join(err, broken)
			continue
		}
		list = append(list, s)
	}
	return list, err
}

// ServerSecrets returns the secrets in the entries of a directory's MCP servers, and of those of all projects, as the files say now. With
// AllProjects in place of the directory, only the latter.
func (g *Gate) ServerSecrets(ctx context.Context, directory string) (list []string, err error) {
	places := []string{directory}
	if directory != AllProjects {
		places = append(places, AllProjects)
	}
	lookup := g.variables(ctx)
	for _, place := range places {
		if place == AllProjects && g.deps.Everywhere == "" {
			continue
		}
		at, broken := g.openEntries(place)
		if broken != nil {
			err = errors.Join(err, broken)
			continue
		}
		servers, broken := g.parseServers(ctx, at)
		at.close()
		err = errors.Join(err, broken)
		for _, server := range servers {
			list = append(list, server.Certain(lookup)...)
		}
	}
	return list, err
}

// variables returns a lookup of the environment variables of agents. The lookup waits for the login shell at its first call, and not before.
func (g *Gate) variables(ctx context.Context) func(name string) (string, bool) {
	lookup := sync.OnceValue(func() func(string) (string, bool) { return mcp.Lookup(g.deps.Agents.Environment().Environ(ctx)) })
	return func(name string) (string, bool) { return lookup()(name) }
}

// ofServer returns the executable of a server, with the present content of the server's files.
func (g *Gate) ofServer(ctx context.Context, s mcp.Server, at *entries) Executable {
	s.Anywhere = at.all
	r := s.Review(at.files, at.place(), g.variables(ctx))
	return Executable{
		Scope: at.scope(), Kind: "mcp", Name: s.Name, Hash: r.Hash, Detail: g.deps.Secrets.KnownOnly(r.Detail),
		off: !s.Enabled, own: at.all && r.Files, server: &s,
	}
}

// Servers lists the MCP servers of a directory, or of AllProjects, by name. A broken file is no error: Problem tells of the file.
func (g *Gate) Servers(ctx context.Context, directory string) (MCPServers, error) {
	out := MCPServers{Items: []MCPServer{}}
	err := g.configure(directory, func(at *entries) error {
		out.Path = at.path(config.MCP)
		list, problem, err := g.listed(ctx, at, g.readServers)
		out.Problem = problem
		for _, e := range list {
			out.Items = append(out.Items, showServer(e))
		}
		return err
	})
	return out, err
}

func showServer(e Executable) MCPServer {
	s := MCPServer{
		Name: e.Name, Entry: mcp.Mask(e.server.Entry()), Enabled: !e.off, Type: "remote", Transport: e.server.Transport, Approved: e.Approved,
		Hash: e.Hash, Executable: &e,
	}
	if e.server.Local() {
		s.Type = "local"
	}
	return s
}

// submitted returns the executable of an entry that a person wrote, and the entry with the stored values in place of the hidden ones. A person
// approves an entry by writing it, unless another program may have changed the stored entry after the person was shown it: when the person's
// entry has hidden values, the stored entry must be approved; else the stored entry must have the hash seen, which is the hash that the person was
// shown. Otherwise the entry is judged like an entry from anybody.
func (g *Gate) submitted(ctx context.Context, at *entries, name, seen string, entry json.RawMessage) (Executable, json.RawMessage, error) {
	form, err := config.Canonical(config.MCP, entry)
	if err != nil {
		return Executable{}, nil, err
	}
	stored, err := at.Get(ctx, config.MCP, name)
	if err != nil && ctx.Err() != nil {
		return Executable{}, nil, err
	}
	// A stored entry that is broken is about to be replaced, and has no values for the hidden ones.
	full, err := mcp.Unmask(form, stored)
	if err != nil {
		return Executable{}, nil, err
	}
	s, err := mcp.Parse(name, full)
	if err != nil {
		return Executable{}, nil, err
	}
	e := g.ofServer(ctx, s, at)
	// The files of the stored entry are read after those of e, so that a file that changes in between is not approved.
	before, broken := g.storedServer(ctx, at, name, stored)
	if _, hidden := mcp.Unmask(form, nil); hidden == nil {
		e.Approved = before.Hash == seen
	} else {
		if broken != nil {
			return Executable{}, nil, broken
		}
		e.Approved = before.Approved
	}
	list := []Executable{e}
	err = g.judge(ctx, at.directory, list)
	return list[0], full, err
}

// storedServer returns the judged executable of a stored entry. An entry that cannot be parsed has none.
func (g *Gate) storedServer(ctx context.Context, at *entries, name string, stored json.RawMessage) (Executable, error) {
	s, err := mcp.Parse(name, stored)
	if err != nil {
		return Executable{}, err
	}
	list := []Executable{g.ofServer(ctx, s, at)}
	err = g.judge(ctx, at.directory, list)
	return list[0], err
}

// PutServer stores an entry. The person who wrote the entry approves it by that, provided that the replaced entry is the one that the person was
// shown (see submitted). seen is the hash of that entry, "" where there was none.
func (g *Gate) PutServer(ctx context.Context, directory, name, seen string, entry json.RawMessage) (MCPServer, error) {
	var shown MCPServer
	if err := g.makeDirectory(directory, config.MCP, name, entry); err != nil {
		return shown, err
	}
	err := g.configure(directory, func(at *entries) error {
		e, form, err := g.submitted(ctx, at, name, seen, entry)
		if err != nil {
			return err
		}
		if err := at.Put(ctx, config.MCP, name, form); err != nil {
			return err
		}
		shown = showServer(e)
		if !e.Approved {
			return nil
		}
		// The submitted content is approved, and the file is not read again: another program may have written meanwhile.
		return g.approve(context.WithoutCancel(ctx), at.directory, []Executable{e})
	})
	return shown, err
}

// DeleteServer removes an entry. A missing entry is no error.
func (g *Gate) DeleteServer(ctx context.Context, directory, name string) error {
	return g.configure(directory, func(at *entries) error {
		return at.Delete(ctx, config.MCP, name)
	})
}

// TestServer starts or asks a server as an agent would. entry and seen are as for PutServer; without an entry, TestServer tests the stored
// entry, which must be approved, because a test is a start. A server of all projects is tested in the person's home. The end of ctx ends the test.
func (g *Gate) TestServer(ctx context.Context, directory, name, seen string, entry json.RawMessage) (MCPTest, error) {
	var tested Executable
	err := g.configure(directory, func(at *entries) (err error) {
		directory = at.directory
		if entry != nil {
			tested, _, err = g.submitted(ctx, at, name, seen, entry)
		} else {
			tested, err = g.serverNamed(ctx, at, name)
		}
		if err == nil && !tested.Approved {
			err = unapproved(name)
		}
		return err
	})
	if err == nil && directory == AllProjects {
		directory, err = homeDirectory()
	}
	if err != nil {
		return MCPTest{}, err
	}
	return g.test(ctx, directory, *tested.server)
}

// serverNamed returns the judged executable of a stored entry.
func (g *Gate) serverNamed(ctx context.Context, at *entries, name string) (Executable, error) {
	list, broken := g.readServers(ctx, at, nil)
	i := slices.IndexFunc(list, func(e Executable) bool { return e.Name == name })
	if i < 0 {
		return Executable{}, errors.Join(broken, fmt.Errorf("%w: MCP server %q", refusal.ErrNotFound, name))
	}
	err := g.judge(ctx, at.directory, list)
	return list[i], err
}

func homeDirectory() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &refusal.Error{Code: "directory.unreadable", Params: map[string]string{"path": "~", "detail": err.Error()}}
	}
	return home, nil
}

func (g *Gate) test(ctx context.Context, directory string, s mcp.Server) (MCPTest, error) {
	environ := g.deps.Agents.Environment().Environ(ctx)
	begun := time.Now()
	r, err := mcp.Check(ctx, s, mcp.Place{Processes: g.trials, Directory: directory, Environ: environ})
	if ctx.Err() != nil {
		return MCPTest{}, ctx.Err()
	}
	clean := g.deps.Secrets.With(s.Secrets(mcp.Lookup(environ))).Text
	t := MCPTest{OK: err == nil, Millis: time.Since(begun).Milliseconds(), Server: r.Server, Tools: r.Tools, Stderr: clean(r.Stderr)}
	for i := range t.Tools {
		t.Tools[i].Description = clean(t.Tools[i].Description)
	}
	if err != nil {
		t.Detail = clean(strings.ToValidUTF8(err.Error(), "?"))
	}
	return t, nil
}
