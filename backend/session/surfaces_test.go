package session_test

import (
	"strings"
	"testing"

	"deskhand/backend/feed"
	"deskhand/backend/session"
)

func TestPublishTellsOfSurface(t *testing.T) {
	d := open(t, t.TempDir())
	q := feed.Query{Gen: d.Feed().Gen(), Types: []string{"discord.upsert"}}
	d.Publish("discord.upsert", map[string]string{"status": "connected"})
	batch, err := d.Feed().After(t.Context(), q)
	if err != nil || len(batch.Events) != 1 || string(batch.Events[0].Data) != `{"status":"connected"}` || batch.Events[0].Session != "" {
		t.Errorf("feed: got %+v, %v; want what was published, of no session", batch, err)
	}
}

func TestHideRedactsSecretsOfSurfaces(t *testing.T) {
	const secret = "MTAwMDAwMDAwMDAwMDAwMDAx.Gx1234.abcdefghijklmnopqrstuvwxyz"
	d := open(t, t.TempDir())
	d.Hide(secret)
	d.Hide("word")
	s, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: d.work, Title: "a word about " + secret})
	if err != nil {
		t.Fatal(err)
	}
	if s.Title != "a word about [redacted]" {
		t.Errorf("title: got %q, want the secret redacted and word not", s.Title)
	}
	if _, err := d.Send(t.Context(), s.ID, session.Prompt{Message: "/say My token is " + secret}); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	for _, frame := range d.journal(s.ID) {
		if strings.Contains(string(frame), secret) {
			t.Errorf("it is in the journal: %s", frame)
		}
	}
}
