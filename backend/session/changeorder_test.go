package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/snapshot"
)

// TestALookIsToldBehindItsTurn: who follows a turn stops listening at its end, so that nothing of it may come behind the first event that
// says done; a look that has nothing to do was faster than that. Of twenty turns three and more had it so before looks waited.
func TestALookIsToldBehindItsTurn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "/none", snapshot.Config{})})
	id := d.create().ID
	for range 20 {
		d.looked(id, d.prompt(id, "echo all of it").ID)
	}
	var events []session.Event
	d.until("the last one being told", func() bool {
		batch, err := d.Feed().After(t.Context(), session.Query{Gen: d.Feed().Gen(), Session: id, Types: []string{"turn.upsert", "entry.upsert", "entry.append"}})
		if err != nil || batch.Reset {
			t.Fatal(err, batch.Reset)
		}
		events = batch.Events
		return strings.Contains(string(events[len(events)-1].Data), `"changes":{`)
	})
	ended := map[string]bool{}
	for i, e := range events {
		var of struct {
			ID, Turn, State string
			Changes         json.RawMessage
		}
		if err := json.Unmarshal(e.Data, &of); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Type != "turn.upsert":
			if ended[of.Turn] {
				t.Errorf("event %d: %s of a turn that was told to be done: %s", i, e.Type, e.Data)
			}
		case of.State == "done" && !ended[of.ID] && of.Changes != nil:
			t.Errorf("event %d: what a turn changed is told before its end: %s", i, e.Data)
			fallthrough
		case of.State == "done":
			ended[of.ID] = true
		}
	}
	if len(ended) != 20 {
		t.Errorf("%d turns have ended", len(ended))
	}
}
