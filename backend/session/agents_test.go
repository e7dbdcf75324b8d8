package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// asksForLogin is an agent that refuses a session, and a turn, for a missing login while the files for each are not there.
const asksForLogin = `while read -r line; do
  id=$(printf %%s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  refuse() { echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32000,"message":"'"$1"' sk-0123456789abcdef0123"}}'; }
  say() { echo '{"jsonrpc":"2.0","id":'$id',"result":'"$1"'}'; }
  case $line in
  *'"initialize"'*) say '{"protocolVersion":1}' ;;
  *'"session/new"'*) if [ -e %[1]s/session ]; then say '{"sessionId":"s"}'; else refuse 'no session'; fi ;;
  *'"session/prompt"'*) if [ -e %[1]s/turn ]; then say '{"stopReason":"end_turn"}'; else refuse 'no turn'; fi ;;
  esac
done`

func TestAgentNeedsLoginAfterRefusedSessionOrTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	entry := map[string]any{"id": "shy", "command": "/bin/sh", "args": []string{"-c", fmt.Sprintf(asksForLogin, dir)}}
	data, err := json.Marshal(map[string]any{"agents": []any{entry}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	shy := func() agents.Agent {
		t.Helper()
		list, err := d.roster.List(t.Context(), false, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if a.ID == "shy" {
				return a
			}
		}
		t.Fatal("it is not in the list")
		return agents.Agent{}
	}
	after := int64(0)
	told := func() (state string) { // told returns the login state of the next event since the last call
		t.Helper()
		for n := 0; n < 60 && state == ""; n++ { // the event comes a moment after the change
			b, err := d.Feed().After(t.Context(), feed.Query{Gen: d.Feed().Gen(), After: after, Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			after = b.Seq
			for _, e := range b.Events {
				var a agents.Agent
				if e.Type == "agent.upsert" && json.Unmarshal(e.Data, &a) == nil {
					state += a.ID + " " + a.State + ";"
				}
			}
		}
		return state
	}
	appears := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a := shy(); a.State != agents.Ready {
		t.Fatalf("agent shy: got %+v, want it ready", a)
	}
	s, err := d.Create(t.Context(), session.New{Agent: "shy", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.until("refusal of the session", func() bool { return shy().State == agents.NeedsLogin })
	if a := shy(); a.Detail != "no session [redacted]" {
		t.Errorf("agent shy after the refusal of a session: got %+v, want its detail redacted", a)
	}
	if got := told(); got != "shy needs_login;" {
		t.Errorf("told: %q", got)
	}

	appears("session")
	d.until("end of the agent", func() bool { return d.get(s.ID).Phase == lifecycle.Closed })
	s, err = d.Create(t.Context(), session.New{Agent: "shy", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.until("a session", func() bool { return shy().State == agents.Ready })
	if got := told(); got != "shy ready;" {
		t.Errorf("told: %q", got)
	}

	d.prompt(s.ID, "hello")
	d.until("refusal of the turn", func() bool { return shy().State == agents.NeedsLogin })
	if a := shy(); a.Detail != "no turn [redacted]" {
		t.Errorf("agent shy after the refusal of a turn: got %+v, want its detail redacted", a)
	}
	appears("turn")
	d.idle(s.ID)
	d.prompt(s.ID, "hello again")
	d.idle(s.ID)
	d.until("a turn", func() bool { return shy().State == agents.Ready })
}
