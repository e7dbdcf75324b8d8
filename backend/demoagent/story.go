package demoagent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"deskhand/backend/acp"
)

// The steps of a plain prompt's plan.
const (
	stepLook  = "Look at " + demoFile
	stepEdit  = "Change it"
	stepCheck = "Check the result"
)

// plain answers a prompt without any word: plain shows, once and quickly, everything that an agent does.
func plain(ctx context.Context, t *turn) {
	settings := t.settings()
	t.muse(ctx, settings.Thought)
	t.plan(ctx, 0, stepLook, stepEdit, stepCheck)
	t.say(ctx, t.greeting())
	found := t.look(ctx)
	if settings.Mode == modePlan {
		t.plan(ctx, 1, stepLook, stepEdit, stepCheck)
		t.say(ctx, "In **plan mode** I change nothing. Switch the mode to *Ask* or *Code*, and I carry on with this plan.")
		return
	}
	t.plan(ctx, 1, stepLook, stepEdit, stepCheck)
	told, written := t.edit(ctx, found, settings.Mode == modeAsk)
	if !written {
		t.plan(ctx, 1, stepLook)
		t.say(ctx, told)
		return
	}
	t.plan(ctx, 2, stepLook, stepEdit, stepCheck)
	lines := t.count(ctx)
	t.plan(ctx, 3, stepLook, stepEdit, stepCheck)
	answer := fmt.Sprintf("**Done.** %s `%s` has %d lines now.", told, demoFile, lines)
	if !settings.Brief {
		answer += "\n\nSay `help` for what else I can show:\n\n" +
			"- `plan`, `diff`, `terminal`, `markdown`\n- `permission`, `question`, `form`\n- `mcp`, and the tools of your MCP servers\n"
	}
	t.say(ctx, answer)
}

// muse thinks as much as the thought level asks for.
func (t *turn) muse(ctx context.Context, level string) {
	switch level {
	case "low":
		t.think(ctx, "No word of mine in this prompt, so I show one round: look, edit, check.")
	case "high":
		t.think(ctx, "No word of mine in this prompt, so I show one round: look, edit, check.\n\n"+longThought)
	}
}

// greeting repeats the prompt and lists its attachments.
func (t *turn) greeting() string {
	var out strings.Builder
	if t.in.text != "" {
		line, _, _ := strings.Cut(t.in.text, "\n")
		fmt.Fprintf(&out, "You wrote:\n\n> %s\n\n", clip(line, 200))
	}
	attached := false
	seenText := false
	for _, raw := range t.in.blocks {
		b := readBlock(raw)
		if b.Type == "text" && !seenText {
			seenText = true
			continue
		}
		if !attached {
			out.WriteString("With it came:\n\n")
			attached = true
		}
		fmt.Fprintf(&out, "- %s\n", b.describe())
	}
	if attached {
		out.WriteString("\n")
	}
	out.WriteString("I am the **demo agent** of Deskhand. I work offline and know no model, but I speak ACP like any other agent. " +
		"Let me show you one round of work on a file of my own, `" + demoFile + "`.")
	return out.String()
}

// look is the read tool call.
func (t *turn) look(ctx context.Context) seen {
	path := filepath.Join(t.cwd(), demoFile)
	id := t.open(ctx, ToolCall{
		Title: "Read " + demoFile, Name: "read_file", Kind: "read", Status: "in_progress",
		Locations: []Location{{Path: path, Line: 1}}, RawInput: map[string]any{"path": path},
	})
	t.pause(ctx, pace)
	found := readDemoFile(t.cwd())
	shown := ToolCall{Status: "completed"}
	switch {
	case found.err != nil:
		shown.Status = "failed"
		shown.Content = []any{content(text(found.err.Error()))}
	case !found.exists:
		shown.Content = []any{content(text("There is no such file yet."))}
	default:
		shown.Content = []any{content(text(acp.Fenced("markdown", found.text)))}
	}
	t.change(ctx, id, shown)
	return found
}

// count is the execute tool call: count shows the output of `wc -l` without starting a process.
func (t *turn) count(ctx context.Context) int {
	const command = "wc -l " + demoFile
	id := t.open(ctx, ToolCall{
		Title: command, Name: "run_command", Kind: "execute", Status: "in_progress",
		RawInput: map[string]any{"command": command, "cwd": t.cwd()},
	})
	t.pause(ctx, pace)
	found := readDemoFile(t.cwd())
	if found.err != nil || !found.exists {
		t.change(ctx, id, commandOutput("failed", command, "wc: "+demoFile+": it has vanished\n", 1))
		return 0
	}
	lines := strings.Count(found.text, "\n")
	t.change(ctx, id, commandOutput("completed", command, fmt.Sprintf("%d %s\n", lines, demoFile), 0))
	return lines
}

// commandOutput formats a command and its output as a terminal does.
func commandOutput(status, command, output string, exitCode int) ToolCall {
	return ToolCall{
		Status:    status,
		Content:   []any{content(text(acp.Fenced("console", "$ "+command+"\n"+output)))},
		RawOutput: map[string]any{"output": output, "exitCode": exitCode},
	}
}
