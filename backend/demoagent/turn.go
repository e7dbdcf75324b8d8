package demoagent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
	"deskhand/backend/sample"
)

// pace is the time between two chunks of streamed text: visible, but no delay.
const pace = 12 * time.Millisecond

// turn is a running prompt. Only its own goroutine uses a turn, except for cancel, end and over.
type turn struct {
	agent   *agent
	session *session
	request json.RawMessage // the prompt's JSON-RPC id
	in      input
	number  int
	first   bool // the turn names the session

	cancel  context.CancelFunc // session/cancel: ends everything that can be cancelled
	end     context.CancelFunc // session/close and the client's end
	closing <-chan struct{}    // closed by end
	over    chan struct{}      // closed when the answer to the prompt is queued

	history  recorder
	messages int
	calls    int
	written  int64          // bytes of text sent
	stop     string         // the stop reason
	fail     *agentio.Error // the answer instead of a stop reason
	silent   bool           // the turn sends no updates

	steered []string // pending steering messages; agent.mu protects steered and full
	full    bool     // the turn accepts no more messages
}

// prompt starts a turn. The turn's goroutine answers the prompt.
func (a *agent) prompt(ctx context.Context, id, params json.RawMessage) {
	request, err := decode[promptRequest](params)
	if err == nil && len(request.Prompt) == 0 {
		err = agentio.Errorf(acp.CodeInvalidParams, "invalid params: the prompt is empty")
	}
	if err != nil {
		a.answer(id, nil, err)
		return
	}
	life, end := context.WithCancel(ctx)
	work, cancel := context.WithCancel(life)
	t := &turn{
		agent: a, request: id, in: readInput(request, a.words), cancel: cancel, end: end,
		closing: life.Done(), over: make(chan struct{}), stop: "end_turn",
	}
	if err := a.enter(t, request.SessionID); err != nil {
		end()
		a.answer(id, nil, err)
		return
	}
	a.turns.Go(func() {
		defer end()
		defer close(t.over)
		result, err := t.run(work)
		// The writer calls leave between the last update and the answer. A client therefore never sees the answer while the agent still
		// reports a running turn, and the updates of two turns never mix.
		a.answerAfter(id, result, err, func() { a.leave(t) })
	})
}

// enter makes t the running turn of its session and adds the prompt to the history.
func (a *agent) enter(t *turn, sessionID string) *agentio.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.openLocked(sessionID)
	if s == nil {
		return unknownSession(sessionID)
	}
	if s.turn != nil {
		return agentio.Errorf(acp.CodeInvalidRequest, "invalid request: a prompt is running in this session")
	}
	t.session, s.turn = s, t
	s.head.Turns++
	s.head.UpdatedAt = time.Now().UTC()
	t.silent = len(t.in.steps) == 1 && t.in.steps[0].silent
	t.number, t.first = s.head.Turns, s.head.Title == "" && !t.silent
	t.history.turn = t.number
	if t.first {
		s.head.Title = title(t.in.text)
	}
	var asked recorder
	asked.turn = t.number
	for _, block := range t.in.blocks {
		asked.other(chunk{SessionUpdate: "user_message_chunk", MessageID: t.id("prompt", 0), Content: keptBlock(block)})
	}
	s.records = bounded(append(s.records, asked.take()...))
	return nil
}

func (a *agent) leave(t *turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.session.turn = nil
}

// run runs the prompt's steps until ctx ends.
func (t *turn) run(ctx context.Context) (any, *agentio.Error) {
	t.agent.save(t.session)
	steps := t.in.steps
	if t.first {
		t.tell(ctx, titleUpdate(t.agent.headOf(t.session)))
	}
	switch {
	case len(steps) > 0:
	case sample.In(t.cwd()):
		shopWork(ctx, t)
	default:
		plain(ctx, t)
	}
	for _, step := range steps {
		if ctx.Err() == nil {
			step.run(ctx, t)
		}
	}
	t.heed(ctx, true)
	spent := t.keep()
	if t.fail != nil && ctx.Err() == nil {
		return nil, t.fail
	}
	if !t.silent {
		t.tell(ctx, contextUpdate(t.agent.headOf(t.session)))
	}
	if ctx.Err() != nil {
		t.stop = "cancelled"
	}
	return promptResponse{StopReason: t.stop, Usage: spent}, nil
}

// keep adds the turn's updates to the session's history, and returns the usage at four bytes per token.
func (t *turn) keep() usage {
	spent := usage{InputTokens: int64(len(t.in.text)+3) / 4, OutputTokens: (t.written + 3) / 4}
	spent.TotalTokens = spent.InputTokens + spent.OutputTokens
	records := t.history.take()
	a, s := t.agent, t.session
	a.mu.Lock()
	s.records = bounded(append(s.records, records...))
	s.head.Used += spent.TotalTokens
	s.head.UpdatedAt = time.Now().UTC()
	a.mu.Unlock()
	a.save(s)
	return spent
}

// settings are the present settings, which may change during a turn.
func (t *turn) settings() settings { return t.agent.headOf(t.session).Settings }

func (t *turn) cwd() string { return t.agent.headOf(t.session).Cwd }

// id is the id of a part of this turn. The same prompts give the same ids in every run.
func (t *turn) id(kind string, n int) string { return fmt.Sprintf("%s-%d-%d", kind, t.number, n) }

// tell sends an update, unless the turn was cancelled: after a cancel only the answer follows.
func (t *turn) tell(ctx context.Context, update any) {
	if ctx.Err() == nil {
		t.agent.update(t.session.id, update)
	}
}

// pause waits for d, and returns false when the turn was cancelled.
func (t *turn) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// say streams a message, think streams a thought.
func (t *turn) say(ctx context.Context, markdown string) {
	t.stream(ctx, "agent_message_chunk", markdown)
}

func (t *turn) think(ctx context.Context, thought string) {
	t.stream(ctx, "agent_thought_chunk", thought)
}

func (t *turn) stream(ctx context.Context, kind, whole string) {
	id := t.nextMessage()
	for _, piece := range pieces(whole) {
		t.chunk(ctx, kind, id, piece)
		if !t.pause(ctx, pace) {
			return
		}
	}
}

// nextMessage is the id of a new message.
func (t *turn) nextMessage() string {
	t.messages++
	return t.id("message", t.messages)
}

func (t *turn) chunk(ctx context.Context, kind, id, s string) {
	t.heed(ctx, false)
	t.send(ctx, kind, id, s)
}

func (t *turn) send(ctx context.Context, kind, id, s string) {
	if ctx.Err() != nil {
		return
	}
	t.written += int64(len(s))
	t.history.chunk(kind, id, text(s))
	t.tell(ctx, chunk{SessionUpdate: kind, MessageID: id, Content: text(s)})
}

// show sends a block other than text as a message of its own.
func (t *turn) show(ctx context.Context, block any) {
	if ctx.Err() != nil {
		return
	}
	id := t.nextMessage()
	t.history.chunk("agent_message_chunk", id, block)
	t.tell(ctx, chunk{SessionUpdate: "agent_message_chunk", MessageID: id, Content: block})
}

// plan sends the whole plan: done steps are completed, the next step is in progress.
func (t *turn) plan(ctx context.Context, done int, steps ...string) {
	update := planUpdate{SessionUpdate: "plan", Entries: []planEntry{}}
	for i, step := range steps {
		entry := planEntry{Content: step, Priority: "medium", Status: "pending"}
		if i == 0 {
			entry.Priority = "high"
		}
		switch {
		case i < done:
			entry.Status = "completed"
		case i == done:
			entry.Status = "in_progress"
		}
		update.Entries = append(update.Entries, entry)
	}
	if ctx.Err() == nil {
		t.history.other(update)
		t.tell(ctx, update)
	}
}

// open sends a new tool call and returns its id.
func (t *turn) open(ctx context.Context, call ToolCall) string {
	t.calls++
	call.SessionUpdate, call.ToolCallID = "tool_call", t.id("call", t.calls)
	if ctx.Err() == nil {
		t.history.tool(call)
		t.tell(ctx, call)
	}
	return call.ToolCallID
}

// change sends an update of a tool call.
func (t *turn) change(ctx context.Context, id string, call ToolCall) {
	call.SessionUpdate, call.ToolCallID = "tool_call_update", id
	if ctx.Err() == nil {
		t.history.tool(call)
		t.tell(ctx, call)
	}
}

// pieces cuts a text into chunks of some words, as a model would.
func pieces(whole string) []string {
	var out []string
	start := 0
	for i := range len(whole) {
		if i+1-start >= 24 && (whole[i] == ' ' || whole[i] == '\n') {
			out = append(out, whole[start:i+1])
			start = i + 1
		}
	}
	if start < len(whole) {
		out = append(out, whole[start:])
	}
	return out
}

// title of a session: the first line of its first prompt.
func title(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "Prompt without text"
	}
	return clip(line, 60)
}

// clip shortens s to limit characters, the last of which is an ellipsis.
func clip(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:limit-1])) + "…"
}
