package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// leavingAgent runs an agent that starts each prompt as a shell command in a session of its own, as agents do, and reports the command as a tool
// call. A cancelled turn leaves the command of a prompt that begins with "leave" running, and ends that of a prompt that begins with "end". The
// agent does not report the command of a prompt that begins with "own". Each prompt also starts a helper of the agent.
func leavingAgent(in io.Reader, out io.Writer) error {
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	var prompt json.RawMessage
	var command *exec.Cmd
	var how, text string
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Prompt []struct{ Text string } }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		switch m.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`, m.ID)
		case "session/new":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"leaver"}}`, m.ID)
		case "session/prompt":
			prompt = m.ID
			how, text, _ = strings.Cut(m.Params.Prompt[0].Text, " ")
			if how != "own" {
				say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"leaver","update":{"sessionUpdate":"tool_call","toolCallId":"call-%s","title":"Run it","kind":"execute","status":"in_progress","rawInput":{"command":%q}}}}`, m.ID, text)
			}
			command = exec.Command("setsid", "/bin/sh", "-c", text)
			helper := exec.Command("/bin/sleep", "305")
			if err := command.Start(); err != nil {
				return err
			}
			if err := helper.Start(); err != nil {
				return err
			}
			go command.Wait()
		case "session/cancel":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"cancelled"}}`, prompt)
			if how == "end" { // after the answer, like Claude
				_ = command.Process.Kill()
			}
		}
	}
	return nil
}
