//go:build e2e

package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/session"
	"deskhand/backend/transcript"
	"deskhand/e2e/agents/llm"
)

// TestOtherSessions runs the agents that offer steering, a fork and an import through all three.
func TestOtherSessions(t *testing.T) {
	for _, agent := range pinned(t) {
		offers, tested := map[string][]string{
			"claude":   {"fork", "steer", "close", "delete", "list", "directories"},
			"codex":    {"fork", "steer", "close", "delete", "list", "directories"},
			"opencode": {"fork", "close", "list"},
		}[agent.ID]
		if !tested {
			continue
		}
		t.Run(agent.ID, func(t *testing.T) {
			agent.path(t)
			p := newPlace(t, nil)
			model := openScripted(t, []llm.Turn{
				{When: "echo the lighthouse", Steps: []llm.Step{{Text: "The lighthouse says hello."}}},
				{When: "begin at the harbour", Steps: []llm.Step{{Text: "The beginning of a long answer.", Hold: true}}},
				{When: "turn to the quay", Steps: []llm.Step{{Text: "The quay says hello."}}},
				{When: "go on in the fork", Steps: []llm.Step{{Text: "The fork goes on."}}},
				{When: "go on after the import", Steps: []llm.Step{{Text: "The import goes on."}}},
			})
			p.set(model.Offline())
			p.useStore(t)
			p.set(environ(t, model, agent.ID, p))
			s := startServer(t, p)
			f := follow(s)
			f.open(agent.ID, p)
			if !slices.Equal(f.session.Offers, offers) {
				t.Errorf("it offers %v, want %v", f.session.Offers, offers)
			}
			if end := f.done(f.prompt("Please echo the lighthouse.")); end.StopReason != "end_turn" {
				t.Fatalf(`done: got end %+v, want end.StopReason "end_turn"`, end)
			}
			f.ready()
			if slices.Contains(offers, "steer") {
				steerIt(t, f, model)
			}
			forkIt(t, s, f, model)
			acpID := f.session.ACPSessionID
			s.stop()
			p.mustBeGone(t, 3*time.Second)

			forget(t, p)
			s = startServer(t, p)
			importIt(t, s, agent, p, acpID, model)
			s.stop()
			p.mustBeGone(t, 3*time.Second)
		})
	}
}

func steerIt(t *testing.T, f *follower, model *llm.Model) {
	t.Helper()
	turn := f.prompt("Please begin at the harbour.")
	f.until("the first words", func() bool { return strings.Contains(f.said(), "beginning of a long") })
	f.s.call("POST", "/client/sessions/"+f.session.ID+"/prompt", map[string]string{"message": "Please turn to the quay.", "when": "steer"}, nil)
	f.until("the message in the turn", func() bool {
		return slices.ContainsFunc(f.sorted(), func(e transcript.Entry) bool {
			return e.Kind == "user" && e.Turn == turn && e.Text == "Please turn to the quay."
		})
	})
	model.Release()
	if end := f.done(turn); end.StopReason != "end_turn" || !strings.Contains(f.said(), "The quay says hello.") {
		t.Errorf("done: want end.StopReason \"end_turn\" and f.said() with \"The quay says hello.\", got end %+v\nf.transcript() %s", end, f.transcript())
	}
	f.ready()
}

func forkIt(t *testing.T, s *server, f *follower, model *llm.Model) {
	t.Helper()
	var fork session.Session
	s.call("POST", "/client/sessions/"+f.session.ID+"/fork", nil, &fork)
	if fork.ACPSessionID == "" || fork.ACPSessionID == f.session.ACPSessionID {
		t.Fatalf("forked as %+v", fork)
	}
	g := follow(s)
	g.only, g.session = fork.ID, fork
	g.ready()
	if end := g.done(g.prompt("Please go on in the fork.")); end.StopReason != "end_turn" || !strings.Contains(g.said(), "The fork goes on.") {
		t.Errorf("done: want end.StopReason \"end_turn\" and g.said() with \"The fork goes on.\", got end %+v\ng.transcript() %s", end, g.transcript())
	}
	mustKnow(t, model, "lighthouse says hello", "go on in the fork")
	want := []string{"session.forked", "session.resumed"}
	if fork.Agent == "codex" { // Codex forgets a fork that is closed before its first message; the fork is made again
		want = want[:1]
	}
	entries, _ := s.entriesOf(fork.ID)
	if got := dividersOf(entries); !slices.Equal(got, want) || (g.session.ACPSessionID == fork.ACPSessionID) != (len(want) == 2) {
		t.Errorf("dividers %v, session %s of %s", got, g.session.ACPSessionID, fork.ACPSessionID)
	}
	if parent, _ := s.entriesOf(f.session.ID); len(dividersOf(parent)) > 0 || slices.ContainsFunc(parent, func(e transcript.Entry) bool { return e.Kind == "raw" }) {
		t.Errorf("the parent shows the fork:\n%s", readable(parent))
	}
}

func importIt(t *testing.T, s *server, agent realAgent, p place, acpID string, model *llm.Model) {
	t.Helper()
	var page session.AgentSessions
	s.call("GET", "/client/agents/"+agent.ID+"/sessions?directory="+p.work, nil, &page)
	i := slices.IndexFunc(page.Items, func(a session.AgentSession) bool { return a.ACPSessionID == acpID })
	if i < 0 || !page.Supported {
		t.Fatalf("%s is not in %+v", acpID, page)
	}
	t.Logf("%d listed, such as %+v", len(page.Items), page.Items[i])
	if page.Items[i].Cwd != p.work || page.Items[i].Session != "" {
		t.Errorf("listed as %+v", page.Items[i])
	}
	f := follow(s)
	s.call("POST", "/client/sessions/import", session.Import{Agent: agent.ID, ACPSessionID: acpID, Cwd: p.work}, &f.session)
	f.only = f.session.ID
	f.ready()
	entries, _ := s.entriesOf(f.session.ID)
	user := slices.ContainsFunc(entries, func(e transcript.Entry) bool {
		return e.Kind == "user" && strings.Contains(e.Text, "Please echo the lighthouse.")
	})
	if !user || !strings.Contains(said(entries), "The lighthouse says hello.") || !slices.Equal(dividersOf(entries), []string{"session.imported"}) {
		t.Errorf("imported\n%s", readable(entries))
	}
	if slices.ContainsFunc(entries, func(e transcript.Entry) bool { return e.Kind == "raw" }) {
		t.Errorf("not understood:\n%s", readable(entries))
	}
	if end := f.done(f.prompt("Please go on after the import.")); end.StopReason != "end_turn" || !strings.Contains(f.said(), "The import goes on.") {
		t.Errorf("done: want end.StopReason \"end_turn\" and f.said() with \"The import goes on.\", got end %+v\nf.transcript() %s", end, f.transcript())
	}
	mustKnow(t, model, "lighthouse says hello", "go on after the import")
}

// mustKnow fails unless the model's request with the text asked has the text before in an earlier message.
func mustKnow(t *testing.T, model *llm.Model, before, asked string) {
	t.Helper()
	if !slices.ContainsFunc(model.Requests(), func(r llm.Request) bool {
		text := fmt.Sprint(r.Messages)
		return strings.Contains(text, before) && strings.Contains(text, asked)
	}) {
		t.Errorf("the model never got %q with %q before it", asked, before)
	}
}

func dividersOf(entries []transcript.Entry) (codes []string) {
	for _, e := range entries {
		if e.Divider != nil {
			codes = append(codes, e.Divider.Code)
		}
	}
	return codes
}

// forget removes all conversations from Deskhand; the agents keep theirs.
func forget(t *testing.T, p place) {
	t.Helper()
	data := filepath.Join(p.lookup("XDG_DATA_HOME"), "deskhand")
	files, err := filepath.Glob(filepath.Join(data, "deskhand.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no database in %s: %v", data, err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	accept := exec.Command(deskhand(), "data", "accept") // a start would refuse a directory whose database was removed
	accept.Dir, accept.Env = p.home, p.env
	if out, err := accept.CombinedOutput(); err != nil {
		t.Fatalf("deskhand data accept: got %v, want no error:\n%s", err, out)
	}
}
