package demoagent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// servingCapabilities belong to a client that also reads files, writes files and runs programs.
const servingCapabilities = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"session":{"compaction":{}}}`

// serving runs a test with a client that answers the agent's requests by method, and records the requests.
func serving(t *testing.T, capabilities string, answers map[string]string, test func(p *peer, session string, asked *[]string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := start(t)
		session, _ := p.session(capabilities)
		asked := []string{}
		p.onRequest = func(m received) {
			asked = append(asked, m.Method+" "+string(m.Params))
			if failure, ok := strings.CutPrefix(answers[m.Method], "error "); ok {
				p.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": json.RawMessage(failure)})
				return
			}
			p.reply(m, answers[m.Method])
		}
		test(p, session, &asked)
	})
}

func methods(asked []string) []string {
	var list []string
	for _, a := range asked {
		method, _, _ := strings.Cut(a, " ")
		list = append(list, method)
	}
	return list
}

func TestDisk(t *testing.T) {
	answers := map[string]string{"fs/read_text_file": `error {"code":-32002,"message":"not there"}`, "fs/write_text_file": `{}`}
	serving(t, servingCapabilities, answers, func(p *peer, session string, asked *[]string) {
		turn := p.prompt(session, "disk")
		turn.wantStop(p.t, "end_turn")
		turn.wantSaid(p.t, "has written")
		if want := []string{"fs/read_text_file", "fs/write_text_file"}; !slices.Equal(methods(*asked), want) || !strings.Contains((*asked)[1], `Edits so far: 1\n`) {
			p.t.Errorf("asked %v", *asked)
		}
		if call := turn.tool(p.t, 0); call["status"] != "completed" {
			p.t.Errorf(`tool(0): got call %v, want call["status"] "completed"`, call)
		}
	})
	answers["fs/read_text_file"] = `{"content":"somebody's own"}`
	serving(t, servingCapabilities, answers, func(p *peer, session string, asked *[]string) {
		p.prompt(session, "disk").wantSaid(p.t, "The write failed")
		if len(*asked) != 1 {
			p.t.Errorf("it writes what is not its own: %v", *asked)
		}
	})
	serving(t, `{}`, answers, func(p *peer, session string, asked *[]string) {
		p.prompt(session, "disk").wantSaid(p.t, "no files for agents")
		if len(*asked) != 0 {
			p.t.Errorf("asked %v", *asked)
		}
	})
}

func TestSpawn(t *testing.T) {
	answers := map[string]string{
		"terminal/create": `{"terminalId":"t1"}`, "terminal/wait_for_exit": `{"exitCode":0}`, "terminal/release": `{}`,
	}
	serving(t, servingCapabilities, answers, func(p *peer, session string, asked *[]string) {
		turn := p.prompt(session, "spawn")
		turn.wantSaid(p.t, "three steps")
		if want := []string{"terminal/create", "terminal/wait_for_exit", "terminal/release"}; !slices.Equal(methods(*asked), want) {
			p.t.Errorf("asked %v", *asked)
		}
		call, _ := json.Marshal(turn.tool(p.t, 0))
		if !bytes.Contains(call, []byte(`"status":"completed"`)) || !bytes.Contains(call, []byte(`"terminalId":"t1"`)) {
			p.t.Errorf("Marshal: got call %s, want call with []byte(`\"status\":\"completed\"`) and call with []byte(`\"terminalId\":\"t1\"`)", call)
		}
	})
	answers["terminal/wait_for_exit"] = `{"signal":"SIGKILL"}`
	serving(t, servingCapabilities, answers, func(p *peer, session string, _ *[]string) {
		if call := p.prompt(session, "spawn").tool(p.t, 0); call["status"] != "failed" {
			p.t.Errorf(`tool(0): got call %v, want call["status"] "failed"`, call)
		}
	})
	answers["terminal/create"] = `error {"code":-32603,"message":"no"}`
	serving(t, servingCapabilities, answers, func(p *peer, session string, asked *[]string) {
		p.prompt(session, "spawn").wantSaid(p.t, "did not run it")
		if len(*asked) != 1 {
			p.t.Errorf("asked %v", *asked)
		}
	})
}

func TestCompact(t *testing.T) {
	serving(t, servingCapabilities, nil, func(p *peer, session string, _ *[]string) {
		turn := p.prompt(session, "compact")
		var told []string
		for _, kind := range turn.kinds {
			if strings.HasPrefix(kind, "compaction") {
				told = append(told, kind)
			}
		}
		if want := []string{"compaction_update", "compaction_summary_chunk", "compaction_update"}; !slices.Equal(told, want) {
			p.t.Errorf("told %v", told)
		}
	})
	serving(t, `{}`, nil, func(p *peer, session string, _ *[]string) {
		p.prompt(session, "compact").wantSaid(p.t, "does not want to know")
	})
}
