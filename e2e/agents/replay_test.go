//go:build e2e

package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// TestReplay: a recording of a real agent gives the same conversation as the agent.
func TestReplay(t *testing.T) {
	for _, agent := range realAgents(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			id := onPath(t, &p, agent, model)
			recording := filepath.Join(t.TempDir(), "case.zip")
			addAgent(t, p, map[string]any{"id": "replay", "command": deskhand(), "args": []string{"agent", "replay", recording, "--speed", "0"}})
			s := startServer(t, p)
			was := converse(s, id, p)
			if err := os.WriteFile(recording, s.export(was.session.ID, "recording"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(p.work, "proof.txt")); err != nil {
				t.Fatal(err)
			}
			now := converse(s, "replay", p)
			then, _ := s.entriesOf(was.session.ID)
			again, _ := s.entriesOf(now.session.ID)
			if a, b := anyone(then), anyone(again); !reflect.DeepEqual(a, b) {
				t.Errorf("the replay is\n%s\nbut then it was\n%s", readable(again), readable(then))
			}
			if _, err := os.Stat(filepath.Join(p.work, "proof.txt")); err == nil {
				t.Error("the replay ran the command")
			}
			s.stop()
			p.mustBeGone(t, 2*time.Second)
		})
	}
}

// converse is a turn with an approval, in a new session.
func converse(s *server, agent string, p place) *follower {
	s.t.Helper()
	f := follow(s)
	f.open(agent, p)
	turn := f.prompt("Please write the proof.")
	f.answer("allow_once")
	if end := f.done(turn); end.StopReason != "end_turn" {
		s.t.Fatalf("stop reason %q, error %+v", end.StopReason, end.Error)
	}
	return f
}

// addAgent writes the agents.json of a place.
func addAgent(t *testing.T, p place, agent map[string]any) {
	t.Helper()
	file, err := json.Marshal(map[string]any{"agents": []any{agent}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(p.lookup("XDG_CONFIG_HOME"), "deskhand")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *server) export(id, format string) []byte {
	s.t.Helper()
	status, data := s.try("GET", "/client/sessions/"+id+"/export?format="+format, nil)
	if status != 200 {
		s.t.Fatalf(`try("GET"): got status %d, data %s, want status 200`, status, data)
	}
	return data
}

// anyone is a transcript without ids and times.
func anyone(entries []transcript.Entry) []transcript.Entry {
	list := make([]transcript.Entry, len(entries))
	for i, e := range entries {
		e.ID, e.Session, e.Turn, e.Seq, e.At, e.Request = "", "", "", 0, session.Time{}, ""
		if e.Tool != nil {
			tool := *e.Tool
			tool.StartedAt, tool.EndedAt = session.Time{}, nil
			e.Tool = &tool
		}
		if e.Terminal != nil {
			terminal := *e.Terminal
			terminal.StartedAt, terminal.EndedAt = session.Time{}, nil
			e.Terminal = &terminal
		}
		list[i] = e
	}
	return list
}
