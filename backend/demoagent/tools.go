package demoagent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// clientServer is the name of the MCP server with the client's own tools.
const clientServer = "deskhand"

// attach shows files to the person. An argument that is an object is the tool's input.
func attach(ctx context.Context, t *turn) {
	if strings.HasPrefix(t.in.args, "{") {
		t.callClient(ctx, "attachment_add", json.RawMessage(t.in.args))
		return
	}
	paths := strings.Fields(t.in.args)
	if len(paths) == 0 {
		paths = []string{demoFile}
	}
	t.callClient(ctx, "attachment_add", map[string]any{"paths": paths})
}

func download(ctx context.Context, t *turn) {
	t.callClient(ctx, "attachment_download", map[string]any{})
}

func askUser(ctx context.Context, t *turn) {
	t.callClient(ctx, "ask_user", map[string]any{
		"prompt": "Which colour shall the lighthouse have?", "options": []string{"Red", "White"}, "allowFreeText": true,
	})
}

// callClient calls a tool of the client.
func (t *turn) callClient(ctx context.Context, tool string, input any) {
	servers := t.servers()
	i := slices.IndexFunc(servers, func(s mcpServer) bool { return s.Name == clientServer })
	if i < 0 {
		t.say(ctx, "This client has given me no tools of its own.")
		return
	}
	raw, err := json.Marshal(input)
	if err != nil { // a person has typed the input
		t.say(ctx, fmt.Sprintf("I cannot call that: %v.", errArguments))
		return
	}
	t.call(ctx, invocation{server: servers[i], tool: tool, arguments: raw})
}
