package httpapi

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/config"
	"deskhand/backend/files"
)

// entryCalls serves the three calls on a kind of configuration entry.
type entryCalls struct {
	api         *API
	kind        config.Kind
	name, alias string // of the parameter that names the entry
}

// entryEndpoints returns the endpoints under /v1/config.
func (a *API) entryEndpoints(s *spec) []endpoint {
	mcp := entryCalls{a, config.MCP, "mcpName", "mcp_name"}
	skills := entryCalls{a, config.Skills, "skillName", "skill_name"}
	return append(mcp.endpoints(s, "McpServer", "MCP server"), skills.endpoints(s, "Skill", "skill")...)
}

func (c entryCalls) endpoints(s *spec, id, what string) []endpoint {
	path := " /v1/config/" + string(c.kind)
	params := []*huma.Param{
		inQuery("directory", "Directory of the entry: relative to the first root, or absolute and inside a root", true),
		inQuery(c.name, "Name of the entry; "+c.alias+" is an alias", true),
	}
	content := map[string]*huma.MediaType{"application/json": {Schema: s.entrySchema(c.kind)}}
	return []endpoint{
		{
			pattern: "GET" + path, serve: c.get, id: "get" + id, summary: "Get one " + what, params: params,
			text:    "In canonical form: proper names instead of aliases, no absent options, unknown fields unchanged.",
			answers: map[int]*huma.Response{200: {Description: "The entry", Content: content}},
			refuses: []string{"invalid_request", "not_found", "conflict", "stream_error"},
		},
		{
			pattern: "PUT" + path, serve: c.put, id: "put" + id, summary: "Store one " + what, params: params,
			text:    "A missing directory is made, inside the roots.",
			body:    &huma.RequestBody{Required: true, Content: content},
			answers: map[int]*huma.Response{204: noContent("Stored")},
			refuses: []string{"invalid_request", "conflict", "unsupported_media_type", "payload_too_large", "stream_error"},
		},
		{
			pattern: "DELETE" + path, serve: c.remove, id: "delete" + id, summary: "Remove one " + what, params: params,
			answers: map[int]*huma.Response{204: noContent("The entry does not exist now, whether it existed before or not")},
			refuses: []string{"invalid_request", "conflict", "stream_error"},
		},
	}
}

// open opens the configuration of the request's directory; the caller must call done.
func (c entryCalls) open(r *http.Request) (store *config.Store, name string, done func(), err error) {
	q, err := queryOf(r)
	if err != nil {
		return nil, "", nil, err
	}
	directory, err := q.require("directory")
	if err != nil {
		return nil, "", nil, err
	}
	if name, err = q.require(c.name, c.alias); err != nil {
		return nil, "", nil, err
	}
	root, err := c.api.files.Root(directory)
	if err != nil {
		return nil, "", nil, err
	}
	if err = c.allowed(directory); err != nil {
		_ = root.Close() // nothing was written
		return nil, "", nil, err
	}
	return config.Open(root, files.Replace), name, func() { _ = root.Close() }, nil // only read from
}

// makeDirectory makes the request's directory if missing, provided that the entry is valid.
func (c entryCalls) makeDirectory(r *http.Request, entry []byte) error {
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	directory, err := q.require("directory")
	if err != nil {
		return err
	}
	name, err := q.require(c.name, c.alias)
	if err != nil {
		return err
	}
	if _, err := c.api.files.Directory(directory); !errors.Is(err, files.ErrNotFound) {
		return err
	}
	if err := config.CheckName(name); err != nil {
		return err
	}
	if _, err := config.Canonical(c.kind, entry); err != nil {
		return err
	}
	_, err = c.api.files.MakeDir(directory)
	return err
}

// allowed refuses a folder or a file of entries that links to private data: package config follows links inside the directory, and does not
// know the private directories.
func (c entryCalls) allowed(directory string) error {
	folder, file := config.Place(c.kind)
	_, err := c.api.files.Directory(filepath.Join(directory, folder))
	if err == nil {
		var f *os.File
		if f, _, err = c.api.files.Open(filepath.Join(directory, folder, file)); err == nil {
			_ = f.Close() // not even read from
		}
	}
	if errors.Is(err, files.ErrOutside) {
		return err
	}
	return nil // config reports every other error
}

func (c entryCalls) get(w http.ResponseWriter, r *http.Request) {
	store, name, done, err := c.open(r)
	if err != nil {
		c.api.refuse(w, err)
		return
	}
	defer done()
	entry, err := store.Get(r.Context(), c.kind, name)
	if err != nil {
		c.api.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(entry) // fails only when the caller is gone
}

func (c entryCalls) put(w http.ResponseWriter, r *http.Request) {
	entry, err := readJSON(w, r)
	if err == nil {
		err = c.makeDirectory(r, entry)
	}
	if err != nil {
		c.api.refuse(w, err)
		return
	}
	c.change(w, r, func(ctx context.Context, store *config.Store, name string) error {
		return store.Put(ctx, c.kind, name, entry)
	})
}

// remove also answers 204 for a missing directory, which has no such entry.
func (c entryCalls) remove(w http.ResponseWriter, r *http.Request) {
	c.change(w, r, func(ctx context.Context, store *config.Store, name string) error {
		return store.Delete(ctx, c.kind, name)
	})
}

func (c entryCalls) change(w http.ResponseWriter, r *http.Request, f func(context.Context, *config.Store, string) error) {
	store, name, done, err := c.open(r)
	if err == nil {
		err = f(r.Context(), store, name)
		done()
	}
	if err != nil && (r.Method != http.MethodDelete || !errors.Is(err, files.ErrNotFound)) {
		c.api.refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// entrySchema returns the schema of an entry, which is written by hand: package config accepts more than it returns.
func (s *spec) entrySchema(kind config.Kind) *huma.Schema {
	name := map[config.Kind]string{config.MCP: "McpServerConfig", config.Skills: "SkillsConfig"}[kind]
	if s.registry.Map()[name] == nil {
		if kind == config.MCP {
			s.registry.Map()[name] = &huma.Schema{OneOf: []*huma.Schema{localServer(), remoteServer()}}
		} else {
			s.registry.Map()[name] = skillSources()
		}
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

func object(description string, required []string, properties map[string]*huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: description, Required: required, Properties: properties, AdditionalProperties: true}
}

func textSchema(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: description}
}

func textList(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Description: description, Items: textSchema("")}
}

func textMap(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: description, AdditionalProperties: textSchema("")}
}

func oneOf(values ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: values} }

func localServer() *huma.Schema {
	return object("MCP server on stdio, started by the agent", []string{"type", "command"}, map[string]*huma.Schema{
		"type":    oneOf("local", "stdio"),
		"command": {Description: "The program, alone or with arguments", OneOf: []*huma.Schema{textSchema(""), textList("")}},
		"args":    textList("Arguments; always present in answers"), "env": textMap("Alias: environment"), "cwd": textSchema(""),
		"enabled": {Type: huma.TypeBoolean, Description: "false: no agent gets the server. disabled is accepted as the opposite, isActive as an alias"}, "timeoutMs": {Type: huma.TypeInteger, Description: "Alias: timeout"},
	})
}

func remoteServer() *huma.Schema {
	return object("MCP server over HTTP", []string{"type", "url"}, map[string]*huma.Schema{
		"type": oneOf("remote", "http", "sse"), "url": textSchema(""), "headers": textMap(""), "bearerTokenEnvVar": textSchema("Environment variable that holds the token"),
		"envHeaders": textMap("Environment variables with the values of headers, by header. Alias: envHttpHeaders"),
		"oauth": {OneOf: []*huma.Schema{
			{Type: huma.TypeBoolean},
			object("", nil, map[string]*huma.Schema{"clientId": textSchema(""), "clientSecret": textSchema(""), "scope": textSchema("")}),
		}},
		"enabled": {Type: huma.TypeBoolean, Description: "false: no agent gets the server. disabled is accepted as the opposite, isActive as an alias"}, "timeoutMs": {Type: huma.TypeInteger, Description: "Alias: timeout"}, "transport": oneOf("http", "sse"),
	})
}

func skillSources() *huma.Schema {
	source := object("Source of skills", []string{"type", "source"}, map[string]*huma.Schema{
		"type": oneOf("github", "git", "local"), "source": textSchema(""), "skills": textList("Only these"), "ref": textSchema(""), "subpath": textSchema(""),
	})
	return object("Skills of a directory", []string{"sources"}, map[string]*huma.Schema{"sources": {Type: huma.TypeArray, Items: source}})
}
