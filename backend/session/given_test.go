package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// What agents.json gives to an agent under a name of a secret is written nowhere when the agent quotes it.
func TestASecretOfAgentsFileIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const secret = "correct-horse-battery"
	file := fmt.Sprintf(`{"agents":[{"id":"asking","name":"Asking","command":%q,"args":["asking-agent"],"env":{"SERVICE_TOKEN":%q,"MODE":"production"}}]}`, self, secret)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openAs(t, dir, proxy.Config{}, session.Config{})
	id := d.asking()
	d.until("ready", func() bool { return d.get(id).Phase == session.Ready })
	said, err := json.Marshal(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "my token is " + secret + " in production"}})
	if err != nil {
		t.Fatal(err)
	}
	d.steps(id, step{Update: said})
	if text := textOf(d.transcript(id), "agent"); !strings.Contains(text, "my token is [redacted] in production") {
		t.Errorf("%q", text)
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
