package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// TestToolsThatAgentDoesNotFetchAreTold: when the agent has not fetched the list of Deskhand's tools, one notice follows the first turn of
// the start; the next start is checked anew. Qwen Code gets the tools by stdio, other agents by HTTP where they take HTTP.
func TestToolsThatAgentDoesNotFetchAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := agenttest.Program(t)
	file := fmt.Sprintf(`{"agents":[{"id":"qwen-code","command":%q,"args":["demo-agent"],"override":true},{"id":"mine","command":%[1]q,"args":["demo-agent"]}]}`, agent)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var fetches atomic.Bool
	var order atomic.Value
	tools := func(_ string, transports []string) (json.RawMessage, <-chan struct{}, bool) {
		order.Store(strings.Join(transports, " "))
		listed := make(chan struct{})
		if fetches.Load() {
			close(listed)
		}
		return json.RawMessage(`{"name":"deskhand","command":"/bin/true","args":[],"env":[]}`), listed, true
	}
	d := openAs(t, dir, proxy.Config{}, session.Config{Tools: &host.Tools{Give: tools, End: func(string) {}}})
	told := func(id string) (n int) {
		for _, e := range d.transcript(id).Items {
			if e.Kind == "notice" && strings.Contains(e.Notice.Title, "own tools were not there") {
				n++
			}
		}
		return n
	}
	for _, agent := range []string{"mine", "qwen-code", "mock"} {
		fetches.Store(false)
		s, err := d.Create(t.Context(), session.New{Agent: agent, Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		d.isReady(s.ID)
		if want := map[string]string{"qwen-code": "stdio http", "mine": "http stdio"}[agent]; want != "" && order.Load() != want {
			t.Errorf("%s: the tools were offered by %q, want %q", agent, order.Load(), want)
		}
		if n := told(s.ID); n != 0 {
			t.Errorf("%s: told %d times before its first turn", agent, n)
		}
		for range 2 {
			d.prompt(s.ID, "echo hello")
			d.idle(s.ID)
		}
		want := 1
		if agent != "qwen-code" { // agents outside the catalogue may use no tools
			want = 0
		}
		if n := told(s.ID); n != want {
			t.Errorf("%s: told %d times, want %d", agent, n, want)
		}
		fetches.Store(true)
		if err := d.Restart(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		d.isReady(s.ID)
		d.prompt(s.ID, "echo again")
		d.idle(s.ID)
		if n := told(s.ID); n != want {
			t.Errorf("%s, after a start at which it fetched them: told %d times, want %d", agent, n, want)
		}
		d.sameAsRebuilt(s.ID)
	}
}
