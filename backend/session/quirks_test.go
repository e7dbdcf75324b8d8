package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// TestQuirksRefuseRequestsAtOnce: requests that Qwen makes of its vendor's own client do not hold up a turn; the same request of an agent
// that was not measured is shown to a person. The transcript does not show them, since Qwen makes them at every step.
func TestQuirksRefuseRequestsAtOnce(t *testing.T) {
	t.Parallel()
	const script = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","id":"c","method":"craft/drainMidTurnQueue","params":{"sessionId":"s"}}'
		read l; case $l in *-32601*) what=refused ;; *) what=other ;; esac
		echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'$what'"}}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		cat >/dev/null`
	dir := t.TempDir()
	var list []map[string]any
	for _, id := range []string{"qwen-code", "mine"} {
		list = append(list, map[string]any{"id": id, "override": true, "command": "/bin/sh", "args": []string{"-c", script}})
	}
	data, err := json.Marshal(map[string]any{"agents": list})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	start := func(agent string) session.Session {
		t.Helper()
		s, err := d.Create(t.Context(), session.New{Agent: agent, Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		d.prompt(s.ID, "hello")
		return s
	}
	s := start("qwen-code")
	if tr := d.idle(s.ID); !strings.Contains(textOf(tr, "agent"), "refused") || find(tr, "request") != nil || find(tr, "raw") != nil {
		t.Errorf("transcript of qwen-code: got %+v, want a refusal and no request", tr.Items)
	}
	s = start("mine")
	r := d.request(s.ID)
	if r.Kind != "raw" || !strings.Contains(r.Title, "craft/") {
		t.Errorf("request of mine: got %+v, want it raw, of craft/", r)
	}
	d.answer(r, requests.Answer{Action: "cancel"})
	d.idle(s.ID)
}

// TestQuirksWithholdFileCapabilities: Gemini cannot make a new file when it is offered to read files through Deskhand, so it is offered
// programs only; other agents are offered files too.
func TestQuirksWithholdFileCapabilities(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := agenttest.Program(t)
	var list []map[string]any
	for _, id := range []string{"gemini", "mine"} {
		list = append(list, map[string]any{"id": id, "override": true, "command": agent, "args": []string{"asking-agent"}})
	}
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), mustJSON(t, map[string]any{"agents": list}), 0o600); err != nil {
		t.Fatal(err)
	}
	within := files.Within{}
	d := openAs(t, dir, proxy.Config{}, session.Config{Files: &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}})
	for agent, want := range map[string]string{"gemini": `"readTextFile":false,"writeTextFile":false`, "mine": `"readTextFile":true,"writeTextFile":true`} {
		s, err := d.Create(t.Context(), session.New{Agent: agent, Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		d.idle(s.ID)
		told := 0
		d.frames(s.ID, func(dir string, data []byte) {
			if dir != "out" || !strings.Contains(string(data), `"initialize"`) {
				return
			}
			told++
			if !strings.Contains(string(data), want) || !strings.Contains(string(data), `"terminal":true`) {
				t.Errorf("%s is told %s", agent, data)
			}
		})
		if told != 1 {
			t.Errorf("%s is told %d times what it may use", agent, told)
		}
	}
}
