package session_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// steering begins a turn that takes long enough, and steers a text into it.
func (d *desk) steering(text string) (id string, sent session.Sent) {
	d.t.Helper()
	id = d.create().ID
	d.prompt(id, "slow")
	d.works(id)
	return id, d.send(id, text, session.Steer)
}

// said returns the agent's whole text.
func said(t session.Transcript) string {
	var b strings.Builder
	for _, e := range t.Items {
		if e.Kind == "agent" {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

func TestSteeringReachesTheRunningTurn(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Patience: time.Minute})
	id, sent := d.steering("use tabs")
	if sent.QueueItem == nil || sent.QueueItem.Held != "steering" || sent.Turn != nil {
		t.Fatalf("sent is %+v", sent)
	}
	d.until("answer to it", func() bool { return strings.Contains(said(d.transcript(id)), "You add: *use tabs*") })
	d.until("empty queue", func() bool { return d.queue(id) == "" }) // the answer may come after its effect
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	tr := d.idle(id)
	i := slices.IndexFunc(tr.Items, func(e transcript.Entry) bool { return e.Kind == "user" && e.Text == "use tabs" })
	if i < 0 || tr.Items[i].Turn != tr.Turns[0].ID || len(tr.Turns) != 1 {
		t.Fatalf("the message is not in the turn: %+v", tr.Items)
	}
	if asked(tr) != "slow, use tabs" {
		t.Fatalf("asked are %q", asked(tr))
	}
	d.sameAsRebuilt(id)
}

// A message that the agent does not take into the turn waits in the queue, and the transcript tells why.
func TestSteeringThatFailsWaits(t *testing.T) {
	for text, why := range map[string]string{"refuse this": "failed", "error of yours": "the message asked for an error"} {
		t.Run(text, func(t *testing.T) {
			d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Patience: time.Minute})
			id, _ := d.steering(text)
			d.until("word of it", func() bool {
				return slices.ContainsFunc(d.transcript(id).Items, func(e transcript.Entry) bool {
					return e.Kind == "notice" && strings.Contains(e.Notice.Description, why)
				})
			})
			d.queueIs(id, text)
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.idle(id)
			d.queueIs(id, text+" stopped")
			d.sameAsRebuilt(id)
		})
	}
}

// A message that was not confirmed when the agent or the program ends is neither lost nor sent twice.
func TestSteeringOutlivesTurnAgentAndProgram(t *testing.T) {
	t.Run("the turn and the agent", func(t *testing.T) {
		d := open(t, t.TempDir())
		id, sent := d.steering("silent, please")
		d.queueIs(id, "silent, please steering")
		item := sent.QueueItem.ID
		_, changed := d.ChangeQueued(t.Context(), id, item, session.QueuePatch{Send: true})
		refused(t, changed, "queue.steering")
		refused(t, d.RemoveQueued(t.Context(), id, item), "queue.steering")
		if err := d.Restart(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		d.queueIs(id, "silent, please interrupted")
		d.idle(id)
		if err := d.RemoveQueued(t.Context(), id, item); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the program", func(t *testing.T) {
		dir := t.TempDir()
		d := open(t, dir)
		id, _ := d.steering("silent, please")
		d.close()
		d = open(t, dir)
		d.queueIs(id, "silent, please interrupted")
		d.close()
		db, err := store.Open(t.Context(), dir) // the database as after a kill
		if err != nil {
			t.Fatal(err)
		}
		err = db.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `UPDATE queue_item SET held = 'steering'`)
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		d = open(t, dir)
		d.queueIs(id, "silent, please interrupted")
	})
}

func TestSteeringWhereThereIsNothingToSteer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "resume")
	d := open(t, dir)
	id := d.create().ID
	if sent := d.send(id, "echo", session.Steer); sent.Turn == nil && sent.QueueItem == nil {
		t.Fatalf("with no turn: %+v", sent)
	}
	d.idle(id)
	if got := asked(d.transcript(id)); got != "echo" {
		t.Fatalf("asked %q", got)
	}

	other := d.createOf("forgetful")
	d.prompt(other.ID, "hang") // the agent does not know the word, and answers
	if got := d.idle(other.ID); len(got.Items) == 0 {
		t.Fatal("nothing said")
	}
	if offers := d.get(other.ID).Offers; len(offers) != 0 {
		t.Fatalf("it offers %v", offers)
	}
	if offers := d.get(id).Offers; !slices.Equal(offers, []string{"fork", "steer", "close", "delete", "list"}) {
		t.Fatalf("the demo agent offers %v", offers)
	}
}
