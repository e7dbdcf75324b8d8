package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// Configure returns at once when the agent ends instead of answering, and when its caller goes away.
func TestConfigureAnAgentThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a shell is needed")
	}
	const begun = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'; read l
		echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}}}'; read l; `
	dir := t.TempDir()
	custom(t, dir, map[string]string{"ends": begun + "exit 0", "silent": begun + "read l"})
	d := open(t, dir)
	open := func(agent string) string {
		t.Helper()
		s, err := d.Create(t.Context(), session.New{Agent: agent, Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
		return s.ID
	}
	_, err := d.Configure(t.Context(), open("ends"), "mode", json.RawMessage(`"b"`))
	refused(t, err, "session.not_ready")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err = d.Configure(ctx, open("silent"), "mode", json.RawMessage(`"b"`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v from an agent that says nothing, want the end of the caller's patience", err)
	}
}
