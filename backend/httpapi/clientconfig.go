package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/config"
	"deskhand/backend/launch"
)

// InScope is the parameters of a call about a directory, or about all projects. Like NamedEntry, the type is exported because the library
// silently ignores unexported embedded types.
type InScope struct {
	Directory string `query:"directory" maxLength:"4096" doc:"Absolute path of a directory; required unless scope is all"`
	Scope     string `query:"scope" enum:"all" doc:"All: the entries of all projects, and not those of a directory"`
}

// Resolve refuses a call about neither.
func (in *InScope) Resolve(huma.Context) []error {
	if in.Directory == "" && in.Scope == "" {
		return []error{&huma.ErrorDetail{Location: "query.directory", Message: "a directory is required unless scope is all", Value: in.Directory}}
	}
	return nil
}

// place returns the directory in the form of package launch.
func (in *InScope) place() string {
	if in.Scope != "" {
		return launch.AllProjects
	}
	return in.Directory
}

// NamedEntry is the parameters of a call about an entry of a configuration.
type NamedEntry struct {
	InScope

	Name string `query:"name" required:"true" minLength:"1" maxLength:"256" doc:"Name of the entry"`
}

// SeenEntry is the parameters of a call on behalf of a person who was shown an entry.
type SeenEntry struct {
	NamedEntry

	Seen string `query:"seen" maxLength:"100" doc:"Hash of the entry as it was shown; absent for a new entry. When the stored entry or the programs that it runs have changed since, the call approves nothing"`
}

type executableList struct {
	Items []launch.Executable `json:"items"`
}

// trustRoutes adds the routes about the approvals in a directory.
func (c *Client) trustRoutes() {
	gate := c.lib.launch
	register(c, op("listTrust", http.MethodGet, "trust", "List the executables of a directory (MCP servers, skills, those of all projects included), or of all projects, with their approvals", http.StatusOK),
		func(ctx context.Context, in *InScope) (*body[executableList], error) {
			list, err := gate.Executables(ctx, in.place())
			if list == nil {
				list = []launch.Executable{}
			}
			return answer(executableList{list}, err)
		})
	huma.Register(c.api, op("approve", http.MethodPost, "trust", "Approve executables of a directory by their hashes: all of them or none", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			Body struct {
				Directory string   `json:"directory,omitempty" maxLength:"4096" doc:"Required unless scope is all"`
				Scope     string   `json:"scope,omitempty" enum:"all"`
				Hashes    []string `json:"hashes" minItems:"1" maxItems:"1000"`
			}
		},
		) (*none, error) {
			at := InScope{Directory: in.Body.Directory, Scope: in.Body.Scope}
			if wrong := at.Resolve(nil); wrong != nil {
				return nil, huma.Error400BadRequest("validation failed", wrong...)
			}
			return done(gate.Approve(ctx, at.place(), in.Body.Hashes))
		})
	huma.Register(c.api, op("revoke", http.MethodDelete, "trust", "Revoke the approval of an executable of a directory, which need not exist any more; running programs go on", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			InScope

			Hash string `query:"hash" required:"true" minLength:"1" maxLength:"100"`
		},
		) (*none, error) {
			return done(gate.Revoke(ctx, in.Directory, in.Hash))
		})
}

// instructionsRoutes adds the routes about the instructions for agents of a directory and of all projects.
func (c *Client) instructionsRoutes() {
	const path = "config/instructions"
	gate := c.lib.launch
	register(c, op("getInstructions", http.MethodGet, path, "Read the instructions for agents of a directory, or of all projects", http.StatusOK),
		func(ctx context.Context, in *InScope) (*body[launch.Instructions], error) {
			return answer(gate.Instructions(ctx, in.place()))
		})
	register(c, op("putInstructions", http.MethodPut, path, "Store instructions for agents, which approves them; an empty text removes them", http.StatusOK),
		func(ctx context.Context, in *struct {
			InScope

			Body struct {
				Text string `json:"text"`
				Mode string `json:"mode" enum:"append,override"`
				Seen string `json:"seen" maxLength:"100" doc:"Hash of the instructions as they were shown; others, which have come since, are refused"`
			}
		},
		) (*body[launch.Instructions], error) {
			return answer(gate.PutInstructions(ctx, in.place(), in.Body.Seen, in.Body.Mode, in.Body.Text))
		})
}

// mcpRoutes adds the routes about the MCP servers of a directory and of all projects, for people. /v1/config serves the file of a directory
// to other programs: entries written there still need an approval.
func (c *Client) mcpRoutes() {
	const path = "config/mcp"
	gate := c.lib.launch
	register(c, op("listMcpServers", http.MethodGet, path, "List the MCP servers of a directory, or of all projects, with secrets hidden", http.StatusOK),
		func(ctx context.Context, in *InScope) (*body[launch.MCPServers], error) {
			return answer(gate.Servers(ctx, in.place()))
		})
	put := op("putMcpServer", http.MethodPut, path, "Store an MCP server, which approves it", http.StatusOK)
	put.MaxBodyBytes = config.MaxEntry
	register(c, put,
		func(ctx context.Context, in *struct {
			SeenEntry

			Body json.RawMessage `doc:"The entry. A hidden value that is sent back keeps the stored value"`
		},
		) (*body[launch.MCPServer], error) {
			return answer(gate.PutServer(ctx, in.place(), in.Name, in.Seen, in.Body))
		})
	huma.Register(c.api, op("deleteMcpServer", http.MethodDelete, path, "Remove an MCP server", http.StatusNoContent),
		func(ctx context.Context, in *NamedEntry) (*none, error) {
			return done(gate.DeleteServer(ctx, in.place(), in.Name))
		})
	test := op("testMcpServer", http.MethodPost, path+"/test", "Start or call an MCP server and list its tools. Ending the call ends the test", http.StatusOK)
	test.MaxBodyBytes = config.MaxEntry
	register(c, test,
		func(ctx context.Context, in *struct {
			SeenEntry

			Body *struct {
				Entry json.RawMessage `json:"entry,omitempty" doc:"Unstored entry to test; absent = the stored entry, which must be approved"`
			} `required:"false"`
		},
		) (*body[launch.MCPTest], error) {
			var entry json.RawMessage
			if in.Body != nil {
				entry = in.Body.Entry
			}
			return answer(gate.TestServer(ctx, in.place(), in.Name, in.Seen, entry))
		})
}
