package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/demoagent"
)

// demoFile is the file of the demo agent.
const demoFile = "deskhand-demo.md"

// Requests by which the agent makes the client read files, write files and run programs. Real agents do so when an editor's files are newer
// than those on the disk, or when people want to watch a program.

// client has the client's capabilities that words need.
type client struct {
	FS struct {
		Read  bool `json:"readTextFile"`
		Write bool `json:"writeTextFile"`
	} `json:"fs"`
	Terminal bool            `json:"terminal"`
	Plan     json.RawMessage `json:"plan"`
	Session  struct {
		Notices    json.RawMessage `json:"notices"`
		Compaction json.RawMessage `json:"compaction"`
	} `json:"session"`
}

// given reports whether an optional object was sent.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func clientOf(t *demoagent.Turn) client {
	var c client
	_ = json.Unmarshal(t.ClientCapabilities(), &c) // every capability is optional: an invalid value counts as absent
	return c
}

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
	SessionID       string     `json:"sessionId"`
	Command         string     `json:"command"`
	Args            []string   `json:"args"`
	Env             []variable `json:"env"`
	Cwd             string     `json:"cwd"`
	OutputByteLimit int64      `json:"outputByteLimit"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
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
func disk(ctx context.Context, t *demoagent.Turn) {
	if caps := clientOf(t); !caps.FS.Read || !caps.FS.Write {
		t.Say(ctx, "This client reads and writes no files for agents.")
		return
	}
	path := filepath.Join(t.Cwd(), demoFile)
	id := t.Open(ctx, demoagent.ToolCall{
		Title: "Write " + demoFile, Name: "write_file", Kind: "edit", Status: "in_progress", Locations: []demoagent.Location{{Path: path}},
		RawInput: map[string]any{"path": path},
	})
	read, failed, ok := t.Ask(ctx, "fs/read_text_file", fileRequest{SessionID: t.SessionID(), Path: path})
	if !ok {
		return
	}
	var got struct{ Content string }
	if failed == nil {
		_ = json.Unmarshal(read, &got) // an unreadable text is not ours
	}
	next, err := demoagent.NextEdit(got.Content, failed == nil)
	if failed != nil && failed.Code != acp.CodeResourceNotFound {
		err = fmt.Errorf("the client could not read it: %s", failed.Message)
	}
	if err == nil {
		if _, failed, ok = t.Ask(ctx, "fs/write_text_file", fileRequest{SessionID: t.SessionID(), Path: path, Content: &next}); !ok {
			return
		}
		if failed != nil {
			err = fmt.Errorf("the client could not write it: %s", failed.Message)
		}
	}
	if err != nil {
		t.Change(ctx, id, demoagent.ToolCall{Status: "failed", Content: []any{demoagent.Shown(err.Error())}})
		t.Say(ctx, fmt.Sprintf("**The write failed.** %v.", err))
		return
	}
	t.Change(ctx, id, demoagent.ToolCall{Status: "completed"})
	t.Say(ctx, "The client has written `"+demoFile+"` for me.")
}

// threeSteps is a program that writes on both streams, in colours, for about a second.
func threeSteps(t *demoagent.Turn) terminalCreate {
	c := terminalCreate{
		SessionID: t.SessionID(), Command: "sh", Env: []variable{{Name: "DEMO", Value: "the client"}}, Cwd: t.Cwd(), OutputByteLimit: 64 << 10,
		Args: []string{"-c", `for n in 1 2 3; do printf 'step %d of 3\n' $n; sleep 0.25; done; printf '\033[33mwarning:\033[0m this goes to stderr\n' >&2; printf '\033[32mdone\033[0m by %s\n' "$DEMO"`},
	}
	if runtime.GOOS == "windows" {
		c.Command, c.Args = "cmd", []string{"/d", "/c", "echo step 1 of 1 & echo done by %DEMO%"}
	}
	return c
}

// spawn makes the client run a program.
func spawn(ctx context.Context, t *demoagent.Turn) {
	if !clientOf(t).Terminal {
		t.Say(ctx, "This client runs no programs for agents.")
		return
	}
	id := t.Open(ctx, demoagent.ToolCall{Title: "Three steps", Name: "run_command", Kind: "execute", Status: "pending"})
	created, failed, ok := t.Ask(ctx, "terminal/create", threeSteps(t))
	if !ok {
		return
	}
	terminal := terminalRequest{SessionID: t.SessionID()}
	var got struct{ TerminalID string }
	if failed == nil && json.Unmarshal(created, &got) == nil {
		terminal.TerminalID = got.TerminalID
	}
	if terminal.TerminalID == "" {
		t.Change(ctx, id, demoagent.ToolCall{Status: "failed", Content: []any{demoagent.Shown("The client did not run it.")}})
		t.Say(ctx, "**The client did not run it.**")
		return
	}
	t.Change(ctx, id, demoagent.ToolCall{Status: "in_progress", Content: []any{terminalContent{Type: "terminal", TerminalID: terminal.TerminalID}}})
	ended, failed, ok := t.Ask(ctx, "terminal/wait_for_exit", terminal)
	var exit struct {
		ExitCode *int   `json:"exitCode"`
		Signal   string `json:"signal"`
	}
	if ok && failed == nil {
		_ = json.Unmarshal(ended, &exit) // an unreadable exit counts as an exit without a code
	}
	release(ctx, t, terminal)
	if !ok {
		return
	}
	status := "completed"
	if exit.ExitCode == nil || *exit.ExitCode != 0 {
		status = "failed"
	}
	t.Change(ctx, id, demoagent.ToolCall{Status: status})
	t.Say(ctx, "The client has run three steps for me.")
}

// release frees a terminal, also after a cancel: while this process lives, nobody else would free the terminal.
func release(ctx context.Context, t *demoagent.Turn, terminal terminalRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	t.Ask(ctx, "terminal/release", terminal)
}

// compact reports a compaction, from its beginning to its summary.
func compact(ctx context.Context, t *demoagent.Turn) {
	if !given(clientOf(t).Session.Compaction) {
		t.Say(ctx, "This client does not want to know of compactions.")
		return
	}
	id := t.ID("compaction", 1)
	t.Update(ctx, compactionUpdate{SessionUpdate: "compaction_update", CompactionID: id, Status: "in_progress"})
	for _, piece := range split("The person tries the **demo agent**. It has shown what a compaction looks like; nothing was forgotten.", 24) {
		if !t.Pause(ctx, 50*time.Millisecond) {
			break
		}
		t.Update(ctx, compactionUpdate{SessionUpdate: "compaction_summary_chunk", CompactionID: id, Content: map[string]string{"type": "text", "text": piece}})
	}
	t.Update(ctx, compactionUpdate{SessionUpdate: "compaction_update", CompactionID: id, Status: "completed"})
	t.Say(ctx, "My memory of this conversation is shorter now.")
}
