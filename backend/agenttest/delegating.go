package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// The delegating agent hands its work to subagents, which it exposes as child sessions where the client takes them (ACP, Subagents). A prompt
// of these words sets them to work, and ends when all of them are idle:
//
//	delegate        a reader that asks for a permission, and a writer that writes until it is stopped
//	delegate deep   a reader whose own subagent says one word
//	delegate 50 200 so many subagents that say so many words each
//
// Anything else is answered with the capabilities that the client has for subagents. The agent can load its session: it announces its children
// again and replays what they have said.
type delegating struct {
	out sync.Mutex // held while a line is written
	w   io.Writer

	mu       sync.Mutex // protects the fields below
	takes    string
	stops    map[string]chan struct{} // closed when a child is to stop
	waits    map[string]chan json.RawMessage
	requests int
}

func delegatingAgent(in io.Reader, out io.Writer) error {
	a := &delegating{w: out, stops: map[string]chan struct{}{}, waits: map[string]chan json.RawMessage{}}
	var turns sync.WaitGroup
	defer turns.Wait()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Params struct {
				SessionID          string
				ClientCapabilities struct{ Subagents json.RawMessage }
				Prompt             []struct{ Text string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		answer := func(result any) { a.send(map[string]any{"id": m.ID, "result": result}) }
		switch m.Method {
		case "initialize":
			a.takes = string(m.Params.ClientCapabilities.Subagents)
			answer(map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": true}})
		case "session/new":
			answer(map[string]any{"sessionId": "root"})
		case "session/load":
			a.child("root", "reader", "Reader", "Reads the totals", true)
			a.say("reader", "The totals are right.")
			a.state("root", "reader", map[string]any{"state": "idle"})
			answer(map[string]any{})
		case "session/prompt":
			var text strings.Builder
			for _, block := range m.Params.Prompt {
				text.WriteString(block.Text)
			}
			turns.Go(func() {
				a.delegate(text.String())
				answer(map[string]any{"stopReason": "end_turn"})
			})
		case "session/cancel":
			a.stop(m.Params.SessionID)
		case "":
			a.mu.Lock()
			wait := a.waits[string(m.ID)]
			a.mu.Unlock()
			if wait != nil {
				wait <- m.Result
			}
		default:
			if m.ID != nil {
				a.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "unknown"}})
			}
		}
	}
	a.stop("root")
	return lines.Err()
}

func (a *delegating) send(message map[string]any) {
	message["jsonrpc"] = "2.0"
	data, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	a.out.Lock()
	defer a.out.Unlock()
	_, _ = fmt.Fprintf(a.w, "%s\n", data) // a client that is gone ends the input as well
}

func (a *delegating) update(session string, update map[string]any) {
	a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": session, "update": update}})
}

func (a *delegating) say(session, text string) {
	a.update(session, map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text}})
}

// child announces a child, which works from then on.
func (a *delegating) child(parent, id, title, description string, stoppable bool) {
	capabilities := map[string]any{}
	if stoppable {
		capabilities["cancel"] = map[string]any{}
	}
	a.update(parent, map[string]any{
		"sessionUpdate": "subagent_update", "sessionId": id, "title": title, "description": description, "capabilities": capabilities,
		"state": map[string]any{"state": "running"},
	})
}

func (a *delegating) state(parent, id string, state map[string]any) {
	a.update(parent, map[string]any{"sessionUpdate": "subagent_update", "sessionId": id, "state": state})
}

// tell sends a message from one session to another, as both see it.
func (a *delegating) tell(from, to, id, text string) {
	for _, session := range []string{from, to} {
		a.update(session, map[string]any{
			"sessionUpdate": "session_message", "messageId": id, "senderSessionId": from, "recipientSessionId": to,
			"content": []any{map[string]any{"type": "text", "text": text}},
		})
	}
}

// stopped returns the channel that is closed when a child is to stop.
func (a *delegating) stopped(id string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	stop := make(chan struct{})
	a.stops[id] = stop
	return stop
}

// stop stops a child, or all of them with the root.
func (a *delegating) stop(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for child, stop := range a.stops {
		if child == id || id == "root" {
			close(stop)
			delete(a.stops, child)
		}
	}
}

// ask sends a request of a child, and returns the client's answer.
func (a *delegating) ask(method string, params map[string]any, stop <-chan struct{}) json.RawMessage {
	answer := make(chan json.RawMessage, 1)
	a.mu.Lock()
	a.requests++
	id := fmt.Sprintf(`"r%d"`, a.requests)
	a.waits[id] = answer
	a.mu.Unlock()
	a.send(map[string]any{"id": json.RawMessage(id), "method": method, "params": params})
	select {
	case result := <-answer:
		return result
	case <-stop:
		return nil
	}
}

func (a *delegating) delegate(text string) {
	var children sync.WaitGroup
	defer children.Wait()
	var count, words int
	switch {
	case a.takes == "" || a.takes == "null" || !strings.HasPrefix(text, "delegate"):
		a.say("root", "subagents: "+a.takes)
	case text == "delegate deep":
		a.child("root", "reader", "Reader", "", true)
		a.child("reader", "deep", "Deep reader", "", false)
		a.say("deep", "Deep.")
		a.state("reader", "deep", map[string]any{"state": "idle", "stopReason": "end_turn"})
		a.say("reader", "Not so deep.")
		a.state("root", "reader", map[string]any{"state": "idle", "stopReason": "end_turn"})
	case text == "delegate":
		a.update("root", map[string]any{
			"sessionUpdate": "tool_call", "toolCallId": "task", "title": "Check the totals", "kind": "other", "status": "in_progress",
		})
		children.Go(a.reader)
		children.Go(a.writer)
		children.Wait()
		a.update("root", map[string]any{
			"sessionUpdate": "tool_call_update", "toolCallId": "task", "status": "completed", "content": []any{map[string]any{"type": "session", "sessionId": "reader"}},
		})
		a.say("root", "Both are done.")
	default:
		if n, err := fmt.Sscanf(text, "delegate %d %d", &count, &words); n != 2 || err != nil {
			a.say("root", "How many, and how many words?")
			return
		}
		for i := range count {
			children.Go(func() { a.many(fmt.Sprintf("many-%d", i+1), words) })
		}
	}
}

// reader asks for a permission, and says what it was told.
func (a *delegating) reader() {
	stop := a.stopped("reader")
	a.child("root", "reader", "Reader", "Reads the totals", true)
	a.tell("root", "reader", "m1", "Read the **totals** of `orders.go`.")
	a.say("reader", "I read the totals.")
	result := a.ask("session/request_permission", map[string]any{
		"sessionId": "reader", "toolCall": map[string]any{"toolCallId": "run", "title": "go test ./...", "kind": "execute", "rawInput": map[string]any{"command": "go test ./..."}},
		"options": []any{
			map[string]any{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, map[string]any{"optionId": "no", "name": "Reject", "kind": "reject_once"},
		},
	}, stop)
	status, words := "failed", "\n\nI may not run the tests."
	if strings.Contains(string(result), `"yes"`) {
		status, words = "completed", "\n\nThe totals are right."
	}
	a.update("reader", map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "run", "status": status})
	a.say("reader", words)
	a.tell("reader", "root", "m2", "The totals are right.")
	a.state("root", "reader", map[string]any{"state": "idle", "stopReason": "end_turn", "usage": map[string]any{"totalTokens": 42, "inputTokens": 40, "outputTokens": 2}})
}

// writer writes until it is stopped.
func (a *delegating) writer() {
	stop := a.stopped("writer")
	a.child("root", "writer", "Writer", "Writes the report", true)
	a.tell("root", "writer", "m3", "Write the report.")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-stop:
			a.state("root", "writer", map[string]any{"state": "idle", "stopReason": "cancelled"})
			return
		case <-tick.C:
			a.say("writer", fmt.Sprintf("word %d ", n))
		}
	}
}

// many says words at 200 a second.
func (a *delegating) many(id string, words int) {
	stop := a.stopped(id)
	a.child("root", id, "Subagent "+id, "", true)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := range words {
		select {
		case <-stop:
			a.state("root", id, map[string]any{"state": "idle", "stopReason": "cancelled"})
			return
		case <-tick.C:
			a.say(id, fmt.Sprintf("%d ", n+1))
		}
	}
	a.state("root", id, map[string]any{"state": "idle", "stopReason": "end_turn"})
}
