package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

func (d *desk) send(id, text string, when session.When) session.Sent {
	d.t.Helper()
	sent, err := d.Send(d.t.Context(), id, session.Prompt{Message: text, When: when})
	if err != nil {
		d.t.Fatal(err)
	}
	return sent
}

// queues sends a prompt that must wait, and returns the id of its item.
func (d *desk) queues(id, text string) string {
	d.t.Helper()
	sent := d.send(id, text, session.Queue)
	if sent.QueueItem == nil || sent.Turn != nil {
		d.t.Fatalf("%q does not wait: %+v", text, sent)
	}
	return sent.QueueItem.ID
}

// queue returns the waiting items in order, each with the reason why it is held.
func (d *desk) queue(id string) string {
	d.t.Helper()
	before := d.get(id).Queue
	items, err := d.Queue(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	var lines []string
	for i, q := range items {
		if q.Position != i || q.Session != id || q.CreatedAt.IsZero() {
			d.t.Fatalf("item %d is %+v", i, q)
		}
		lines = append(lines, strings.TrimSpace(q.Message+" "+q.Held))
	}
	if n := d.get(id).Queue; n == before && n != len(items) { // otherwise an item came or went between the two reads
		d.t.Fatalf("the session tells of %d of %d items", n, len(items))
	}
	return strings.Join(lines, ", ")
}

func (d *desk) queueIs(id, want string) {
	d.t.Helper()
	if got := d.queue(id); got != want {
		d.t.Fatalf("the queue is %q, want %q", got, want)
	}
}

func (d *desk) change(id, item string, p session.QueuePatch) session.Sent {
	d.t.Helper()
	sent, err := d.ChangeQueued(d.t.Context(), id, item, p)
	if err != nil {
		d.t.Fatal(err)
	}
	return sent
}

// works waits until a session's agent has the prompt of the turn.
func (d *desk) works(id string) {
	d.t.Helper()
	d.until("running turn", func() bool { return d.get(id).Phase == lifecycle.Working })
}

// asked returns the prompts of a transcript.
func asked(t session.Transcript) string {
	var texts []string
	for _, e := range t.Items {
		if e.Kind == "user" {
			texts = append(texts, e.Text)
		}
	}
	return strings.Join(texts, ", ")
}

func reasons(t session.Transcript) string {
	var texts []string
	for _, turn := range t.Turns {
		texts = append(texts, turn.StopReason)
	}
	return strings.Join(texts, ", ")
}

func TestQueueSendsInOrder(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	if sent := d.send(s.ID, "permission", session.Queue); sent.Turn == nil || sent.QueueItem != nil {
		t.Fatalf("what is queued behind nothing has to wait: %+v", sent)
	}
	first := d.queues(s.ID, "thought") // queued while the agent starts
	r := d.request(s.ID)
	d.queues(s.ID, "limit")
	d.queues(s.ID, "plan")
	d.queueIs(s.ID, "thought, limit, plan")
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	tr := d.idle(s.ID)
	d.queueIs(s.ID, "")
	if got := asked(tr); got != "permission, thought, limit, plan" {
		t.Errorf("asked %s", got)
	}
	if got := reasons(tr); got != "end_turn, end_turn, max_tokens, end_turn" {
		t.Errorf("ended %s", got)
	}
	if tr.Turns[1].ID != first {
		t.Errorf("item %s became turn %s", first, tr.Turns[1].ID)
	}
	prompts := 0
	for dir, data := range d.journal(s.ID) {
		switch {
		case dir == "out" && strings.Contains(string(data), `"session/prompt"`):
			if prompts++; prompts > 1 {
				t.Fatal("a prompt went out while one ran")
			}
		case dir == "in" && strings.Contains(string(data), `"stopReason"`):
			prompts--
		}
	}
	d.sameAsRebuilt(s.ID)
	if now := d.get(s.ID); now.Title != "permission" {
		t.Errorf("title %q", now.Title)
	}
}

func TestQueueIsHeldAfterTurnThatFails(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	for word, want := range map[string]string{"error": "failed", "refuse": "refused", "crash": "exited"} {
		s := d.create()
		d.until("agent", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
		d.prompt(s.ID, "permission")
		r := d.request(s.ID)
		d.queues(s.ID, word)
		last := d.queues(s.ID, "thought")
		d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
		d.until("held item", func() bool { return d.queue(s.ID) == "thought "+want })
		if now := d.get(s.ID); now.Turn != nil {
			t.Fatalf("%s: got turn %+v, want none, the queue held", word, now.Turn)
		}
		released := false
		if sent := d.change(s.ID, last, session.QueuePatch{Held: &released}); sent.Turn == nil || sent.Turn.ID != last {
			t.Fatalf("%s: ChangeQueued(released): got %+v, want turn %s", word, sent, last)
		}
		if tr := d.idle(s.ID); asked(tr) != "permission, "+word+", thought" || lastTurn(tr).StopReason != "end_turn" {
			t.Errorf("%s: got prompts %s, ended with %s; want permission, %[1]s, thought and end_turn", word, asked(tr), reasons(tr))
		}
	}
}

func TestQueueIsHeldAfterStop(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Patience: time.Minute})
	s := d.create()
	d.prompt(s.ID, "slow")
	one, two := d.queues(s.ID, "plan"), d.queues(s.ID, "limit")
	d.works(s.ID)
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	d.queueIs(s.ID, "plan stopped, limit stopped")
	// A prompt that is sent now passes the held items, and so does a prompt that is queued behind it; the held items stay.
	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	d.queues(s.ID, "thought")
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	if tr := d.idle(s.ID); asked(tr) != "slow, permission, thought" {
		t.Errorf("asked %s", asked(tr))
	}
	d.queueIs(s.ID, "plan stopped, limit stopped")
	d.change(s.ID, two, session.QueuePatch{Send: true})
	if tr := d.idle(s.ID); asked(tr) != "slow, permission, thought, limit" {
		t.Errorf("asked %s", asked(tr))
	}
	if err := d.RemoveQueued(t.Context(), s.ID, one); err != nil {
		t.Fatal(err)
	}
	d.queueIs(s.ID, "")
}

func TestQueueSendsInterruptFirst(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Patience: time.Minute})
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	d.queues(s.ID, "plan")
	sent := d.send(s.ID, "thought", session.Interrupt)
	if sent.QueueItem == nil || sent.QueueItem.Position != 0 {
		t.Fatalf("Send(thought, interrupt): got %+v, want it first in the queue", sent)
	}
	tr := d.idle(s.ID)
	if asked(tr) != "slow, thought" || reasons(tr) != "cancelled, end_turn" || lastTurn(tr).ID != sent.QueueItem.ID {
		t.Errorf("got prompts %s, ended with %s; want slow, thought with cancelled, end_turn", asked(tr), reasons(tr))
	}
	d.queueIs(s.ID, "plan stopped")
	if sent := d.send(s.ID, "limit", session.Interrupt); sent.Turn == nil {
		t.Errorf("what interrupts nothing waits: %+v", sent)
	}
	d.idle(s.ID)
	d.sameAsRebuilt(s.ID)
}

// A prompt that interrupts an agent that ignores the cancel is sent to the agent's next process: the first one is killed.
func TestInterruptKillsDeafAgent(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "stubborn")
	d.until("deaf agent", func() bool { return strings.Contains(textOf(d.transcript(s.ID), "agent"), "Its pid is") }) // before that the agent still reads its input
	d.queues(s.ID, "plan")
	d.send(s.ID, "thought", session.Interrupt)
	d.until("next turn", func() bool { return d.get(s.ID).Generation == 2 })
	tr := d.idle(s.ID)
	if asked(tr) != "stubborn, thought" || reasons(tr) != "cancelled, end_turn" {
		t.Errorf("got prompts %s, ended with %s; want stubborn, thought with cancelled, end_turn", asked(tr), reasons(tr))
	}
	d.queueIs(s.ID, "plan stopped")
	d.sameAsRebuilt(s.ID)
}

func TestQueueIsChangedByPerson(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	one, two, three := d.queues(s.ID, "one"), d.queues(s.ID, "two"), d.queues(s.ID, "three")
	first, far, held, text, blank := 0, 99, true, "four", " "
	if sent := d.change(s.ID, three, session.QueuePatch{Position: &first}); sent.QueueItem.Position != 0 {
		t.Errorf("ChangeQueued(three, position 0): got %+v, want it first", sent.QueueItem)
	}
	d.queueIs(s.ID, "three, one, two")
	d.change(s.ID, three, session.QueuePatch{Position: &far, Message: &text})
	d.change(s.ID, one, session.QueuePatch{Held: &held})
	d.queueIs(s.ID, "one person, two, four")
	if _, err := d.ChangeQueued(t.Context(), s.ID, one, session.QueuePatch{Message: &blank}); err == nil {
		t.Error("a prompt was emptied")
	} else {
		refused(t, err, "prompt.empty")
	}
	if _, err := d.Send(t.Context(), s.ID, session.Prompt{Message: "\n", When: session.Queue}); err == nil {
		t.Error("nothing was queued")
	}

	if err := d.RemoveQueued(t.Context(), s.ID, two); err != nil {
		t.Fatal(err)
	}
	refused(t, d.RemoveQueued(t.Context(), s.ID, two), "queue.gone")
	_, err := d.ChangeQueued(t.Context(), s.ID, two, session.QueuePatch{Send: true})
	refused(t, err, "queue.gone")
	d.queueIs(s.ID, "one person, four")
	if q, err := d.RestoreQueued(t.Context(), s.ID, two); err != nil || q.Position != 1 || q.Held != "" {
		t.Errorf("RestoreQueued(two): got %+v, %v; want position 1, not held", q, err)
	}
	d.queueIs(s.ID, "one person, two, four")
	_, err = d.RestoreQueued(t.Context(), s.ID, two)
	refused(t, err, "queue.gone")

	// Restoring a deleted item sends nothing.
	if err := d.RemoveQueued(t.Context(), s.ID, two); err != nil {
		t.Fatal(err)
	}
	d.works(s.ID)
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	if q, err := d.RestoreQueued(t.Context(), s.ID, two); err != nil || q.Held != "person" {
		t.Errorf("RestoreQueued(two) after a stop: got %+v, %v; want it held for a person", q, err)
	}
	d.queueIs(s.ID, "one person, two person, four stopped")
	if d.get(s.ID).Turn != nil {
		t.Error("a turn runs")
	}
	if _, err := d.Queue(t.Context(), "nobody"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Queue(nobody) = %v, want ErrNotFound", err)
	}
}

func TestQueueIsLimited(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	var wg sync.WaitGroup
	taken := make([]bool, 120)
	for n := range taken { // several surfaces add at the same time
		wg.Go(func() {
			_, err := d.Send(t.Context(), s.ID, session.Prompt{Message: fmt.Sprintf("prompt %d", n), When: session.Queue})
			taken[n] = err == nil
			var r *session.RefusedError
			if err != nil && (!errors.As(err, &r) || r.Code != "queue.full") {
				t.Errorf("Send to a full queue = %v, want queue.full", err)
			}
		})
	}
	wg.Wait()
	items, err := d.Queue(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 100 {
		t.Errorf("%d items wait", len(items))
	}
	for n, ok := range taken {
		if there := slices.ContainsFunc(items, func(q session.QueueItem) bool { return q.Message == fmt.Sprintf("prompt %d", n) }); there != ok {
			t.Errorf("prompt %d: accepted %v, waits %v", n, ok, there)
		}
	}
}

func TestQueueOutlivesProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	d.queues(s.ID, "thought")
	d.queues(s.ID, "plan")
	d.close()
	d = open(t, dir)
	list, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || len(list.Items) != 1 || list.Items[0].Queue != 2 {
		t.Fatalf("List after reopening: got %+v, %v; want one session with 2 queued", list, err)
	}
	d.queueIs(s.ID, "thought interrupted, plan interrupted")
	if tr := d.idle(s.ID); asked(tr) != "slow" {
		t.Errorf("asked %s", asked(tr))
	}
	items, err := d.Queue(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	released := false
	d.change(s.ID, items[1].ID, session.QueuePatch{Held: &released}) // starts the hibernated agent
	if tr := d.idle(s.ID); asked(tr) != "slow, plan" || lastTurn(tr).StopReason != "end_turn" {
		t.Errorf("got prompts %s, ended with %s; want slow, plan and end_turn", asked(tr), reasons(tr))
	}
	d.queueIs(s.ID, "thought interrupted")
}

func TestQueueOfArchivedSessionIsHeld(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "permission")
	item := d.queues(s.ID, "thought")
	r := d.request(s.ID)
	yes := true
	if _, err := d.Change(t.Context(), s.ID, session.Patch{Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	if tr := d.idle(s.ID); asked(tr) != "permission" {
		t.Errorf("asked %s", asked(tr))
	}
	d.queueIs(s.ID, "thought archived")
	d.change(s.ID, item, session.QueuePatch{Send: true})
	if d.get(s.ID).ArchivedAt != nil {
		t.Error("what is spoken in is put away")
	}
	d.idle(s.ID)
}

func TestQueueIsToldByFeed(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	q := feed.Query{Gen: d.Feed().Gen(), Types: []string{"queue.upsert", "queue.removed"}}
	told := func() (list []string) {
		d.until("event", func() bool {
			batch, err := d.Feed().After(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			q.After = batch.Seq
			for _, e := range batch.Events {
				item := decodeItem(t, e)
				list = append(list, strings.TrimSpace(strings.Join([]string{e.Type, item.Message, item.ID}, " ")))
			}
			return len(list) > 0
		})
		return list
	}
	item := d.queues(s.ID, "thought")
	if got := told(); !slices.Equal(got, []string{"queue.upsert thought " + item}) {
		t.Errorf("feed: got %v, want queue.upsert of %s", got, item)
	}
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	if got := told(); !slices.Equal(got, []string{"queue.removed  " + item}) {
		t.Errorf("feed: got %v, want queue.removed of %s", got, item)
	}
	d.idle(s.ID)
}

func decodeItem(t *testing.T, e feed.Event) (q session.QueueItem) {
	t.Helper()
	if err := json.Unmarshal(e.Data, &q); err != nil {
		t.Fatal(err)
	}
	return q
}
