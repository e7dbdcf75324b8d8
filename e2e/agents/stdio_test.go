//go:build e2e

package agents

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/e2e/agents/llm"
)

const firstWords, lastWords = "I will write the proof. ", "The proof is written."

func shellScript() []llm.Turn {
	return []llm.Turn{
		{When: "write the proof", Steps: []llm.Step{
			{Text: firstWords, Shell: "echo scripted-proof > proof.txt && cat proof.txt"},
			{Text: lastWords},
		}},
		{When: "write the forbidden", Steps: []llm.Step{
			{Text: "I will try. ", Shell: "echo no > forbidden.txt"},
			{Text: "You said no."},
		}},
		{When: "start and never end", Steps: []llm.Step{{Text: "The beginning of a long answer.", Hold: true}}},
		{When: "run something long", Steps: []llm.Step{
			{Text: "This takes a while. ", Shell: "echo running > running.txt; sleep 300"},
			{Text: "It ended."},
		}},
	}
}

func openModel(t *testing.T) *llm.Model {
	t.Helper()
	return openScripted(t, shellScript())
}

func openScripted(t *testing.T, script []llm.Turn) *llm.Model {
	t.Helper()
	model, err := llm.Open(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if hosts := model.Foreign(); len(hosts) > 0 {
			slices.Sort(hosts)
			t.Logf("wanted to reach, and did not: %v", slices.Compact(hosts))
		}
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	return model
}

// TestAgentOverStdio proves that an agent and the scripted model fit, by plain ACP and without Deskhand: if this fails, so must the
// tests of Deskhand, and not by Deskhand's fault.
func TestAgentOverStdio(t *testing.T) {
	for _, agent := range realAgents(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			start := time.Now()
			a := startStdio(t, p, agent, model)
			step := func(what string) {
				t.Logf("%s after %v", what, time.Since(start).Round(time.Millisecond))
				start = time.Now()
			}
			a.call("initialize", map[string]any{
				"protocolVersion":    1,
				"clientInfo":         map[string]string{"name": "deskhand-e2e", "version": "1"},
				"clientCapabilities": map[string]any{},
			})
			step("initialize")
			var session struct{ SessionID string }
			decode(t, a.call("session/new", map[string]any{"cwd": p.work, "mcpServers": []any{}}), &session)
			step("session/new")
			if mode := asking(agent.ID); mode != "" {
				a.call("session/set_mode", map[string]any{"sessionId": session.SessionID, "modeId": mode})
			}

			a.allow = true
			if got := a.prompt(session.SessionID, "Please write the proof."); got != "end_turn" {
				t.Errorf("stop reason %q", got)
			}
			step("prompt with a tool call")
			if got := a.text.String(); !strings.Contains(got, firstWords) || !strings.Contains(got, lastWords) {
				t.Errorf("the agent said %q", got)
			}
			if a.asked != 1 {
				t.Errorf("asked %d times for permission", a.asked)
			}
			mustHold(t, filepath.Join(p.work, "proof.txt"), "scripted-proof\n")
			if !slices.ContainsFunc(model.Requests(), func(r llm.Request) bool {
				return slices.ContainsFunc(r.Messages, func(m llm.Message) bool {
					return m.Role == "tool" && strings.Contains(m.Text, "scripted-proof")
				})
			}) {
				t.Error("the model never saw the tool's output")
			}

			a.allow = false
			a.prompt(session.SessionID, "Please write the forbidden.")
			step("prompt with a refused tool call")
			if _, err := os.Stat(filepath.Join(p.work, "forbidden.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the refused command ran: %v", err)
			}
			for _, process := range p.marked() {
				t.Log(process)
			}
			a.end()
			p.mustBeGone(t, 5*time.Second)
		})
	}
}

// stdioAgent is an agent with its pipes, used from one goroutine.
type stdioAgent struct {
	t        *testing.T
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	messages chan rpc // closed when the agent closes its stdout
	lastID   int
	allow    bool            // how requests for permission are answered
	asked    int             // how many there were
	text     strings.Builder // the text of the agent's messages
}

type rpc struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func startStdio(t *testing.T, p place, agent realAgent, model *llm.Model) *stdioAgent {
	t.Helper()
	p.set(environ(t, model, agent.ID, p))
	cmd := exec.Command(agent.path(t), agent.Args...)
	cmd.Dir, cmd.Env = p.work, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(p.home, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &stdioAgent{t: t, cmd: cmd, stdin: stdin, messages: make(chan rpc)}
	done := make(chan struct{})
	go a.read(stdout, done)
	t.Cleanup(func() {
		close(done)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly gone already
		if t.Failed() {
			stderr, _ := os.ReadFile(log.Name())
			t.Logf("stderr of the agent:\n%s", stderr)
		}
	})
	return a
}

func (a *stdioAgent) read(stdout io.Reader, done <-chan struct{}) {
	defer close(a.messages)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var message rpc
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			continue // not JSON-RPC: none of our business here
		}
		select {
		case a.messages <- message:
		case <-done:
			return
		}
	}
}

func (a *stdioAgent) send(message map[string]any) {
	a.t.Helper()
	message["jsonrpc"] = "2.0"
	line, err := json.Marshal(message)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.stdin.Write(append(line, '\n')); err != nil {
		a.t.Fatal(err)
	}
}

// call sends a request and serves the agent until the answer is there.
func (a *stdioAgent) call(method string, params any) json.RawMessage {
	a.t.Helper()
	a.lastID++
	id := a.lastID
	a.send(map[string]any{"id": id, "method": method, "params": params})
	limit := time.NewTimer(60 * time.Second)
	defer limit.Stop()
	for {
		select {
		case message, ok := <-a.messages:
			switch {
			case !ok:
				a.t.Fatalf("the agent ended during %s: %v", method, a.cmd.Wait())
			case message.Method != "":
				a.serve(message)
			case string(message.ID) == fmt.Sprint(id) && message.Error != nil:
				a.t.Fatalf("%s: got message.Error %s, want not (string(message.ID) == fmt.Sprint(id) && message.Error != nil)", method, message.Error)
			case string(message.ID) == fmt.Sprint(id):
				return message.Result
			}
		case <-limit.C:
			a.t.Fatalf("no answer to %s", method)
		}
	}
}

func (a *stdioAgent) prompt(session, text string) string {
	a.t.Helper()
	var result struct{ StopReason string }
	decode(a.t, a.call("session/prompt", map[string]any{
		"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}},
	}), &result)
	return result.StopReason
}

// serve handles the agent's own messages: updates and requests.
func (a *stdioAgent) serve(message rpc) {
	a.t.Helper()
	switch message.Method {
	case "session/update":
		var params struct {
			Update struct {
				SessionUpdate string
				Content       json.RawMessage
			}
		}
		decode(a.t, message.Params, &params)
		if params.Update.SessionUpdate == "agent_message_chunk" {
			var content struct{ Text string }
			decode(a.t, params.Update.Content, &content)
			a.text.WriteString(content.Text)
		}
	case "session/request_permission":
		a.asked++
		a.send(map[string]any{"id": message.ID, "result": map[string]any{"outcome": a.choose(message.Params)}})
	default:
		if message.ID != nil {
			a.send(map[string]any{"id": message.ID, "error": map[string]any{"code": -32601, "message": "Method not found"}})
		}
	}
}

func (a *stdioAgent) choose(params json.RawMessage) map[string]string {
	a.t.Helper()
	var request struct {
		Options []struct{ OptionID, Kind string }
	}
	decode(a.t, params, &request)
	kind := map[bool]string{true: "allow_once", false: "reject_once"}[a.allow]
	for _, option := range request.Options {
		if option.Kind == kind {
			return map[string]string{"outcome": "selected", "optionId": option.OptionID}
		}
	}
	a.t.Fatalf("no %s among %s", kind, params)
	return nil
}

// end closes the agent's stdin and waits for it.
func (a *stdioAgent) end() {
	a.t.Helper()
	if err := a.stdin.Close(); err != nil {
		a.t.Error(err)
	}
	for range a.messages {
	}
	if err := a.cmd.Wait(); err != nil {
		a.t.Errorf("the agent ended with %v", err)
	}
}

func decode(t *testing.T, data json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

func mustHold(t *testing.T, file, want string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", file, got, err, want)
	}
}
