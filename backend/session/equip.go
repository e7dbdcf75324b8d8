package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"deskhand/backend/config"
	"deskhand/backend/mcp"
	"deskhand/backend/transcript"
)

// What a session's directory brings to its agent. It is read once, before there is a process, and is what the whole generation goes
// by: a file that changes meanwhile is read at the next start.

// equip reads it, has a person asked about what nobody has approved, and gives what may start. It is false when the generation has
// ended meanwhile.
func (a *agentProcess) equip(agent, cwd string) (taken []Executable, ok bool) {
	if !a.permitted(agent, cwd, nil) {
		return nil, false
	}
	found, notices := a.v.c.discover(a.ctx, filepath.Clean(cwd))
	found, more := a.v.c.useful(agent, found)
	taken, ok = a.settle(found, append(notices, more...))
	for _, e := range found {
		if e.skill != nil && e.Approved { // though it may be given none
			a.mayRead(e.skill.state.Skills)
		}
	}
	return taken, ok
}

// settle has a person asked about what nobody has approved of what was found, and gives what may start.
func (a *agentProcess) settle(found []Executable, notices []transcript.Notice) (taken []Executable, ok bool) {
	verdict, ok := a.ask(found, notices, trustOptions())
	if !ok {
		return nil, false
	}
	taken, without := sift(found, verdict)
	return taken, a.post(func() {
		a.equipment = append(a.equipment, taken...)
		if len(without) > 0 {
			a.tell([]transcript.Notice{{Severity: "info", Title: "Started without what was not approved", Description: transcript.ClipText(strings.Join(without, ", "))}})
		}
	})
}

// ask has a person asked about what nobody has approved of what was found, and waits for the answer. It is false when the generation has
// ended meanwhile.
func (a *agentProcess) ask(found []Executable, notices []transcript.Notice, options []RequestOption) (verdict string, ok bool) {
	asked := make(chan chan string, 1)
	if !a.post(func() { a.tell(notices); a.consider(found, options); asked <- a.approval.verdict }) {
		return "", false
	}
	var answered chan string
	select {
	case answered = <-asked:
	case <-a.ctx.Done():
		return "", false
	}
	select {
	case verdict = <-answered:
		return verdict, true
	case <-a.ctx.Done():
		return "", false
	}
}

// sift gives what may start after a verdict, and the names of the rest.
func sift(found []Executable, verdict string) (taken []Executable, without []string) {
	for _, e := range found {
		switch {
		case e.off:
		case e.Approved || verdict != trustWithout:
			taken = append(taken, e)
		default:
			without = append(without, e.Kind+" "+Readable(e.Name))
		}
	}
	return taken, without
}

// Readable is a name that cannot pass for another one in a text.
func Readable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// tell puts notices into the transcript.
func (a *agentProcess) tell(notices []transcript.Notice) {
	for _, n := range notices {
		a.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &n})
	}
}

// outfit makes the servers ready, now that it is known what the agent takes, and then opens its session. Programs are looked for on
// the disk, so it is not done by the conversation's goroutine.
func (a *agentProcess) outfit() {
	var servers []Executable
	for _, e := range a.equipment {
		if e.server != nil {
			servers = append(servers, e)
		}
	}
	a.servers = []any{}
	if len(servers) == 0 {
		a.open()
		return
	}
	c, agent, target := a.v.c, a.v.row.Agent, mcp.Target{Directory: a.v.row.Cwd, Transports: a.transports()}
	a.v.links.Go(func() {
		target.Lookup = c.variables(a.ctx)
		given, notices := []any{}, []transcript.Notice(nil)
		for _, e := range servers {
			var raw json.RawMessage
			skip := c.asApproved(a.ctx, target.Directory, e)
			if skip == nil {
				raw, skip = e.server.For(target)
			}
			if raw != nil {
				c.secret.Remember(e.server.Certain(target.Lookup))
				c.secret.RememberFilled(e.server.Written(target))
				given = append(given, raw)
			}
			if skip != nil {
				notices = append(notices, skipped(skip, c.cfg.Agents.Name(agent)))
			}
		}
		a.post(func() { a.servers = given; a.tell(notices); a.open() })
	})
}

// asApproved is nil for a server whose files are still what they were when a person was asked about it, which may be hours ago.
func (c *Client) asApproved(ctx context.Context, directory string, e Executable) *mcp.Skip {
	directory = filepath.Clean(directory)
	root, err := openDirectory(directory)
	if err != nil {
		return &mcp.Skip{Server: e.Name, Reason: err.Error()}
	}
	defer root.Close()
	if e.server.Review(root, directory, c.variables(ctx)).Hash != e.Hash {
		return &mcp.Skip{Server: e.Name, Reason: "what it runs has changed since it was approved; the next start asks again"}
	}
	return nil
}

func skipped(s *mcp.Skip, agent string) transcript.Notice {
	if s.Partly {
		return transcript.Notice{Severity: "info", Title: fmt.Sprintf("Not all of the MCP server %q was given to %s", s.Server, agent), Description: s.Reason}
	}
	return transcript.Notice{Severity: "warning", Title: fmt.Sprintf("The MCP server %q was not given to %s", s.Server, agent), Description: s.Reason}
}

// transports are those that the agent takes: what was measured where somebody has, else what it says. All take stdio, says ACP.
func (a *agentProcess) transports() []string {
	if measured := a.v.c.cfg.Agents.Quirks(a.v.row.Agent).MCP; measured != nil {
		return measured
	}
	list := []string{mcp.Stdio}
	if a.can.MCPHTTP {
		list = append(list, mcp.HTTP)
	}
	if a.can.MCPSSE {
		list = append(list, mcp.SSE)
	}
	return list
}

// cleanDirectory is the one name of a directory in what is stored about it.
func cleanDirectory(directory string) (string, error) {
	if !filepath.IsAbs(directory) {
		return "", bad("directory.relative", "path", directory)
	}
	return filepath.Clean(directory), nil
}

// checkDirectory is cleanDirectory for one that must be there.
func checkDirectory(directory string) (string, error) {
	directory, err := cleanDirectory(directory)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", bad(transcript.ProblemNoDirectory, "path", directory)
	case err != nil:
		return "", bad("directory.unreadable", "path", directory, "detail", err.Error())
	case !info.IsDir():
		return "", bad("directory.not_one", "path", directory)
	}
	return directory, nil
}

// openDirectory opens a session's directory for package config. No root confines it, other than at /v1: who may call the client may
// have agents work anywhere. But it is a root in itself: nothing in it, whoever put it there, makes us read or write elsewhere. The dot
// at the end is for what may stand in its place by now: a FIFO would be waited for without it.
func openDirectory(directory string) (*os.Root, error) {
	root, err := os.OpenRoot(directory + string(filepath.Separator) + ".")
	if err != nil {
		return nil, bad("directory.unreadable", "path", directory, "detail", err.Error())
	}
	return root, nil
}

// findServers finds the directory's MCP servers as what they would start. Nothing in the file is dropped in silence: what cannot be
// read is a notice.
func (c *Client) findServers(ctx context.Context, directory string) ([]Executable, []transcript.Notice) {
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, nil // the start itself says so
	}
	list, err := c.servers(ctx, directory)
	if err == nil || ctx.Err() != nil {
		return list, nil
	}
	title := "The MCP servers of this directory cannot be read; the agent gets none of them"
	if len(list) > 0 {
		title = "Some MCP servers of this directory cannot be read; the agent does not get them"
	}
	return list, []transcript.Notice{{Severity: "error", Title: title, Description: transcript.ClipText(err.Error())}}
}

// What a person is asked about at once, of each file. More is nothing to be read, and may be meant not to be.
const (
	mostEntries   = 200
	longestDetail = 32 << 10  // with the name
	longestList   = 256 << 10 // bytes of all of them
	longestReview = 10 * time.Second
)

// reading counts what there is to be read.
type reading struct {
	begun         time.Time
	entries, size int
	left          int
	long          []error
}

// full tells that there is enough of it, and counts what is left out.
func (r *reading) full(ctx context.Context) bool {
	if r.entries < mostEntries && r.size < longestList && time.Since(r.begun) < longestReview && ctx.Err() == nil {
		return false
	}
	r.left++
	return true
}

func (r *reading) takes(e Executable) bool {
	size := len(e.Name) + len(e.Detail)
	if size > longestDetail {
		r.long = append(r.long, fmt.Errorf("what %.100q would start is too long to be read by a person", e.Name))
		return false
	}
	r.entries, r.size = r.entries+1, r.size+size
	return true
}

func (r *reading) problem() error {
	err := errors.Join(r.long...)
	if r.left > 0 {
		err = errors.Join(err, fmt.Errorf("%d more entries are too many to be read by a person", r.left))
	}
	return err
}

// servers reads the entries of mcp.json, by name. Beside the ones that can be used it tells of the others.
func (c *Client) servers(ctx context.Context, directory string) ([]Executable, error) {
	root, err := openDirectory(directory)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := c.entries(ctx, root)
	var list []Executable
	reading := reading{begun: time.Now()}
	for _, s := range entries {
		if reading.full(ctx) {
			continue
		}
		if e := c.executable(ctx, s, root, directory); reading.takes(e) {
			list = append(list, e)
		}
	}
	return list, errors.Join(err, reading.problem())
}

// entries reads mcp.json, by name, and tells what of it cannot be used.
func (c *Client) entries(ctx context.Context, root *os.Root) (list []mcp.Server, err error) {
	entries, err := config.Open(root, c.cfg.Replace).List(ctx, config.MCP)
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

// variables finds the environment variables of the agents. It waits for the login shell only when one is looked for.
func (c *Client) variables(ctx context.Context) func(name string) (string, bool) {
	lookup := sync.OnceValue(func() func(string) (string, bool) { return mcp.Lookup(c.cfg.Agents.Environ(ctx)) })
	return func(name string) (string, bool) { return lookup()(name) }
}

func (c *Client) executable(ctx context.Context, s mcp.Server, root *os.Root, directory string) Executable {
	r := s.Review(root, directory, c.variables(ctx))
	return Executable{Kind: "mcp", Name: s.Name, Hash: r.Hash, Detail: c.secret.KnownOnly(r.Detail), off: !s.Enabled, server: &s}
}
