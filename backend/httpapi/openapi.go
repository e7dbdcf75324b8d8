package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// endpoint is a call of /v1: its handler together with its description in the document, so that neither can be missing.
type endpoint struct {
	pattern string // "METHOD /path/{name}"
	serve   http.HandlerFunc
	id      string // operationId
	summary string
	text    string
	params  []*huma.Param // besides those of the path
	body    *huma.RequestBody
	answers map[int]*huma.Response
	refuses []string // suffixes of its problems, besides those of every guarded call
}

// runtimeVersion is the version of the contract, not of the program.
const runtimeVersion = "1"

// spec builds the OpenAPI document of /v1 from endpoints. The client API has its own document; see client.go.
type spec struct{ registry huma.Registry }

func newSpec() *spec {
	setUpHuma()
	return &spec{huma.NewMapRegistry("#/components/schemas/", schemaName)}
}

// schemaName returns the type's name, capitalised.
func schemaName(t reflect.Type, hint string) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch name := t.Name(); name {
	case "":
		return hint
	case "document":
		return "Problem"
	case "Info":
		return "AgentInfo"
	default:
		return strings.ToUpper(name[:1]) + name[1:]
	}
}

// record returns a JSON response with the schema of T.
func record[T any](s *spec, description string) *huma.Response {
	return &huma.Response{Description: description, Content: s.content(reflect.TypeFor[T]())}
}

// recordBody returns a JSON request body with the schema of T.
func recordBody[T any](s *spec, description string) *huma.RequestBody {
	return &huma.RequestBody{Description: description, Required: true, Content: s.content(reflect.TypeFor[T]())}
}

func (s *spec) content(t reflect.Type) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: s.registry.Schema(t, true, t.Name())}}
}

// bytesOf returns the content of a body that is not JSON.
func bytesOf(description string, media ...string) map[string]*huma.MediaType {
	content := map[string]*huma.MediaType{}
	for _, m := range media {
		content[m] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Description: description}}
	}
	return content
}

func noContent(description string) *huma.Response { return &huma.Response{Description: description} }

func inQuery(name, description string, required bool) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Required: required, Schema: &huma.Schema{Type: huma.TypeString}}
}

func flagInQuery(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: &huma.Schema{Type: huma.TypeBoolean}}
}

func inHeader(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// everywhere returns the problems of every guarded call.
func everywhere() []string {
	return []string{"token_invalid", "permission_denied", "misdirected_request", "too_many_requests"}
}

// document returns the encoded document.
func (s *spec) document(endpoints []endpoint) ([]byte, error) {
	api := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Deskhand runtime", Version: runtimeVersion,
			Description: "A proxy between HTTP and agents that speak ACP (Agent Client Protocol) on stdio, with the agents, files and " +
				"configuration that go with it. Errors are problem documents (RFC 9457) everywhere.",
			License: &huma.License{Name: "MIT", Identifier: "MIT"},
		},
		Servers:  []*huma.Server{{URL: "http://127.0.0.1:2468", Description: "Default address of deskhand server"}},
		Security: []map[string][]string{{"token": {}}},
		Tags: []*huma.Tag{
			{Name: "server", Description: "The server itself"},
			{Name: "acp", Description: "Messages to and from agents"},
			{Name: "agents", Description: "Agents and their installation"},
			{Name: "fs", Description: "Files inside of the roots"},
			{Name: "config", Description: "MCP servers and skills of a directory: stored and returned, never acted on"},
		},
		Components: &huma.Components{
			Schemas:   s.registry,
			Responses: map[string]*huma.Response{},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"token": {Type: "http", Scheme: "bearer", Description: "The token of the data directory, or the one that the server was started with"},
			},
		},
		Paths: map[string]*huma.PathItem{},
	}
	for _, e := range endpoints {
		api.AddOperation(s.operation(api.Components.Responses, e))
	}
	return json.MarshalIndent(api, "", "  ")
}

// operation describes an endpoint.
func (s *spec) operation(shared map[string]*huma.Response, e endpoint) *huma.Operation {
	method, path, _ := strings.Cut(e.pattern, " ")
	op := &huma.Operation{
		Method: method, Path: path, OperationID: e.id, Summary: e.summary, Description: e.text, Parameters: pathParams(path),
		RequestBody: e.body, Responses: map[string]*huma.Response{}, Tags: []string{tagOf(path)},
	}
	op.Parameters = append(op.Parameters, e.params...)
	for status, answer := range e.answers {
		op.Responses[strconv.Itoa(status)] = answer
	}
	refuses := slices.Clone(e.refuses)
	if under(path, "/v1") {
		refuses = append(refuses, everywhere()...)
	} else {
		op.Security = []map[string][]string{{}}
	}
	for _, suffix := range refuses {
		s.refuse(op, shared, suffix)
	}
	return op
}

// refuse adds a problem to an operation. Problems with the same status share a response, named after all of them.
func (s *spec) refuse(op *huma.Operation, shared map[string]*huma.Response, suffix string) {
	status := strconv.Itoa(statusOf(suffix))
	name := suffix
	if had := op.Responses[status]; had != nil {
		name = strings.TrimPrefix(had.Ref, "#/components/responses/")
		if slices.Contains(strings.Split(name, "."), suffix) {
			return
		}
		name += "." + suffix
	}
	if shared[name] == nil {
		types := strings.Split(name, ".")
		for i, t := range types {
			types[i] = "urn:sandbox-agent:error:" + t
		}
		shared[name] = &huma.Response{
			Description: "Problem of type " + strings.Join(types, " or "),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: s.registry.Schema(reflect.TypeFor[document](), true, "Problem")}},
		}
	}
	op.Responses[status] = &huma.Response{Ref: "#/components/responses/" + name}
}

// pathParams returns the parameters in a path.
func pathParams(path string) []*huma.Param {
	var params []*huma.Param
	for segment := range strings.SplitSeq(path, "/") {
		name, isName := strings.CutPrefix(segment, "{")
		name = strings.TrimSuffix(name, "}")
		if !isName {
			continue
		}
		p := &huma.Param{Name: name, In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}
		switch name {
		case "server_id":
			p.Description = "The client's own name for one agent process"
			p.Schema.Pattern = serverIDForm.String()
		case "agent":
			p.Description = "Id of an agent, from GET /v1/agents"
		}
		params = append(params, p)
	}
	return params
}

func tagOf(path string) string {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok || rest == "health" {
		return "server"
	}
	tag, _, _ := strings.Cut(rest, "/")
	return tag
}
