package agenttest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Step is a step of a prompt to the asking agent. Exactly one of Ask, Notify, Update, Await, Cancel and Exit is set.
type Step struct {
	Ask    string          `json:"ask,omitempty"`    // a request, waited for unless As is given
	Notify string          `json:"notify,omitempty"` // a notification
	Update json.RawMessage `json:"update,omitempty"` // a session/update
	Await  string          `json:"await,omitempty"`  // the answer to the request of that name
	Cancel string          `json:"cancel,omitempty"` // withdraws the request of that name
	Exit   *int            `json:"exit,omitempty"`

	Params map[string]any `json:"params,omitempty"`
	As     string         `json:"as,omitempty"`
}

// asking is an agent that takes the steps of the prompt: requests of the client, notifications and updates. The agent ends the turn with a
// message that lists the answers of the client. Its only session has the id "s".
type asking struct {
	in      *bufio.Scanner
	out     io.Writer
	options string
	last    int
	ids     map[string]string          // of requests that are not waited for, by name
	answers map[string]json.RawMessage // of the client, by request id
	said    map[string]string          // values of names in steps: T is the newest terminal, written $T
	turn    json.RawMessage            // the id of the prompt that runs

	hangs  string // a method that the agent does not answer
	yields bool   // the agent answers that method when the client cancels it
	hung   json.RawMessage
	modes  bool // the agent has modes, and no options
}

func askingAgent(words []string, in io.Reader, out io.Writer) error {
	a := &asking{in: bufio.NewScanner(in), out: out, ids: map[string]string{}, answers: map[string]json.RawMessage{}, said: map[string]string{}}
	a.in.Buffer(nil, 64<<20)
	if len(words) > 0 {
		a.options = words[0]
	}
	if len(words) > 1 {
		a.hangs, a.yields = words[1], len(words) > 2
		a.modes = slices.Contains(words, "modes")
	}
	for a.next() {
	}
	return a.in.Err()
}

func (a *asking) send(frame map[string]any) {
	frame["jsonrpc"] = "2.0"
	line, err := json.Marshal(frame)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(a.out, "%s\n", line)
}

// next reads one message of the client, and acts on a request. next returns false at the end of the input.
func (a *asking) next() bool {
	if !a.in.Scan() {
		return false
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Prompt    []struct{ Text string } `json:"prompt"`
			RequestID json.RawMessage         `json:"requestId"`
		} `json:"params"`
	}
	if err := json.Unmarshal(a.in.Bytes(), &m); err != nil {
		panic(err)
	}
	if m.Method == "" {
		a.answers[string(m.ID)] = json.RawMessage(strings.Clone(a.in.Text()))
		return true
	}
	if m.Method == a.hangs {
		a.hung = m.ID
		return true
	}
	switch m.Method {
	case "$/cancel_request":
		if a.yields && string(m.Params.RequestID) == string(a.hung) {
			a.send(map[string]any{"id": a.hung, "error": map[string]any{"code": -32800, "message": "cancelled"}})
		}
	case "initialize":
		a.send(map[string]any{"id": m.ID, "result": json.RawMessage(cmp.Or(a.options,
			`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{},"additionalDirectories":{}}}}`))})
	case "session/new":
		if a.modes {
			a.send(map[string]any{"id": m.ID, "result": json.RawMessage(
				`{"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}`)})
			break
		}
		a.send(map[string]any{"id": m.ID, "result": map[string]any{"sessionId": "s", "configOptions": json.RawMessage(
			`[{"id":"fast","name":"Fast","type":"boolean","currentValue":false}]`)}})
	case "session/resume", "session/load", "session/set_mode":
		a.send(map[string]any{"id": m.ID, "result": map[string]any{}})
	case "_session/steering":
		a.send(map[string]any{"id": m.ID, "result": map[string]any{"outcome": "injected"}})
	case "session/prompt":
		a.turn = m.ID
		a.run(m.Params.Prompt[0].Text)
	default:
		if m.ID != nil {
			a.send(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": m.Method}})
		}
	}
	return true
}

func (a *asking) update(update any) {
	a.send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "s", "update": update}})
}

func (a *asking) run(prompt string) {
	var steps []Step
	if err := json.Unmarshal([]byte(prompt), &steps); err != nil {
		panic(err)
	}
	var got []json.RawMessage
	for _, s := range steps {
		switch {
		case s.Ask != "":
			id := a.ask(s)
			if s.As == "" {
				got = append(got, a.wait(id))
			}
		case s.Notify != "":
			a.send(map[string]any{"method": s.Notify, "params": s.Params})
		case s.Update != nil:
			a.update(json.RawMessage(a.fill(string(s.Update))))
		case s.Await != "":
			got = append(got, a.wait(a.ids[s.Await]))
		case s.Cancel != "":
			a.send(map[string]any{"method": "$/cancel_request", "params": map[string]any{"requestId": json.RawMessage(a.ids[s.Cancel])}})
		case s.Exit != nil:
			os.Exit(*s.Exit)
		}
	}
	text, err := json.Marshal(got)
	if err != nil {
		panic(err)
	}
	a.update(map[string]any{"sessionUpdate": "agent_message_chunk", "messageId": "answers-" + string(a.turn), "content": map[string]any{"type": "text", "text": string(text)}})
	a.send(map[string]any{"id": a.turn, "result": map[string]any{"stopReason": "end_turn"}})
}

func (a *asking) fill(text string) string { return strings.ReplaceAll(text, "$T", a.said["T"]) }

func (a *asking) ask(s Step) string {
	a.last++
	id := strconv.Itoa(a.last)
	if s.As != "" {
		a.ids[s.As] = id
	}
	if s.Params == nil {
		s.Params = map[string]any{}
	}
	if _, told := s.Params["sessionId"]; !told {
		s.Params["sessionId"] = "s"
	}
	params, err := json.Marshal(s.Params)
	if err != nil {
		panic(err)
	}
	a.send(map[string]any{"id": json.RawMessage(id), "method": s.Ask, "params": json.RawMessage(a.fill(string(params)))})
	return id
}

// wait returns the client's answer to the request with that id.
func (a *asking) wait(id string) json.RawMessage {
	for a.answers[id] == nil {
		if !a.next() {
			os.Exit(0)
		}
	}
	var m struct {
		Result struct {
			TerminalID string `json:"terminalId"`
		} `json:"result"`
	}
	if json.Unmarshal(a.answers[id], &m) == nil && m.Result.TerminalID != "" {
		a.said["T"] = m.Result.TerminalID
	}
	return a.answers[id]
}
