package demoagent

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// clientTools are tools of a client that repeat their input.
func clientTools(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, name := range []string{"attachment_add", "attachment_download", "ask_user"} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
			})
	}
	web := webServer(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	raw, err := json.Marshal([]any{map[string]any{"type": "http", "name": "deskhand", "url": web, "headers": []nameValue{{"Authorization", "Bearer secret"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestClientTools(t *testing.T) {
	p := start(t)
	session := p.sessionIn(allCapabilities, t.TempDir(), clientTools(t))
	for prompt, want := range map[string]string{
		"attach":                          "`deskhand/attachment_add` answered:\n\n```\n{\"paths\":[\"deskhand-demo.md\"]}\n```",
		"Please attach plan.png hang.pdf": `{"paths":["plan.png","hang.pdf"]}`,
		`/attach {"path":"a b.png"}`:      `{"path":"a b.png"}`,
		"attach {":                        "I cannot call that",
		"download":                        "`deskhand/attachment_download` answered:\n\n```\n{}\n```",
		"/ask-user":                       `{"allowFreeText":true,"options":["Red","White"],"prompt":`,
	} {
		turn := p.prompt(session, prompt)
		turn.wantStop(t, "end_turn")
		turn.wantSaid(t, want)
	}
}

func TestWithoutClientTools(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		p.prompt(session, "ask user").wantSaid(p.t, "This client has given me no tools of its own.")
	})
}

func TestAttachmentsWord(t *testing.T) {
	inBubble(t, func(p *peer, session, _ string) {
		t := p.t
		turn := p.turn(p.call("session/prompt", map[string]any{
			"sessionId": session,
			"prompt":    json.RawMessage(`[{"type":"text","text":"attachments"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource_link","uri":"file:///w/a.zip","name":"a.zip"}]`),
			"_meta":     json.RawMessage(`{"sandboxagent.dev":{"attachments":[{"path":"/w/a.zip","mime":"application/zip","filename":"a.zip"}]}}`),
		}))
		turn.wantSaid(t, "1. text, 11 bytes\n2. image image/png, 3 bytes\n3. link a.zip, file:///w/a.zip\n")
		turn.wantSaid(t, "- `/w/a.zip` application/zip a.zip\n")
		p.prompt(session, "attachments").wantSaid(t, "Its `_meta` names no files.")
	})
}

// TestProgramsOnly: an agent may accept no addresses.
func TestProgramsOnly(t *testing.T) {
	for _, servers := range []string{"stdio", ""} {
		t.Setenv("DESKHAND_DEMO_MCP", servers)
		p := start(t)
		e := p.mustCall("initialize", map[string]any{"protocolVersion": 1})
		var r initializeResponse
		p.decode(e.result, &r)
		if got, want := r.AgentCapabilities.McpCapabilities, servers == ""; got.HTTP != want || got.SSE != want {
			t.Errorf("initialize with %q: got %+v, want addresses %t", servers, got, want)
		}
	}
}
