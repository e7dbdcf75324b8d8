package demoagent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// askToRun asks for permission to run a command, and reports the answer. No command is run.
func askToRun(ctx context.Context, t *turn) {
	command := cmp.Or(strings.TrimSpace(t.in.args), "git status")
	call := ToolCall{
		Title: "`" + command + "`", Name: "run_command", Kind: "execute", Status: "pending",
		RawInput: map[string]any{"command": command, "cwd": t.cwd()},
	}
	call.ToolCallID = t.open(ctx, call)
	if ctx.Err() != nil {
		return
	}
	call.SessionUpdate = ""
	r, answered := t.agent.ask(ctx, "session/request_permission", permissionRequest{
		SessionID: t.session.id, ToolCall: call, Options: []permissionOption{
			{OptionID: allowOnce, Name: "Allow once", Kind: "allow_once"},
			{OptionID: allowAlways, Name: "Always allow", Kind: "allow_always"},
			{OptionID: rejectOnce, Name: "Reject", Kind: "reject_once"},
		},
	})
	if !answered {
		return
	}
	var response permissionResponse
	var told string
	ended := "failed"
	switch {
	case r.err != nil:
		told = inWords(r.err)
	case json.Unmarshal(r.result, &response) != nil:
		told = "The answer to my question could not be read."
	case response.Outcome.Outcome == "selected":
		told = fmt.Sprintf("You chose `%s`.", response.Outcome.OptionID)
		if response.Outcome.OptionID != rejectOnce {
			ended = "completed"
		}
	default:
		told = "The request was dismissed."
	}
	t.change(ctx, call.ToolCallID, ToolCall{Status: ended, Content: []any{content(text(told + " Nothing was run."))}})
	t.say(ctx, told+" Nothing was run.")
}
