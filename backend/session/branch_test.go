package session_test

import (
	"io"
	"strings"
	"testing"

	"deskhand/backend/attachments"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// A branch goes on from before a message: the message is its draft, with what was said before as a file, and no agent has been started.
func TestBranchBeginsBeforeAMessage(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	parent := d.create()
	first := d.prompt(parent.ID, "echo the first words")
	d.idle(parent.ID)
	file, err := d.Attachments().Upload(t.Context(), "notes.txt", "text/plain", strings.NewReader("notes\n"))
	if err != nil {
		t.Fatalf("Upload(notes.txt): %v", err)
	}
	sent, err := d.Send(t.Context(), parent.ID, session.Prompt{Message: "echo the second words", Attachments: []attachments.PromptAttachment{{ID: file.ID}}})
	if err != nil {
		t.Fatalf("Send with a file: %v", err)
	}
	d.idle(parent.ID)
	before := d.transcript(parent.ID)

	s, err := d.Branch(t.Context(), parent.ID, sent.Turn.ID, "")
	if err != nil {
		t.Fatalf("Branch(%s): %v", sent.Turn.ID, err)
	}
	if want := (session.Origin{Kind: "branch", Session: parent.ID, Turn: sent.Turn.ID, Title: d.get(parent.ID).Title, Agent: parent.Agent}); s.Origin == nil || *s.Origin != want {
		t.Errorf("Origin of a branch: got %+v, want %+v", s.Origin, want)
	}
	if s.Draft != "echo the second words" || s.ACPSessionID != "" || s.Phase != lifecycle.Closed {
		t.Errorf("Branch: got draft %q, agent's session %q, phase %s; want the message, no session, no agent", s.Draft, s.ACPSessionID, s.Phase)
	}
	if len(s.Attachments) != 2 || s.Attachments[0].ID != file.ID || s.Attachments[1].Filename != "what-was-said.md" {
		t.Fatalf("Attachments of a branch: got %+v, want notes.txt and what-was-said.md", s.Attachments)
	}
	given := d.content(s.Attachments[1].ID)
	for _, want := range []string{"## The person\n\necho the first words\n", "## The agent\n\n```json", "You have not seen it"} {
		if !strings.Contains(given, want) {
			t.Errorf("what-was-said.md: got\n%s\nwant %q in it", given, want)
		}
	}
	if strings.Contains(given, "second words") {
		t.Errorf("what-was-said.md: got\n%s\nwant nothing of the message and after it", given)
	}
	tr := d.transcript(s.ID)
	if got := asked(tr); !strings.Contains(got, "first words") || strings.Contains(got, "second words") {
		t.Errorf("messages of a branch: got %s, want those before the message", got)
	}
	if got := dividers(tr); got != "session.branched" {
		t.Errorf("dividers of a branch: got %s, want session.branched", got)
	}
	d.sameAsRebuilt(s.ID)

	_, err = d.Send(t.Context(), s.ID, session.Prompt{Message: "echo the second words, said differently", Attachments: []attachments.PromptAttachment{{ID: s.Attachments[0].ID}, {ID: s.Attachments[1].ID}}})
	if err != nil {
		t.Fatalf("Send in a branch: %v", err)
	}
	if got := said(d.idle(s.ID)); !strings.Contains(got, "said differently") {
		t.Errorf("answers in a branch: got %s, want one to the message said differently", got)
	}
	if got := d.get(s.ID); got.ACPSessionID == "" || got.ACPSessionID == parent.ACPSessionID || got.Draft != "" {
		t.Errorf("a branch that was spoken in: got %+v, want an ACP session of its own and no draft", got)
	}
	if got, want := asked(d.transcript(parent.ID)), asked(before); got != want {
		t.Errorf("messages of the parent: got %s, want %s", got, want)
	}
	d.sameAsRebuilt(s.ID)

	again, err := d.Branch(t.Context(), s.ID, newestTurn(d.transcript(s.ID)), "")
	if err != nil || *again.Origin != *s.Origin || len(again.Attachments) != 2 || again.Attachments[0].ID != file.ID || again.Attachments[1].ID == s.Attachments[1].ID {
		t.Errorf("Branch of a branch's first message: got origin %+v, files %+v, error %v; want those of the branch, with what was said anew", again.Origin, again.Attachments, err)
	}
	start, err := d.Branch(t.Context(), parent.ID, first.ID, "echo instead")
	if err != nil || start.Draft != "echo instead" || len(start.Attachments) != 0 {
		t.Errorf("Branch before the first message: got draft %q, files %+v, error %v; want the other message alone", start.Draft, start.Attachments, err)
	}
	d.delete(parent.ID)
	if got := asked(d.transcript(s.ID)); !strings.Contains(got, "first words") {
		t.Errorf("messages of a branch whose parent is deleted: got %s, want those before the message", got)
	}
}

func TestBranchIsRefused(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	id := d.create().ID
	turn := d.prompt(id, "slow")
	d.works(id)
	_, err := d.Branch(t.Context(), id, turn.ID, "")
	refused(t, err, "turn.running")
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	d.idle(id)
	_, err = d.Branch(t.Context(), id, "019d0000-0000-7000-8000-000000000000", "")
	refused(t, err, "branch.unknown_turn")
	if list, err := d.List(t.Context(), session.Which{}, "", 10); err != nil || len(list.Items) != 1 {
		t.Errorf("List after refused branches: got %+v, error %v; want 1", list, err)
	}
}

func newestTurn(tr session.Transcript) string { return tr.Turns[len(tr.Turns)-1].ID }

// content returns the content of an attachment.
func (d *desk) content(id string) string {
	d.t.Helper()
	_, r, err := d.Attachments().Content(d.t.Context(), id)
	if err != nil {
		d.t.Fatalf("Content(%s): %v", id, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		d.t.Fatalf("reading %s: %v", id, err)
	}
	return string(data)
}
