package demoagent

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"deskhand/backend/acp"
)

// Requests by which the agent makes the client read files, write files and run programs. Real agents do so when an editor's files are newer
// than those on the disk, or when people want to watch a program.

type fileRequest struct {
	SessionID string  `json:"sessionId"`
	Path      string  `json:"path"`
	Content   *string `json:"content,omitempty"` // present in a write
}

type terminalRequest struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId"`
}

type terminalCreate struct {
	SessionID       string      `json:"sessionId"`
	Command         string      `json:"command"`
	Args            []string    `json:"args"`
	Env             []nameValue `json:"env"`
	Cwd             string      `json:"cwd"`
	OutputByteLimit int64       `json:"outputByteLimit"`
}

type terminalContent struct {
	Type       string `json:"type"`
	TerminalID string `json:"terminalId"`
}

type compactionUpdate struct {
	SessionUpdate string `json:"sessionUpdate"`
	CompactionID  string `json:"compactionId"`
	Status        string `json:"status,omitempty"`
	Content       any    `json:"content,omitempty"` // of a chunk
}

// disk edits the demo file through the client.
func disk(ctx context.Context, t *turn) {
	if caps := t.agent.capabilities(); !caps.FS.Read || !caps.FS.Write {
		t.say(ctx, "This client reads and writes no files for agents.")
		return
	}
	path := filepath.Join(t.cwd(), demoFile)
	id := t.open(ctx, toolCall{
		Title: "Write " + demoFile, Name: "write_file", Kind: "edit", Status: "in_progress", Locations: []location{{Path: path}},
		RawInput: map[string]any{"path": path},
	})
	read, ok := t.agent.ask(ctx, "fs/read_text_file", fileRequest{SessionID: t.session.id, Path: path})
	if !ok {
		return
	}
	var got struct{ Content string }
	look := seen{exists: read.err == nil}
	switch {
	case look.exists:
		_ = json.Unmarshal(read.result, &got) // an unreadable text is not ours
		look.text = got.Content
	case read.err.Code != acp.CodeResourceNotFound:
		look.err = fmt.Errorf("the client could not read it: %s", read.err.Message)
	}
	next, err := look.next()
	if err == nil {
		var wrote reply
		if wrote, ok = t.agent.ask(ctx, "fs/write_text_file", fileRequest{SessionID: t.session.id, Path: path, Content: &next}); !ok {
			return
		}
		if wrote.err != nil {
			err = fmt.Errorf("the client could not write it: %s", wrote.err.Message)
		}
	}
	if err != nil {
		t.change(ctx, id, toolCall{Status: "failed", Content: []any{content(text(err.Error()))}})
		t.say(ctx, fmt.Sprintf("**The write failed.** %v.", err))
		return
	}
	t.change(ctx, id, toolCall{Status: "completed"})
	t.say(ctx, "The client has written `"+demoFile+"` for me.")
}

// program writes on both streams, in colours, for about a second.
func (t *turn) program() terminalCreate {
	c := terminalCreate{
		SessionID: t.session.id, Command: "sh", Env: []nameValue{{Name: "DEMO", Value: "the client"}}, Cwd: t.cwd(), OutputByteLimit: 64 << 10,
		Args: []string{"-c", `for n in 1 2 3; do printf 'step %d of 3\n' $n; sleep 0.25; done; printf '\033[33mwarning:\033[0m this goes to stderr\n' >&2; printf '\033[32mdone\033[0m by %s\n' "$DEMO"`},
	}
	if runtime.GOOS == "windows" {
		c.Command, c.Args = "cmd", []string{"/d", "/c", "echo step 1 of 1 & echo done by %DEMO%"}
	}
	return c
}

// spawn makes the client run a program.
func spawn(ctx context.Context, t *turn) {
	if !t.agent.capabilities().Terminal {
		t.say(ctx, "This client runs no programs for agents.")
		return
	}
	id := t.open(ctx, toolCall{Title: "Three steps", Name: "run_command", Kind: "execute", Status: "pending"})
	created, ok := t.agent.ask(ctx, "terminal/create", t.program())
	if !ok {
		return
	}
	terminal := terminalRequest{SessionID: t.session.id}
	var got struct{ TerminalID string }
	if created.err == nil && json.Unmarshal(created.result, &got) == nil {
		terminal.TerminalID = got.TerminalID
	}
	if terminal.TerminalID == "" {
		t.change(ctx, id, toolCall{Status: "failed", Content: []any{content(text("The client did not run it."))}})
		t.say(ctx, "**The client did not run it.**")
		return
	}
	t.change(ctx, id, toolCall{Status: "in_progress", Content: []any{terminalContent{Type: "terminal", TerminalID: terminal.TerminalID}}})
	ended, ok := t.agent.ask(ctx, "terminal/wait_for_exit", terminal)
	var exit struct {
		ExitCode *int   `json:"exitCode"`
		Signal   string `json:"signal"`
	}
	if ok && ended.err == nil {
		_ = json.Unmarshal(ended.result, &exit) // an unreadable exit counts as an exit without a code
	}
	t.release(ctx, terminal)
	if !ok {
		return
	}
	status := "completed"
	if exit.ExitCode == nil || *exit.ExitCode != 0 {
		status = "failed"
	}
	t.change(ctx, id, toolCall{Status: status})
	t.say(ctx, "The client has run three steps for me.")
}

// release frees a terminal, also after a cancel: while this process lives, nobody else would free the terminal.
func (t *turn) release(ctx context.Context, terminal terminalRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	t.agent.ask(ctx, "terminal/release", terminal)
}

// compact reports a compaction, from its beginning to its summary.
func compact(ctx context.Context, t *turn) {
	if !given(t.agent.capabilities().Session.Compaction) {
		t.say(ctx, "This client does not want to know of compactions.")
		return
	}
	id := t.id("compaction", 1)
	t.tell(ctx, compactionUpdate{SessionUpdate: "compaction_update", CompactionID: id, Status: "in_progress"})
	for _, piece := range pieces("The person tries the **demo agent**. It has shown what a compaction looks like; nothing was forgotten.") {
		if !t.pause(ctx, 4*pace) {
			break
		}
		t.tell(ctx, compactionUpdate{SessionUpdate: "compaction_summary_chunk", CompactionID: id, Content: text(piece)})
	}
	t.tell(ctx, compactionUpdate{SessionUpdate: "compaction_update", CompactionID: id, Status: "completed"})
	t.say(ctx, "My memory of this conversation is shorter now.")
}
