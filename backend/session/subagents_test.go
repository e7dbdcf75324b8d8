package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/export"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/search"
	"deskhand/backend/session"
)

// delegates returns a session with an agent that hands its work to subagents.
func delegates(t *testing.T, dir string) (*desk, string) {
	t.Helper()
	file := fmt.Sprintf(`{"agents":[{"id":"lead","name":"Lead","command":%q,"args":["delegating-agent"]}]}`, agenttest.Program(t))
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openWith(t, dir, proxy.Config{Purpose: processes.ForSession})
	s, err := d.Create(t.Context(), session.New{Agent: "lead", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	return d, s.ID
}

// subagents returns the sessions of the subagents of a session, by their titles.
func (d *desk) subagents(id string) map[string]session.Session {
	d.t.Helper()
	page, err := d.List(d.t.Context(), session.Which{Of: id}, "", 1000)
	if err != nil {
		d.t.Fatal(err)
	}
	byTitle := map[string]session.Session{}
	for _, s := range page.Items {
		byTitle[s.Title] = s
	}
	return byTitle
}

// subagent waits for the session of a subagent.
func (d *desk) subagent(id, title string) (s session.Session) {
	d.t.Helper()
	d.until("subagent "+title, func() bool {
		s = d.subagents(id)[title]
		return s.ID != ""
	})
	return s
}

func kindsOf(tr session.Transcript) string {
	var list []string
	for _, e := range tr.Items {
		list = append(list, e.Kind)
	}
	return strings.Join(list, " ")
}

func TestSubagentsAreSessionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	d, id := delegates(t, t.TempDir())
	d.prompt(id, "delegate")
	reader, writer := d.subagent(id, "Reader"), d.subagent(id, "Writer")
	r := d.request(reader.ID)
	if s := d.get(reader.ID); s.Phase != "waiting" || s.Subagent.Parent != id || s.Subagent.Description != "Reads the totals" || !s.Subagent.Stoppable || s.Turn == nil {
		t.Errorf("the session of the reader while it asks: got %+v of %+v, want it to wait, with a turn, below %s", s, s.Subagent, id)
	}
	if s := d.get(id); s.Phase != "working" || s.Subagents != 2 {
		t.Errorf("the session of the lead: got phase %s with %d subagents, want working with 2", s.Phase, s.Subagents)
	}

	// One is stopped, and the others go on.
	d.until("word of the writer", func() bool { return strings.Contains(textOf(d.transcript(writer.ID), "agent"), "word 2") })
	if err := d.Cancel(t.Context(), writer.ID); err != nil {
		t.Fatalf("Cancel of the writer: %v", err)
	}
	stopped := d.idle(writer.ID)
	wantStop(t, stopped, "cancelled")
	if d.get(id).Turn == nil || d.get(reader.ID).Turn == nil {
		t.Errorf("after the stop of the writer: got no turn of the lead or of the reader, want both to work on")
	}
	d.answer(r, requests.Answer{OptionID: "yes"})
	lead := d.idle(id)
	wantStop(t, lead, "end_turn")
	read := d.idle(reader.ID)
	wantStop(t, read, "end_turn")

	if got, want := kindsOf(lead), "user tool subagent message subagent message message agent"; !sameKinds(got, want) {
		t.Errorf("the transcript of the lead: got %s, want in any order %s", got, want)
	}
	if got, want := kindsOf(read), "message agent request tool agent message"; !sameKinds(got, want) {
		t.Errorf("the transcript of the reader: got %s, want in any order %s", got, want)
	}
	if text := textOf(read, "agent"); text != "I read the totals.\n\n\nThe totals are right.\n" {
		t.Errorf("what the reader said: got %q", text)
	}
	if usage := string(lastTurn(read).Usage); !strings.Contains(usage, `"totalTokens":42`) {
		t.Errorf("the usage of the reader's turn: got %q, want 42 tokens", usage)
	}
	if text := textOf(lead, "agent"); text != "Both are done.\n" {
		t.Errorf("what the lead said: got %q, want nothing of its subagents", text)
	}
	_, text := d.export(reader.ID, export.Markdown)
	for _, part := range []string{"# Reader", "## Message from another session\n\nRead the **totals**", "## Message to another session", "I read the totals."} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the reader's conversation as Markdown: got %s, want %q in it", text, part)
		}
	}
	if _, text := d.export(id, export.Markdown); !strings.Contains(string(text), "*Subagent: Reader: Reads the totals*") {
		t.Errorf("the lead's conversation as Markdown: got %s, want the reader named", text)
	}
	d.until("hit in the reader's session", func() bool {
		return slices.ContainsFunc(d.found("orders").Items, func(h search.Hit) bool { return h.Session == reader.ID })
	})
	for _, id := range []string{id, reader.ID, writer.ID} {
		d.sameAsRebuilt(id)
	}
	d.wantVerified()
}

func sameKinds(got, want string) bool {
	return slices.Equal(slices.Sorted(strings.FieldsSeq(got)), slices.Sorted(strings.FieldsSeq(want)))
}

func TestSessionOfSubagentIsItsAgents(t *testing.T) {
	t.Parallel()
	d, id := delegates(t, t.TempDir())
	d.prompt(id, "delegate deep")
	d.idle(id)
	reader := d.subagent(id, "Reader")
	deep := d.subagent(reader.ID, "Deep reader")
	if text := textOf(d.idle(deep.ID), "agent"); text != "Deep.\n" {
		t.Errorf("what the subagent of a subagent said: got %q, want Deep.", text)
	}
	d.idle(reader.ID)
	for name, command := range map[string]func() error{
		"Prompt": func() error { _, err := d.Prompt(t.Context(), reader.ID, "hello"); return err },
		"Send": func() error {
			_, err := d.Send(t.Context(), reader.ID, session.Prompt{Message: "x", When: session.Queue})
			return err
		},
		"Restart": func() error { return d.Restart(t.Context(), reader.ID) },
		"Delete":  func() error { return d.Delete(t.Context(), reader.ID) },
		"Fork":    func() error { _, err := d.Fork(t.Context(), reader.ID); return err },
	} {
		if err := command(); !strings.Contains(fmt.Sprint(err), "subagent.delegated") {
			t.Errorf("%s: got %v, want refused: subagent.delegated", name, err)
		}
	}
	if s, err := d.Continuations().Begin(t.Context(), reader.ID, "mock"); err != nil || s.Subagent != nil || s.Origin == nil || s.Origin.Session != reader.ID {
		t.Errorf("a continuation of the reader: got %+v, error %v, want a conversation of a person that comes from it", s, err)
	} else if err := d.Delete(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	title := "My reader"
	if s, err := d.Change(t.Context(), reader.ID, session.Patch{Title: &title}); err != nil || s.Title != title {
		t.Errorf("Change of the title: got %q, error %v", s.Title, err)
	}
	page, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != id {
		t.Errorf("List: got %+v, error %v, want the lead alone", page.Items, err)
	}
	if err := d.Erase(t.Context(), id); err != nil {
		t.Fatalf("Erase of the lead: %v", err)
	}
	d.notFound(reader.ID)
	d.notFound(deep.ID)
}

// A process that comes again announces its children again, and replays what they have said. Nothing is stored twice.
func TestSubagentsAreTheSameAfterARestart(t *testing.T) {
	t.Parallel()
	d, id := delegates(t, t.TempDir())
	d.prompt(id, "delegate")
	reader := d.subagent(id, "Reader")
	writer := d.subagent(id, "Writer")
	d.request(reader.ID)
	agent, err := os.FindProcess(d.process(id))
	if err == nil {
		err = agent.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	lead := d.idle(id)
	wantStop(t, lead, "agent_exited")
	for _, child := range []session.Session{reader, writer} {
		wantStop(t, d.idle(child.ID), "agent_exited")
		if s := d.get(child.ID); s.Phase != "closed" || s.Waiting > 0 {
			t.Errorf("the session of %s after the end of the process: got phase %s with %d requests, want it closed", child.Title, s.Phase, s.Waiting)
		}
	}
	before := len(d.transcript(reader.ID).Items)
	d.prompt(id, "hello")
	d.idle(id)
	if page := d.subagents(id); len(page) != 2 || page["Reader"].ID != reader.ID {
		t.Errorf("the subagents after a restart: got %v, want the same two", page)
	}
	if after := d.transcript(reader.ID); len(after.Items) != before || len(after.Turns) != 1 {
		t.Errorf("the transcript of the reader after a restart: got %s in %d turns, want the %d entries of before in one", kindsOf(after), len(after.Turns), before)
	}
	d.sameAsRebuilt(reader.ID)
	d.wantVerified()
}

// Fifty subagents that speak at once lose no word.
func TestManySubagentsAtOnce(t *testing.T) {
	t.Parallel()
	const children, words = 50, 20
	d, id := delegates(t, t.TempDir())
	d.prompt(id, fmt.Sprintf("delegate %d %d", children, words))
	wantStop(t, d.idle(id), "end_turn")
	var want strings.Builder
	for n := range words {
		fmt.Fprintf(&want, "%d ", n+1)
	}
	var list map[string]session.Session
	d.until(fmt.Sprintf("%d subagents", children), func() bool { list = d.subagents(id); return len(list) == children })
	for title, s := range list {
		tr := d.idle(s.ID)
		wantStop(t, tr, "end_turn")
		if got := textOf(tr, "agent"); got != want.String()+"\n" {
			t.Errorf("%s said: got %q, want %q", title, got, want.String())
		}
	}
	if s := d.get(id); s.Subagents != children {
		t.Errorf("the lead: got %d subagents, want %d", s.Subagents, children)
	}
}
