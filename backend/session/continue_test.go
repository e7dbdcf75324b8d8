package session_test

import (
	"strings"
	"testing"

	"deskhand/backend/session"
)

func TestContinueWithAnotherAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "resume")
	d := open(t, dir)
	first := d.create()
	d.prompt(first.ID, "echo our-own-token and more")
	d.idle(first.ID)
	first = d.get(first.ID)
	s, err := d.Continuations().Begin(t.Context(), first.ID, "forgetful")
	if err != nil {
		t.Fatal(err)
	}
	if want := (session.Origin{Kind: "continue", Session: first.ID, Title: first.Title, Agent: "mock"}); s.Origin == nil || *s.Origin != want {
		t.Fatalf("origin: got %+v, want %+v", s.Origin, want)
	}
	if s.ID == first.ID || s.Agent != "forgetful" || s.Cwd != first.Cwd || s.Workspace.ID != first.Workspace.ID {
		t.Fatalf("session: got %+v, want another one with agent forgetful, in the directory and workspace of %+v", s, first)
	}
	if !strings.Contains(s.Draft, "## What I asked\n\n> echo") || !strings.Contains(s.Draft, "## Last answer") || strings.Contains(s.Draft, "our-own-token") {
		t.Fatalf("draft: got %s, want the question and the last answer, without the token", s.Draft)
	}
	d.prompt(s.ID, s.Draft)
	d.idle(s.ID)
	if now := d.get(s.ID); now.Draft != "" || now.Title != first.Title {
		t.Fatalf("session after the prompt: got %+v, want no draft and title %q", now, first.Title)
	}
	_, err = d.Continuations().Begin(t.Context(), first.ID, "nobody")
	refused(t, err, "agent.unknown")
	if _, err := d.Continuations().Begin(t.Context(), "nothing", "mock"); err == nil {
		t.Fatal("continued nothing")
	}
}
