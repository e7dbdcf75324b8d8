package demoagent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echoed struct {
	Text string `json:"text"`
}

// ToolServer is an MCP server with a tool for every kind of answer.
func ToolServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "returns the text"},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoed) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: in.Text + os.Getenv("DEMOAGENT_TEST_SUFFIX")},
				&mcp.ImageContent{Data: []byte{1, 2}, MIMEType: "image/png"},
				&mcp.ResourceLink{URI: "file:///a", Name: "a"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b"}},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///c", Blob: []byte{3}}},
			}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("the tool failed")
	})
	return server
}

// webServer serves handler over HTTP to requests with the right header.
func webServer(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func servers(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	give := func(*http.Request) *mcp.Server { return ToolServer() }
	headers := []nameValue{{"Authorization", "Bearer secret"}}
	web := webServer(t, mcp.NewStreamableHTTPHandler(give, nil))
	list := []map[string]any{
		{"name": "local", "command": self, "args": []string{}, "env": []nameValue{{RunVariable, "mcp"}, {"DEMOAGENT_TEST_SUFFIX", "!"}}},
		{"type": "http", "name": "web server", "url": web, "headers": headers},
		{"type": "sse", "name": "old", "url": webServer(t, mcp.NewSSEHandler(give, nil)), "headers": headers},
		{"type": "http", "name": "closed", "url": web, "headers": []nameValue{}},
		{"name": "missing", "command": "/nowhere/at/all", "args": []string{}, "env": []nameValue{}},
		{"name": "dies", "command": self, "args": []string{}, "env": []nameValue{{RunVariable, "die"}}},
	}
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// These tests run in real time, since processes and sockets cannot run in a synctest bubble.

func TestMCP(t *testing.T) {
	p := start(t)
	session := p.sessionIn(allCapabilities, t.TempDir(), servers(t))
	turn := p.prompt(session, "mcp")
	turn.wantStop(t, "end_turn")
	for _, want := range []string{
		"- `local/echo` returns the text\n- `local/fail` \n", "- `web server/echo` returns the text", "- `old/echo` returns the text",
		"MCP server `closed` failed", "MCP server `missing` failed", "MCP server `dies` failed",
	} {
		turn.wantSaid(t, want)
	}
	for i, want := range []string{"completed", "completed", "completed", "failed", "failed", "failed"} {
		if got := turn.tool(t, i); got["status"] != want {
			t.Errorf("tool call %d: %v", i, got)
		}
	}
}

func TestCall(t *testing.T) {
	p := start(t)
	session := p.sessionIn(allCapabilities, t.TempDir(), servers(t))
	said := map[string]string{
		`call local/echo {"text":"crash"}`:        "`local/echo` answered:\n\n```\ncrash!\n```",
		"Call web server/echo{\n\"text\":\"hi\"}": "`web server/echo` answered:\n\n```\nhi\n```",
		`/call old/echo {"text":"hi"}`:            "`old/echo` answered:",
		`call local/fail`:                         "`local/fail` answered with an error:\n\n```\nthe tool failed\n```",
		`call local/nothing`:                      "`local/nothing` failed:",
		`call missing/echo {}`:                    "`missing/echo` failed:",
		`call other/echo {}`:                      "I cannot call that: this session has no MCP server of that name.",
		`call local/echo {"text":`:                "I cannot call that: the arguments are not a JSON object.",
		`call local/echo null`:                    "I cannot call that: the arguments are not a JSON object.",
		`call`:                                    "I cannot call that: write `call <server>/<tool> {json}`.",
	}
	for prompt, want := range said {
		turn := p.prompt(session, prompt)
		turn.wantStop(t, "end_turn")
		turn.wantSaid(t, want)
		if strings.HasPrefix(prompt, "call local/echo {\"text\":\"crash\"") {
			call := turn.tool(t, 0)
			if call["name"] != "mcp__local__echo" || call["status"] != "completed" || len(call["content"].([]any)) != 5 {
				t.Errorf("tool call %v", call)
			}
		}
	}
}

func TestMCPWithoutServers(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		p.prompt(session, "mcp").wantSaid(t, "This session has no MCP servers.")
	})
}
