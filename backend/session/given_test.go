package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// The redaction of a secret that looks like a part of a message leaves the message and the journal readable.
func TestSecretThatLooksLikeJSONBreaksNoFrame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const script = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":1234567890123456,"size":200000}}}'
		echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It is \"Zx9-long-one, no?"}}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		cat >/dev/null`
	file := string(asJSON(t, map[string]any{"agents": []any{map[string]any{
		"id": "says", "command": "/bin/sh", "args": []string{"-c", script}, "env": map[string]string{"A_TOKEN": "1234567890123456", "B_TOKEN": `"Zx9-long-one`, "C_TOKEN": `Zx9-long-two\`},
	}}}))
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	s := d.createOf("says")
	d.isReady(s.ID)
	d.prompt(s.ID, `Is it "Zx9-long-one or Zx9-long-two\?`)
	tr := d.idle(s.ID)
	if said, asked := textOf(tr, "agent"), textOf(tr, "user"); said != "It is [redacted], no?\n" || asked != "Is it [redacted] or [redacted]?\n" {
		t.Errorf("got agent text %q and prompt %q, want only the secrets redacted", said, asked)
	}
	told := false
	for _, data := range d.journal(s.ID) {
		told = told || strings.Contains(string(data), `"used":"[redacted]","size":200000`)
	}
	if !told {
		t.Error("what was told of the usage is lost")
	}
	d.sameAsRebuilt(s.ID)
	d.wantVerified()
}

// A secret that agents.json gives to an agent is written nowhere when the agent quotes it.
func TestSecretOfAgentsFileIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	agent := agenttest.Program(t)
	const secret = "correct-horse-battery"
	file := fmt.Sprintf(`{"agents":[{"id":"asking","name":"Asking","command":%q,"args":["asking-agent"],"env":{"SERVICE_TOKEN":%q,"MODE":"production"}}]}`, agent, secret)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openAs(t, dir, proxy.Config{}, session.Config{})
	id := d.asking()
	d.until("ready", func() bool { return d.get(id).Phase == lifecycle.Ready })
	said, err := json.Marshal(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "my token is " + secret + " in production"}})
	if err != nil {
		t.Fatal(err)
	}
	d.steps(id, step{Update: said})
	if text := textOf(d.transcript(id), "agent"); !strings.Contains(text, "my token is [redacted] in production") {
		t.Errorf("agent's text: got %q, want the token redacted", text)
	}
	d.close()
	data, err := os.ReadFile(filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte(secret)) {
		t.Error("it is in the database")
	}
}
