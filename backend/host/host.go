// Package host says what the machine of an agent offers to a session beside the agent itself.
//
// The local host is the machine of this program. Runtimes elsewhere start agents too, but offer a session nothing else: their directories
// cannot be seen from here. A session never asks whether its host is local. A session asks its host for a capability, and a capability that
// is nil is absent.
package host

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"deskhand/backend/agents"
	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
)

// Local is the id of the machine of this program, among the ids of the places that sessions run at.
const Local = "local"

// Capabilities are the services of a host to the sessions on that host.
type Capabilities struct {
	Agents      *agents.Catalogue // agents that this program starts itself; elsewhere the runtime starts its own
	Directories *Directories      // the host's directories can be looked at
	Files       *Files            // agents read and write files, and run programs, through the session
	Snapshots   *snapshot.Library // states of directories around turns
	Tools       *Tools            // the MCP server of Deskhand's own tools
}

// Startable refuses an agent that is not in the host's catalogue. A runtime elsewhere judges its agents itself. When agents.json cannot be read,
// the refusal says so, since the agent may be defined there.
func (c Capabilities) Startable(agent string) error {
	if c.Agents == nil || c.Agents.Known(agent) {
		return nil
	}
	refused := refusal.Bad("agent.unknown", "agent", agent)
	if err := c.Agents.Definitions().Problem(); err != nil {
		refused.Params["detail"] = err.Error()
	}
	return refused
}

// Hosts knows the capabilities of every place. The zero Hosts offers nothing anywhere.
type Hosts struct{ Local Capabilities }

// At returns the capabilities of a place. An empty place is the local host.
func (h Hosts) At(place string) Capabilities {
	if cmp.Or(place, Local) == Local {
		return h.Local
	}
	return Capabilities{}
}

// Files are what agents may do to files through a session: inside of the roots, whatever links say, and never in directories of Deskhand's
// own. An error that is fs.ErrNotExist or fs.ErrInvalid is told to the agent as such, with the error's text.
type Files struct {
	Open      func(roots []string, path string) (*os.File, error)               // a regular file
	Write     func(roots []string, path string, content io.Reader) error        // whole or not at all, with the parents of path
	Directory func(roots []string, path string) (absolute string, failed error) // a directory that exists
}

// Tools is the MCP server whose tools the agent of a session gets from Deskhand.
type Tools struct {
	// Give returns the server as an element of mcpServers, for an agent that takes these transports, the best transport first; ok is false where
	// there is no server for the agent. Listed is closed when the agent has fetched the list of the tools. Give is called at each session/new, load
	// and resume, and ends the server that Give returned before.
	Give func(session string, transports []string) (server json.RawMessage, listed <-chan struct{}, ok bool)
	// End ends the server of a session whose agent is gone.
	End func(session string)
}

// Roots returns the directories of a session whose files can be reached from here, the working directory first. Without the capability Roots
// returns nil.
func (d *Directories) Roots(cwd string, further []string) []string {
	if d == nil {
		return nil
	}
	return append([]string{cwd}, further...)
}

// Reach is Roots with every link of the paths resolved.
func (d *Directories) Reach(cwd string, further []string) []string {
	list := d.Roots(cwd, further)
	for i, dir := range list {
		list[i] = Resolve(dir)
	}
	return list
}

// Resolve returns a clean path with every link resolved. A path that cannot be resolved is returned as given.
func Resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Clean(path)
}

// Within reports whether path is dir, or lies below dir.
func Within(dir, path string) bool {
	way, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(way)
}

// Overlap reports whether dir is within one of the directories of reach, or one of these is within dir.
func Overlap(reach []string, dir string) bool {
	return slices.ContainsFunc(reach, func(r string) bool { return Within(r, dir) || Within(dir, r) })
}
