package agenttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
	"deskhand/backend/demoagent"
)

const (
	burstUpdates = 10_000
	hugeBytes    = 20 << 20
	hugeLine     = 64 // bytes per line of the huge text
	slowTicks    = 6_000
	slowPace     = 100 * time.Millisecond

	// crashCode is the exit code of "crash".
	crashCode = 3

	// grandchildVariable makes a process of this program the child of "stubborn".
	grandchildVariable = "DESKHAND_DEMO_GRANDCHILD"

	// outliving limits the life of "stubborn" and its child.
	outliving = 10 * time.Minute
)

// JunkLines returns the lines of "junk" in a session: lines that are no JSON, invalid updates, and messages without a request.
func JunkLines(session string) []string {
	const update = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":`
	lines := []string{
		`Warning: this line is not JSON`,
		"\x1b[33mnor is this one, in colour\x1b[0m",
		`{"jsonrpc":"2.0","method":"session/update","params":{`,
		update + `{"sessionUpdate":"demo_unknown_kind","content":{"type":"text","text":"of a kind that nobody knows"}}}}`,
		update + `{"sessionUpdate":"agent_message_chunk"}}}`,
		update + `{"sessionUpdate":"agent_message_chunk","content":"a string, not a block"}}}`,
		update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram","text":"of an unknown type"}}}}`,
		update + `{"sessionUpdate":"tool_call","title":"without an id"}}}`,
		update + `{"sessionUpdate":"tool_call_update","toolCallId":7,"status":["completed"]}}}`,
		update + `{"sessionUpdate":"plan","entries":"not a list"}}}`,
		update + `"not an object"}}`,
		update + `{"content":{"type":"text","text":"no kind"}}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"nobodys-session","update":` +
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"for another session"}}}}`,
		`{"jsonrpc":"2.0","method":"session/update"}`,
		`{"jsonrpc":"2.0","method":"_demo/unknown_notification","params":{}}`,
		`{"jsonrpc":"2.0","id":"nobody-asked","result":{}}`,
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "%s", session)
	}
	return lines
}

// junk prints the junk lines, then a valid update of a tool call that was never opened, which ACP allows.
func junk(ctx context.Context, t *demoagent.Turn) {
	t.Say(ctx, "Here comes the junk.")
	for _, line := range JunkLines(t.SessionID()) {
		if ctx.Err() != nil {
			return
		}
		t.Line(line)
	}
	t.Change(ctx, t.ID("junk", 1), demoagent.ToolCall{Title: "A tool call that was never opened", Kind: "other", Status: "completed"})
	t.Say(ctx, "After the junk I go on as if nothing had happened.")
}

// HugeText returns the text of "huge": hugeBytes of numbered lines, so that a gap shows.
func HugeText() string {
	var out strings.Builder
	out.Grow(hugeBytes)
	filler := strings.Repeat(".", hugeLine-len("0000000 \n"))
	for line := range hugeBytes / hugeLine {
		fmt.Fprintf(&out, "%07d %s\n", line, filler)
	}
	return out.String()
}

func huge(ctx context.Context, t *demoagent.Turn) {
	t.Message()(ctx, HugeText())
	t.Say(ctx, "That was one message of 20 MiB.")
}

// burst sends the numbers 1 to burstUpdates, a line each, as a single message without pauses.
func burst(ctx context.Context, t *demoagent.Turn) {
	chunk := t.Message()
	for n := range burstUpdates {
		chunk(ctx, fmt.Sprintf("%d\n", n+1))
	}
	t.Say(ctx, fmt.Sprintf("That were %d updates.", burstUpdates))
}

func slow(ctx context.Context, t *demoagent.Turn) {
	chunk := t.Message()
	for n := range slowTicks {
		chunk(ctx, fmt.Sprintf("tick %d\n", n+1))
		if !t.Pause(ctx, slowPace) {
			return
		}
	}
}

func limit(ctx context.Context, t *demoagent.Turn) {
	t.Say(ctx, "I have run out of tokens in the middle of")
	t.Stop("max_tokens")
}

func refuse(ctx context.Context, t *demoagent.Turn) {
	t.Say(ctx, "I refuse to do that.")
	t.Stop("refusal")
}

func fail(ctx context.Context, t *demoagent.Turn) {
	t.Say(ctx, "This ends in an error.")
	t.Fail(&agentio.Error{Code: acp.CodeInternalError, Message: "the prompt asked for an error", Data: map[string]string{"details": "the prompt asked for an error"}})
}

// crash leaves a tool call and a sentence unfinished. The history holds the turn up to there, as with an agent that writes its history while
// it works.
func crash(ctx context.Context, t *demoagent.Turn) {
	t.Open(ctx, demoagent.ToolCall{Title: "Something that is never finished", Name: "run_command", Kind: "execute", Status: "in_progress"})
	t.Say(ctx, "I am about to finish this senten")
	if ctx.Err() != nil {
		return
	}
	t.Store()
	_, _ = fmt.Fprint(os.Stderr, "demo-agent: working on the prompt\n"+
		"demo-agent: fatal: the prompt asked for a crash\n"+
		"demo-agent: exit status 3\n")
	os.Exit(crashCode)
}

// hang ends only with the session or the client.
func hang(ctx context.Context, t *demoagent.Turn) {
	t.Say(ctx, "I hang now. Cancel does not help.")
	<-t.Closing()
}

// stubborn ignores every signal that can be ignored. Its child belongs to no process group that could be killed together with stubborn.
func stubborn(ctx context.Context, t *demoagent.Turn) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	child := "It could not be started."
	if pid, err := startGrandchild(ctx); err == nil {
		child = fmt.Sprintf("Its pid is %d.", pid)
	}
	t.Say(ctx, fmt.Sprintf("I ignore everything now. My pid is %d. I have a child in a session of its own. %s", os.Getpid(), child))
	<-time.After(outliving)
}

// startGrandchild starts this program once more, as a process that only waits. The process keeps our stdout and stderr open, as carelessly
// started daemons do.
func startGrandchild(ctx context.Context) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.CommandContext(context.WithoutCancel(ctx), program, os.Args[1:]...)
	child.Env = append(os.Environ(), grandchildVariable+"=1")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = ownSession()
	if err := child.Start(); err != nil {
		return 0, err
	}
	pid := child.Process.Pid
	return pid, child.Process.Release()
}

// outlive is the life of the grandchild.
func outlive() {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	<-time.After(outliving)
}
