package demoagent

import (
	"context"
	"encoding/json"
	"time"

	"deskhand/backend/agentio"
)

// Config adds to the agent. The zero value is the agent as people have it; the agent of tests has further words, and requires logins.
type Config struct {
	// Words are further words, which stand after the agent's own.
	Words []Word
	// Handle, if not nil, gets each request first. A nil answer leaves the request to the agent. Handle must not block.
	Handle func(method string, params json.RawMessage) *Answer
	// AuthMethods, if not nil, returns the authMethods of initialize for a client with these capabilities; logout is offered then, too.
	AuthMethods func(clientCapabilities json.RawMessage) []any
	// ProgramsOnly has the agent take programs alone as MCP servers, neither HTTP nor SSE.
	ProgramsOnly bool
}

// A Word is a word of the prompt that selects a step of the turn.
type Word struct {
	Name   string // a word, or several words in a row
	Takes  string // the arguments, for people
	Does   string // the effect, for people
	Fault  bool   // the word is in no menu, and counts only in a line that begins with a word of the agent
	Silent bool   // a prompt of this word alone is answered without any update
	Run    func(context.Context, *Turn)
}

// An Answer answers a request in place of the agent.
type Answer struct {
	Result any
	Err    *agentio.Error // sent instead of Result, unless nil
	Never  bool           // no answer is sent at all
}

// A Turn is the running prompt, for a [Word]. Only the goroutine that runs the word may use a Turn. Methods with a context send nothing after
// the context has ended.
type Turn struct{ t *turn }

// SessionID returns the id of the session.
func (t *Turn) SessionID() string { return t.t.session.id }

// Cwd returns the session's directory.
func (t *Turn) Cwd() string { return t.t.cwd() }

// Text returns the first text block of the prompt.
func (t *Turn) Text() string { return t.t.in.text }

// Prompt returns the content blocks of the prompt, and its _meta or nil.
func (t *Turn) Prompt() (blocks []json.RawMessage, meta json.RawMessage) {
	return t.t.in.blocks, t.t.in.meta
}

// ClientCapabilities returns the client's capabilities as initialize gave them.
func (t *Turn) ClientCapabilities() json.RawMessage {
	t.t.agent.mu.Lock()
	defer t.t.agent.mu.Unlock()
	return t.t.agent.clientCaps
}

// ID returns an id for a part of the turn. The same prompts give the same ids in every run.
func (t *Turn) ID(kind string, n int) string { return t.t.id(kind, n) }

// Pause waits for d, and returns false when the turn was cancelled.
func (t *Turn) Pause(ctx context.Context, d time.Duration) bool { return t.t.pause(ctx, d) }

// Say streams a message.
func (t *Turn) Say(ctx context.Context, markdown string) { t.t.say(ctx, markdown) }

// Message begins a message, and returns the function that sends its chunks.
func (t *Turn) Message() func(ctx context.Context, chunk string) {
	id := t.t.nextMessage()
	return func(ctx context.Context, chunk string) { t.t.chunk(ctx, "agent_message_chunk", id, chunk) }
}

// Open sends a new tool call and returns its id.
func (t *Turn) Open(ctx context.Context, call ToolCall) string { return t.t.open(ctx, call) }

// Change sends an update of a tool call, which need not be open.
func (t *Turn) Change(ctx context.Context, id string, call ToolCall) { t.t.change(ctx, id, call) }

// Update sends a session/update that is no part of the history.
func (t *Turn) Update(ctx context.Context, update any) { t.t.tell(ctx, update) }

// Line sends a line as it is, whatever it contains.
func (t *Turn) Line(line string) { t.t.agent.out.Send(agentio.Entry{Line: []byte(line + "\n")}) }

// Ask sends a request and waits for the answer. When ctx ends first, Ask withdraws the request and returns false.
func (t *Turn) Ask(ctx context.Context, method string, params any) (json.RawMessage, *agentio.Error, bool) {
	r, answered := t.t.agent.ask(ctx, method, params)
	return r.result, r.err, answered
}

// AskForm asks by elicitation with a schema, and reports the answer.
func (t *Turn) AskForm(ctx context.Context, message, schema string) {
	t.t.askForm(ctx, message, schema)
}

// AskVisit asks the client to open an address, and reports the answer.
func (t *Turn) AskVisit(ctx context.Context, message, address string) {
	t.t.askVisit(ctx, message, address)
}

// NextMode puts the session into the mode after its present mode, and returns the new mode.
func (t *Turn) NextMode() string { return t.t.nextMode() }

// Stop sets the stop reason of the turn.
func (t *Turn) Stop(reason string) { t.t.stop = reason }

// Fail has the turn end with an error instead of a stop reason.
func (t *Turn) Fail(err *agentio.Error) { t.t.fail = err }

// Closing is closed when the session or the client ends, but not by a cancel.
func (t *Turn) Closing() <-chan struct{} { return t.t.closing }

// Store keeps the turn so far in the session's history, and waits until all messages are written.
func (t *Turn) Store() {
	t.t.keep()
	t.t.agent.out.Flush()
}

// Describe describes a content block on a single line.
func Describe(block json.RawMessage) string { return readBlock(block).describe() }

// InWords returns an error of the client as a sentence for people.
func InWords(e *agentio.Error) string { return inWords(e) }

// NextEdit returns the text of deskhand-demo.md after another edit; exists says that the file is there, with this text.
func NextEdit(text string, exists bool) (string, error) {
	return seen{text: text, exists: exists}.next()
}

// Shown returns a text as the content of a tool call.
func Shown(s string) any { return content(text(s)) }

// CommandOutput returns the state of a tool call that runs a command, with the command's output as a terminal shows it.
func CommandOutput(status, command, output string, exitCode int) ToolCall {
	return commandOutput(status, command, output, exitCode)
}
