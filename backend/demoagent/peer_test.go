package demoagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/agentio"
)

// received is a message of the agent.
type received struct {
	raw     json.RawMessage
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// peer is a client that checks every frame against the schema.
type peer struct {
	t      *testing.T
	in     io.WriteCloser
	lines  chan []byte // closed at the end of the agent's output
	ended  chan error  // the result of Run
	asked  map[string]string
	lastID int
	exact  map[string]bool // lines that must appear once each, exactly; they may be invalid
	// onRequest answers the agent's requests during prompt. The default fails the test.
	onRequest func(received)
	closing   sync.Once
}

// allCapabilities belong to a client that can do everything.
const allCapabilities = `{"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{}}}`

// start runs an agent over pipes, with an empty state directory of its own.
func start(t *testing.T) *peer {
	t.Helper()
	t.Setenv(stateVariable, t.TempDir())
	return restart(t)
}

// restart runs an agent with the additions of tests on the existing state.
func restart(t *testing.T) *peer {
	t.Helper()
	return runAgent(t, Additions())
}

func runAgent(t *testing.T, cfg Config) *peer {
	t.Helper()
	published()
	agentIn, in := io.Pipe()
	out, agentOut := io.Pipe()
	p := connect(t, in, out)
	go func() {
		err := Run(context.Background(), cfg, agentIn, agentOut)
		agentOut.Close()
		p.ended <- err
	}()
	t.Cleanup(p.close)
	return p
}

func connect(t *testing.T, in io.WriteCloser, out io.Reader) *peer {
	t.Helper()
	p := &peer{
		t: t, in: in, lines: make(chan []byte, 1<<15), ended: make(chan error, 1),
		asked: map[string]string{}, exact: map[string]bool{},
	}
	p.onRequest = func(m received) { t.Errorf("an unexpected request: %s", m.raw) }
	go func() {
		defer close(p.lines)
		reader := bufio.NewReader(out)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				p.lines <- bytes.TrimSuffix(line, []byte("\n"))
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// close ends the agent's input, and checks the remaining output and the agent's end. close may be called twice.
func (p *peer) close() {
	p.closing.Do(func() {
		p.in.Close()
		for line := range p.lines {
			p.read(line)
		}
		if err := <-p.ended; err != nil {
			p.t.Errorf("Run: %v", err)
		}
		for line := range p.exact {
			p.t.Errorf("the agent never printed %.300q", line)
		}
	})
}

// read parses and checks a line. read returns false for an exact line.
func (p *peer) read(line []byte) (received, bool) {
	p.t.Helper()
	if p.exact[string(line)] {
		delete(p.exact, string(line))
		return received{}, false
	}
	m := received{raw: line}
	if err := json.Unmarshal(line, &m); err != nil {
		p.t.Errorf("not JSON: %v in %.300q", err, line)
		return m, false
	}
	checkFrame(p.t, m, p.asked[string(m.ID)])
	return m, true
}

// next is the next message. The test fails when there is none.
func (p *peer) next() received {
	p.t.Helper()
	for line := range p.lines {
		if m, ok := p.read(line); ok {
			return m
		}
	}
	p.t.Fatal("the agent has ended")
	return received{}
}

func (p *peer) write(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) send(message any) {
	p.t.Helper()
	line, err := json.Marshal(message)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(string(line))
}

// request sends a request and returns its id. The client's ids and the agent's ids overlap on purpose.
func (p *peer) request(method string, params any) string {
	p.t.Helper()
	id := fmt.Sprint(p.lastID)
	p.lastID++
	p.asked[id] = method
	p.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	return id
}

func (p *peer) notify(method string, params any) {
	p.t.Helper()
	p.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// reply answers a request of the agent with a result in JSON.
func (p *peer) reply(m received, result string) {
	p.t.Helper()
	p.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(result)})
}

// exchange holds the answer to a request and the updates before the answer.
type exchange struct {
	updates []json.RawMessage
	result  json.RawMessage
	err     *agentio.Error
}

// until collects messages up to the answer with the given id.
func (p *peer) until(id string) exchange {
	p.t.Helper()
	var e exchange
	for {
		m := p.next()
		switch {
		case m.Method == "session/update":
			var params struct{ Update json.RawMessage }
			p.decode(m.Params, &params)
			e.updates = append(e.updates, params.Update)
		case m.Method != "":
			p.onRequest(m)
		case string(m.ID) == id:
			e.result = m.Result
			if m.Error != nil {
				e.err = &agentio.Error{}
				p.decode(m.Error, e.err)
			}
			return e
		default:
			p.t.Fatalf("an answer to something else: %s", m.raw)
		}
	}
}

func (p *peer) decode(raw json.RawMessage, value any) {
	p.t.Helper()
	if err := json.Unmarshal(raw, value); err != nil {
		p.t.Fatalf("%v in %s", err, raw)
	}
}

func (p *peer) call(method string, params any) exchange {
	p.t.Helper()
	return p.until(p.request(method, params))
}

// mustCall fails the test when the answer is an error.
func (p *peer) mustCall(method string, params any) exchange {
	p.t.Helper()
	e := p.call(method, params)
	if e.err != nil {
		p.t.Fatalf("%s: got %v, want nil", method, *e.err)
	}
	return e
}

// session starts a session in a new directory and waits for the commands that follow.
func (p *peer) session(capabilities string) (id, cwd string) {
	p.t.Helper()
	cwd = p.t.TempDir()
	return p.sessionIn(capabilities, cwd, `[]`), cwd
}

func (p *peer) sessionIn(capabilities, cwd, servers string) string {
	p.t.Helper()
	p.mustCall("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": json.RawMessage(capabilities)})
	e := p.mustCall("session/new", map[string]any{"cwd": cwd, "mcpServers": json.RawMessage(servers)})
	var created struct{ SessionID string }
	p.decode(e.result, &created)
	p.commands()
	return created.SessionID
}

// commands reads the update that follows session/new, load and resume.
func (p *peer) commands() {
	p.t.Helper()
	if m := p.next(); !bytes.Contains(m.raw, []byte(`"available_commands_update"`)) {
		p.t.Fatalf("want the commands, got %s", m.raw)
	}
}

func promptParams(session, prompt string) map[string]any {
	return map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": prompt}}}
}

// prompt runs a turn.
func (p *peer) prompt(session, prompt string) turnSeen {
	p.t.Helper()
	return p.turn(p.call("session/prompt", promptParams(session, prompt)))
}

// turnSeen is a turn as a client sees the turn.
type turnSeen struct {
	exchange
	stop     string
	kinds    []string // kinds of the updates, in order, without repeats
	said     string   // all messages, joined
	thought  string
	messages map[string]string // text by message id
	tools    map[string]map[string]any
	order    []string // tool call ids in order of arrival
	plan     []planEntry
}

func (p *peer) turn(e exchange) turnSeen {
	p.t.Helper()
	seen := turnSeen{exchange: e, messages: map[string]string{}, tools: map[string]map[string]any{}}
	if e.err == nil {
		var response promptResponse
		p.decode(e.result, &response)
		seen.stop = response.StopReason
	}
	for _, raw := range e.updates {
		p.fold(&seen, raw)
	}
	return seen
}

func (p *peer) fold(seen *turnSeen, raw json.RawMessage) {
	p.t.Helper()
	var update struct {
		SessionUpdate string
		MessageID     string
		Content       json.RawMessage
		ToolCallID    string
		Entries       []planEntry
	}
	p.decode(raw, &update)
	if n := len(seen.kinds); n == 0 || seen.kinds[n-1] != update.SessionUpdate {
		seen.kinds = append(seen.kinds, update.SessionUpdate)
	}
	switch update.SessionUpdate {
	case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
		var block struct{ Text string }
		p.decode(update.Content, &block)
		seen.messages[update.MessageID] += block.Text
		switch update.SessionUpdate {
		case "agent_message_chunk":
			seen.said += block.Text
		case "agent_thought_chunk":
			seen.thought += block.Text
		}
	case "tool_call", "tool_call_update":
		call := seen.tools[update.ToolCallID]
		if call == nil {
			call = map[string]any{}
			seen.tools[update.ToolCallID] = call
			seen.order = append(seen.order, update.ToolCallID)
		}
		p.decode(raw, &call)
	case "plan":
		seen.plan = update.Entries
	}
}

// tool is the n-th tool call of the turn.
func (s turnSeen) tool(t *testing.T, n int) map[string]any {
	t.Helper()
	if n >= len(s.order) {
		t.Fatalf("only %d tool calls", len(s.order))
	}
	return s.tools[s.order[n]]
}

func (s turnSeen) wantStop(t *testing.T, want string) {
	t.Helper()
	if s.err != nil || s.stop != want {
		t.Errorf("stop reason %q, error %v; want %q", s.stop, s.err, want)
	}
}

func (s turnSeen) wantSaid(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(s.said, want) {
		t.Errorf("the agent said\n%s\nwant in it\n%s", s.said, want)
	}
}
