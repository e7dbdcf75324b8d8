package demoagent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/acp"
)

// connectTime limits the start of an MCP server.
const connectTime = 30 * time.Second

// connect opens an MCP server of session/new. A connection lasts for a single step of a turn, since the demo keeps no state there. The caller
// calls done to close the connection.
func (t *turn) connect(ctx context.Context, server mcpServer) (peer *mcp.ClientSession, done func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(connectTime, cancel) // a deadline of ctx would also end the open connection
	base := &http.Transport{Proxy: http.ProxyFromEnvironment}
	release := func() {
		cancel()
		base.CloseIdleConnections()
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "deskhand-demo", Version: version}, nil)
	peer, err = client.Connect(ctx, t.transport(ctx, server, base), nil)
	late.Stop()
	if err != nil {
		release()
		return nil, nil, err
	}
	return peer, func() {
		_ = peer.Close() // every call is answered by now; the server may end in any way
		release()
	}, nil
}

func (t *turn) transport(ctx context.Context, server mcpServer, base http.RoundTripper) mcp.Transport {
	client := &http.Client{Transport: withHeaders{server.Headers, base}}
	switch server.Type {
	case "http":
		return &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: -1}
	case "sse":
		return &mcp.SSEClientTransport{Endpoint: server.URL, HTTPClient: client}
	default:
		command := exec.CommandContext(ctx, server.Command, server.Args...)
		command.Dir, command.Env, command.Stderr = t.cwd(), os.Environ(), os.Stderr
		for _, variable := range server.Env {
			command.Env = append(command.Env, variable.Name+"="+variable.Value)
		}
		return &mcp.CommandTransport{Command: command, TerminateDuration: time.Second}
	}
}

// withHeaders adds the headers of session/new to every request.
type withHeaders struct {
	headers []nameValue
	next    http.RoundTripper
}

func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for _, header := range w.headers {
		r.Header.Set(header.Name, header.Value)
	}
	return w.next.RoundTrip(r)
}

func (t *turn) servers() []mcpServer {
	t.agent.mu.Lock()
	defer t.agent.mu.Unlock()
	return t.session.servers
}

// listTools lists the tools of every server, or the reason why a server does not answer.
func listTools(ctx context.Context, t *turn) {
	servers := t.servers()
	if len(servers) == 0 {
		t.say(ctx, "This session has no MCP servers.")
		return
	}
	for _, server := range servers {
		id := t.open(ctx, ToolCall{
			Title: "List the tools of " + server.Name, Name: "list_mcp_tools", Kind: "other", Status: "in_progress",
			RawInput: map[string]any{"server": server.Name},
		})
		list, err := t.toolsOf(ctx, server)
		if err != nil {
			list = fmt.Sprintf("MCP server `%s` failed: %v", server.Name, err)
			t.change(ctx, id, ToolCall{Status: "failed", Content: []any{content(text(list))}})
		} else {
			t.change(ctx, id, ToolCall{Status: "completed", Content: []any{content(text(list))}})
		}
		t.say(ctx, list)
	}
}

func (t *turn) toolsOf(ctx context.Context, server mcpServer) (string, error) {
	peer, done, err := t.connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer done()
	var list strings.Builder
	fmt.Fprintf(&list, "Tools of `%s`:\n\n", server.Name)
	none := true
	for tool, err := range peer.Tools(ctx, nil) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&list, "- `%s/%s` %s\n", server.Name, tool.Name, tool.Description)
		none = false
	}
	if none {
		list.WriteString("- none\n")
	}
	return list.String(), nil
}

// invocation is the parsed text after "call".
type invocation struct {
	server    mcpServer
	tool      string
	arguments json.RawMessage
}

var (
	errNoInvocation = errors.New("write `call <server>/<tool> {json}`")
	errNoServer     = errors.New("this session has no MCP server of that name")
	errArguments    = errors.New("the arguments are not a JSON object")
)

// invocation parses the rest of the prompt: <server>/<tool>, followed by an object or nothing. Server names may contain spaces.
func (t *turn) invocation() (invocation, error) {
	rest := t.in.args
	if !strings.Contains(rest, "/") {
		return invocation{}, errNoInvocation
	}
	for _, server := range t.servers() {
		after, found := strings.CutPrefix(rest, server.Name+"/")
		if !found {
			continue
		}
		call := invocation{server: server, tool: strings.TrimSpace(after), arguments: json.RawMessage("{}")}
		if end := strings.IndexAny(after, " \t\n{"); end >= 0 {
			call.tool = after[:end]
			if given := strings.TrimSpace(after[end:]); given != "" {
				call.arguments = json.RawMessage(given)
			}
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(call.arguments, &object) != nil || object == nil {
			return invocation{}, errArguments
		}
		return call, nil
	}
	return invocation{}, errNoServer
}

func callTool(ctx context.Context, t *turn) {
	call, err := t.invocation()
	if err != nil {
		t.say(ctx, fmt.Sprintf("I cannot call that: %v.", err))
		return
	}
	t.call(ctx, call)
}

// call calls a tool and reports the result.
func (t *turn) call(ctx context.Context, call invocation) {
	name := call.server.Name + "/" + call.tool
	id := t.open(ctx, ToolCall{
		Title: name, Name: "mcp__" + call.server.Name + "__" + call.tool, Kind: "other", Status: "in_progress", RawInput: call.arguments,
	})
	result, err := t.invoke(ctx, call)
	if err != nil {
		t.change(ctx, id, ToolCall{Status: "failed", Content: []any{content(text(err.Error()))}})
		t.say(ctx, fmt.Sprintf("`%s` failed: %v", name, err))
		return
	}
	ended := ToolCall{Status: "completed"}
	if raw, err := json.Marshal(result); err == nil { // an unencodable part of the foreign result is left out
		ended.RawOutput = json.RawMessage(raw)
	}
	var told []string
	for _, part := range result.Content {
		block := contentOf(part)
		ended.Content = append(ended.Content, content(block))
		if words, isText := block.(textBlock); isText {
			told = append(told, words.Text)
		}
	}
	answered := "answered"
	if result.IsError {
		ended.Status, answered = "failed", "answered with an error"
	}
	t.change(ctx, id, ended)
	t.say(ctx, fmt.Sprintf("`%s` %s:\n\n%s", name, answered, acp.Fenced("", strings.Join(told, "\n"))))
}

func (t *turn) invoke(ctx context.Context, call invocation) (*mcp.CallToolResult, error) {
	peer, done, err := t.connect(ctx, call.server)
	if err != nil {
		return nil, err
	}
	defer done()
	return peer.CallTool(ctx, &mcp.CallToolParams{Name: call.tool, Arguments: call.arguments})
}

// contentOf converts a tool's result into ACP's block of the same kind.
func contentOf(part mcp.Content) any {
	encode := base64.StdEncoding.EncodeToString
	switch c := part.(type) {
	case *mcp.TextContent:
		return text(c.Text)
	case *mcp.ImageContent:
		return mediaBlock{Type: "image", Data: encode(c.Data), MimeType: c.MIMEType}
	case *mcp.AudioContent:
		return mediaBlock{Type: "audio", Data: encode(c.Data), MimeType: c.MIMEType}
	case *mcp.ResourceLink:
		return linkBlock{
			Type: "resource_link", URI: c.URI, Name: c.Name, Title: c.Title,
			Description: c.Description, MimeType: c.MIMEType, Size: c.Size,
		}
	case *mcp.EmbeddedResource:
		resource := c.Resource
		if resource.Blob != nil {
			file := blobResource{URI: resource.URI, MimeType: resource.MIMEType, Blob: encode(resource.Blob)}
			return resourceBlock{Type: "resource", Resource: file}
		}
		file := textResource{URI: resource.URI, MimeType: resource.MIMEType, Text: resource.Text}
		return resourceBlock{Type: "resource", Resource: file}
	default:
		return text(fmt.Sprintf("[a part of type %T that ACP does not know]", part))
	}
}
