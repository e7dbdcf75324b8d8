package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/session"
)

// TestInboxPrintsAllOfALongRequest: a pipe gets the whole of a request that is longer than its record, with its true counts.
func TestInboxPrintsAllOfALongRequest(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	command := "echo " + strings.Repeat("a", 69_986) + "; rm -rf ~\u200b"
	ask, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": map[string]any{
		"sessionId": "s", "toolCall": map[string]any{"toolCallId": "t", "title": "Run\u202e it\u200b", "kind": "execute", "rawInput": map[string]any{"command": command}},
		"options": []map[string]any{{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	line := filepath.Join(work, "ask.json")
	if err := os.WriteFile(line, append(ask, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	const agent = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; IFS= read -r l <"$0"; printf '%s\n' "$l"; while read l; do :; done`
	file, err := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "long", "command": "/bin/sh", "args": []string{"-c", agent, line}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "agents.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	server(t, dir)
	c := onSocket(t, dir)
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "long", Cwd: work}, &s)
	r := c.asks(s, "go")
	if list, stderr, code := run(t, dir, "inbox", "list"); code != 0 || !strings.Contains(list, "Run[U+202E] it[U+200B]") {
		t.Errorf("inbox list: got code %d and %q, want 0 and the characters that are not seen written out\n%s", code, list, stderr)
	}
	_, stderr, code := run(t, dir, "inbox", "answer", r.ID)
	if code != 2 || !strings.Contains(stderr, strings.Repeat("a", 69_986)+"; rm -rf ~[U+200B]") || !strings.Contains(stderr, "command, 70002 letters in 1 lines, with characters that are not seen") {
		t.Errorf("inbox answer: got code %d and %d bytes ending in %q; want 2, the whole command and its counts", code, len(stderr), stderr[max(0, len(stderr)-400):])
	}
	if strings.Contains(stderr, "not all of it is shown") || strings.Contains(stderr, "kept in the journal") {
		t.Errorf("inbox answer: got a mark of something left out, want none: %q", stderr[max(0, len(stderr)-400):])
	}
}
