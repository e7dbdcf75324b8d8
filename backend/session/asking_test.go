package session_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// asking is an agent that does what the prompt says, a list of steps: requests of the client, notifications and updates. It ends the
// turn with the list of the answers that it got, as a message. It has one session, whose id is "s".
type asking struct {
	in      *bufio.Scanner
	out     io.Writer
	options string
	last    int
	ids     map[string]string          // of requests that are not waited for, by name
	answers map[string]json.RawMessage // of the client, by request id
	said    map[string]string          // what $name stands for: the newest terminal, as $T
	turn    json.RawMessage            // the id of the prompt that runs

	hangs  string // a method that is not answered
	yields bool   // but when it is withdrawn
	hung   json.RawMessage
	modes  bool // it has modes, and no options
}

// step of a prompt: exactly one of the first five.
type step struct {
	Ask    string          `json:"ask,omitempty"`    // a request, waited for unless As is given
	Notify string          `json:"notify,omitempty"` // a notification
	Update json.RawMessage `json:"update,omitempty"` // a session/update
	Await  string          `json:"await,omitempty"`  // the answer to the request of that name
	Cancel string          `json:"cancel,omitempty"` // withdraws the request of that name
	Exit   *int            `json:"exit,omitempty"`

	Params map[string]any `json:"params,omitempty"`
	As     string         `json:"as,omitempty"`
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
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

// next takes one message of the client.
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
	var steps []step
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

func (a *asking) ask(s step) string {
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

// wait gives the answer to a request, without what would be long to read.
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

// askingDesk has an agent that asks, whose sessions may reach the files in d.work and none in the private directory beside it.
func askingDesk(t *testing.T, dir string, words ...string) *desk {
	t.Helper()
	return askingDeskWith(t, dir, 0, words...)
}

// askingDeskWith is askingDesk with another patience than that of the other tests.
func askingDeskWith(t *testing.T, dir string, patience time.Duration, words ...string) *desk {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(append([]string{"asking-agent"}, words...))
	if err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`{"agents":[{"id":"asking","name":"Asking","command":%q,"args":%s}]}`, self, args)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	within := files.Within{Private: []string{filepath.Join(dir, "private"), "/proc"}}
	return openAs(t, dir, proxy.Config{}, session.Config{Patience: patience, Files: &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}})
}

func (d *desk) asking(further ...string) string {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "asking", Cwd: d.work, Directories: further})
	if err != nil {
		d.t.Fatal(err)
	}
	return s.ID
}

// of asks something about the newest terminal.
func of(what string) step {
	return step{Ask: "terminal/" + what, Params: map[string]any{"terminalId": "$T"}}
}

// steps has the agent take these steps, and gives the answers that it got.
func (d *desk) steps(id string, steps ...step) []answer {
	d.t.Helper()
	d.begin(id, steps...)
	tr := d.idle(id)
	last := tr.Items[len(tr.Items)-1]
	for i := len(tr.Items) - 1; last.Kind != "agent"; i-- {
		last = tr.Items[i]
	}
	var got []answer
	if err := json.Unmarshal([]byte(last.Text), &got); err != nil {
		d.t.Fatalf("the agent said %.300q: %v", last.Text, err)
	}
	return got
}

func (d *desk) begin(id string, steps ...step) {
	d.t.Helper()
	prompt, err := json.Marshal(steps)
	if err != nil {
		d.t.Fatal(err)
	}
	d.prompt(id, string(prompt))
}

func (d *desk) write(name, content string) string {
	d.t.Helper()
	path := filepath.Join(d.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func kinds(t session.Transcript, kind string) []transcript.Entry {
	var list []transcript.Entry
	for _, e := range t.Items {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

func (d *desk) frames(id string, each func(dir string, data []byte)) {
	d.t.Helper()
	if err := d.Frames(d.t.Context(), id, each); err != nil {
		d.t.Fatal(err)
	}
}

// checkFrames checks every frame that was sent to the agent against the published schema, and tells which there were.
func (d *desk) checkFrames(t *testing.T, id string) (seen map[string]bool) {
	t.Helper()
	definition := acpSchema(t)
	asked := map[string]string{} // the agent's requests, by id
	seen = map[string]bool{}
	d.frames(id, func(dir string, data []byte) {
		var m wire
		if dir == "note" || json.Unmarshal(data, &m) != nil {
			return
		}
		if dir == "in" {
			if m.Method != "" && m.ID != nil {
				asked[string(m.ID)] = m.Method
			}
			return
		}
		method, kind, value := m.Method, "Notification", m.Params
		switch {
		case m.Version != "2.0":
			t.Errorf("no JSON-RPC 2.0: %s", data)
		case m.Method != "" && m.ID != nil:
			kind = "Request"
		case m.Method == "" && m.Error != nil:
			return
		case m.Method == "":
			method, kind, value = asked[string(m.ID)], "Response", m.Result
		}
		seen[method+" "+kind] = true
		if schema := definition(method, kind); schema == nil {
			t.Errorf("%s %s is not in the schema: %s", method, kind, data)
		} else if err := schema.Validate(value); err != nil {
			t.Errorf("%s\n%v", data, err)
		}
	})
	return seen
}
