package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/config"
	"deskhand/backend/mcp"
	"deskhand/backend/transcript"
)

// MCPServers are the MCP servers of a directory.
type MCPServers struct {
	Items   []MCPServer `json:"items"`
	Path    string      `json:"path" doc:"The file that they are in, which need not be there"`
	Problem string      `json:"problem,omitempty" doc:"What of the file cannot be read, with the line where that is known; it is never overwritten then"`
}

// MCPServer is one of them.
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

// MCPTest is how a server has answered.
type MCPTest struct {
	OK     bool          `json:"ok"`
	Millis int64         `json:"ms"`
	Server *mcp.Identity `json:"server,omitempty" doc:"What it calls itself"`
	Tools  []mcp.Tool    `json:"tools"`
	Detail string        `json:"detail,omitempty" doc:"Why it is not ok"`
	Stderr string        `json:"stderr,omitempty" doc:"The end of what it wrote there"`
}

// MCPServers lists the MCP servers of a directory by name. A broken file is no error: it is shown with what is wrong with it.
func (c *Client) MCPServers(ctx context.Context, directory string) (MCPServers, error) {
	directory, err := checkDirectory(directory)
	if err != nil {
		return MCPServers{}, err
	}
	folder, file := config.Place(config.MCP)
	out := MCPServers{Items: []MCPServer{}, Path: filepath.Join(directory, folder, file)}
	list, err := c.servers(ctx, directory)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil {
		out.Problem = transcript.ClipText(err.Error())
	}
	if err := c.judge(ctx, directory, list); err != nil {
		return out, err
	}
	for _, e := range list {
		out.Items = append(out.Items, showServer(e))
	}
	return out, nil
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

// submitted is an entry as a person wrote it, with the hidden values that it stands for. It is approved by that, unless another program
// may have had a hand in it after it was shown: where it has hidden values of an entry that nobody has approved, and where what is stored
// would not start what seen, the hash that was shown, stands for. Then it is judged as what anybody writes.
func (c *Client) submitted(ctx context.Context, root *os.Root, directory, name, seen string, entry json.RawMessage) (Executable, json.RawMessage, error) {
	form, err := config.Canonical(config.MCP, entry)
	if err != nil {
		return Executable{}, nil, err
	}
	stored, err := config.Open(root, c.cfg.Replace).Get(ctx, config.MCP, name)
	if err != nil && ctx.Err() != nil {
		return Executable{}, nil, err
	}
	// What is stored may be broken, and is about to be replaced: then it has no values to stand for.
	full, err := mcp.Unmask(form, stored)
	if err != nil {
		return Executable{}, nil, err
	}
	s, err := mcp.Parse(name, full)
	if err != nil {
		return Executable{}, nil, err
	}
	e := c.executable(ctx, s, root, directory)
	if _, hidden := mcp.Unmask(form, nil); hidden != nil {
		e.Approved, err = c.stands(ctx, root, directory, name, stored)
	} else {
		// Its files are read after those of e: what changes in between is no more what was shown.
		e.Approved = c.shownHash(ctx, root, directory, name, stored) == seen
	}
	if err != nil {
		return Executable{}, nil, err
	}
	list := []Executable{e}
	err = c.judge(ctx, directory, list)
	return list[0], full, err
}

// shownHash is what a list shows of a stored entry; it is empty for one that no list shows.
func (c *Client) shownHash(ctx context.Context, root *os.Root, directory, name string, stored json.RawMessage) string {
	s, err := mcp.Parse(name, stored)
	if err != nil {
		return ""
	}
	return c.executable(ctx, s, root, directory).Hash
}

// stands tells whether a stored entry is approved.
func (c *Client) stands(ctx context.Context, root *os.Root, directory, name string, stored json.RawMessage) (bool, error) {
	s, err := mcp.Parse(name, stored)
	if err != nil {
		return false, err
	}
	list := []Executable{c.executable(ctx, s, root, directory)}
	err = c.judge(ctx, directory, list)
	return list[0].Approved, err
}

// PutMCPServer stores an entry. The person who wrote it has approved it by that, if what it replaces is what they were shown; see submitted.
// seen is its hash, empty where there was none.
func (c *Client) PutMCPServer(ctx context.Context, directory, name, seen string, entry json.RawMessage) (MCPServer, error) {
	var shown MCPServer
	if err := makeConfigured(directory, config.MCP, name, entry); err != nil {
		return shown, err
	}
	err := c.configure(directory, func(directory string, root *os.Root) error {
		e, form, err := c.submitted(ctx, root, directory, name, seen, entry)
		if err != nil {
			return err
		}
		if err := config.Open(root, c.cfg.Replace).Put(ctx, config.MCP, name, form); err != nil {
			return err
		}
		shown = showServer(e)
		if !e.Approved {
			return nil
		}
		// What was submitted is approved, and not what is read again: another program may have written meanwhile.
		return c.saveApprovals(context.WithoutCancel(ctx), directory, []Executable{e})
	})
	return shown, err
}

// DeleteMCPServer removes an entry; it is nil when there is none.
func (c *Client) DeleteMCPServer(ctx context.Context, directory, name string) error {
	return c.configure(directory, func(_ string, root *os.Root) error {
		return config.Open(root, c.cfg.Replace).Delete(ctx, config.MCP, name)
	})
}

// makeConfigured makes the directory that an entry is for where there is none yet, if what is put there can be an entry at all.
func makeConfigured(directory string, kind config.Kind, name string, entry json.RawMessage) error {
	directory, err := cleanDirectory(directory)
	if err != nil {
		return err
	}
	if _, err := os.Stat(directory); !errors.Is(err, fs.ErrNotExist) {
		return nil // configure tells what else is wrong with it
	}
	if err := config.CheckName(name); err != nil {
		return refusedConfig(err)
	}
	if _, err := config.Canonical(kind, entry); err != nil {
		return refusedConfig(err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return bad("directory.unreadable", "path", directory, "detail", err.Error())
	}
	return nil
}

// configure opens a directory for f, and gives the errors of package config their codes.
func (c *Client) configure(directory string, f func(directory string, root *os.Root) error) error {
	directory, err := checkDirectory(directory)
	if err != nil {
		return err
	}
	root, err := openDirectory(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	return refusedConfig(f(directory, root))
}

func refusedConfig(err error) error {
	if err == nil {
		return nil
	}
	params := map[string]string{"detail": err.Error()}
	switch {
	case errors.Is(err, config.ErrInvalid), errors.Is(err, mcp.ErrHidden):
		return bad("config.invalid", "detail", err.Error())
	case errors.Is(err, config.ErrTooLarge):
		return bad("config.too_large", "detail", err.Error())
	case errors.Is(err, config.ErrBroken):
		return &RefusedError{Code: "config.broken", Params: params}
	case errors.Is(err, config.ErrBusy):
		return &RefusedError{Code: "config.busy", Params: params}
	case errors.Is(err, config.ErrPermission):
		return &RefusedError{Code: "config.unreadable", Params: params}
	case errors.Is(err, config.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	for _, ours := range []error{ErrNotFound, ErrStorage, ErrClosed, context.Canceled} {
		if errors.Is(err, ours) {
			return err
		}
	}
	if _, ok := errors.AsType[*RefusedError](err); ok {
		return err
	}
	return &RefusedError{Code: "config.unwritable", Params: params}
}

// TestMCPServer starts or asks a server as an agent would, and tells how that went. entry is one that a person has just written, and seen
// what they were shown, as for PutMCPServer; nil means the stored one, which must be approved: a test is a start. The end of ctx ends it.
func (c *Client) TestMCPServer(ctx context.Context, directory, name, seen string, entry json.RawMessage) (MCPTest, error) {
	var s *mcp.Server
	err := c.configure(directory, func(clean string, root *os.Root) error {
		directory = clean
		if entry != nil {
			e, _, err := c.submitted(ctx, root, directory, name, seen, entry)
			if err == nil && !e.Approved {
				err = unapproved(name)
			}
			s = e.server
			return err
		}
		list, broken := c.servers(ctx, directory)
		i := slices.IndexFunc(list, func(e Executable) bool { return e.Name == name })
		if i < 0 {
			return errors.Join(broken, fmt.Errorf("%w: MCP server %q", ErrNotFound, name))
		}
		if err := c.judge(ctx, directory, list); err != nil {
			return err
		}
		if !list[i].Approved {
			return unapproved(name)
		}
		s = list[i].server
		return nil
	})
	if err != nil {
		return MCPTest{}, err
	}
	return c.try(ctx, directory, *s)
}

func unapproved(name string) error {
	return &RefusedError{Code: "config.unapproved", Params: map[string]string{"name": name}}
}

func (c *Client) try(ctx context.Context, directory string, s mcp.Server) (MCPTest, error) {
	environ := c.cfg.Agents.Environ(ctx)
	begun := time.Now()
	r, err := mcp.Check(ctx, s, mcp.Place{Processes: c.trials, Directory: directory, Environ: environ})
	if ctx.Err() != nil {
		return MCPTest{}, ctx.Err()
	}
	clean := c.secret.With(s.Secrets(mcp.Lookup(environ)))
	t := MCPTest{OK: err == nil, Millis: time.Since(begun).Milliseconds(), Server: r.Server, Tools: r.Tools, Stderr: clean.Text(r.Stderr)}
	for i := range t.Tools {
		t.Tools[i].Description = clean.Text(t.Tools[i].Description)
	}
	if err != nil {
		t.Detail = clean.Text(strings.ToValidUTF8(err.Error(), "?"))
	}
	return t, nil
}
