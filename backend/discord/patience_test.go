package discord

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/feed"
	"deskhand/backend/testkit"
)

// The disk is full in the middle of a message: what its conversation holds is done by itself later, and must not be done again.

// fill has the disk refuse items of queues, and that a message is given up.
func (b *bot) fill() {
	b.t.Helper()
	b.write(`CREATE TRIGGER full_queue BEFORE INSERT ON queue_item BEGIN SELECT raise(ABORT, 'no room'); END`)
	b.write(`CREATE TRIGGER full_message BEFORE UPDATE ON discord_message WHEN NEW.item = '-' BEGIN SELECT raise(ABORT, 'no room'); END`)
}

// holds waits until a conversation holds what was said by say, which it cannot write.
func (b *bot) holds(say func()) {
	b.t.Helper()
	q := feed.Query{Gen: b.Feed().Gen(), Wait: time.Second}
	ctx, cancel := context.WithTimeout(b.t.Context(), testkit.Limit)
	defer cancel()
	batch, err := b.Feed().After(ctx, q)
	if err != nil {
		b.t.Fatal(err)
	}
	q.After = batch.Seq
	say()
	for told := false; !told; q.After = batch.Seq {
		if batch, err = b.Feed().After(ctx, q); err != nil || ctx.Err() != nil {
			b.t.Fatal("nobody is told that the disk refuses: ", err)
		}
		told = slices.ContainsFunc(batch.Events, func(e feed.Event) bool { return strings.Contains(string(e.Data), "storage.failed") })
	}
}

// marked waits until it is known of every message of a conversation what has become of it.
func (b *bot) marked(id string) []heard {
	b.t.Helper()
	b.until("what became of the messages", func() bool {
		list, err := b.s.in.messages(b.t.Context(), `WHERE session = ?`, id)
		return err == nil && !slices.ContainsFunc(list, func(h heard) bool { return h.item == "" })
	})
	return b.rows(id)
}

func TestMessageOnFullDiskIsSentOnce(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.busy(id)
	b.fill()
	b.holds(func() { b.say("silent one") })
	b.write(`DROP TRIGGER full_queue`)
	list := b.marked(id)
	if got := b.waits(id); !slices.Equal(got, []string{"silent one"}) {
		t.Errorf("waiting messages: got %q, want silent one", got)
	}
	if queue, err := b.Queue(t.Context(), id); err != nil || len(list) != 1 || list[0].item != queue[0].ID {
		t.Errorf("stored messages: got %+v, error %v, want the item of the queue", list, err)
	}
}

func TestMessageOnFullDiskIsMergedOnce(t *testing.T) {
	t.Parallel()
	b, id, _, _ := oneWaits(t)
	b.marked(id)
	b.fill()
	b.holds(func() { b.say("two") })
	b.write(`DROP TRIGGER full_queue`)
	b.marked(id)
	if got := b.waits(id); !slices.Equal(got, []string{"silent one\n\ntwo"}) {
		t.Errorf("waiting messages: got %q, want both as one", got)
	}
}

// The end does not wait for the disk; what it holds then is lost with the program, and asked again by the next one.
func TestCloseDoesNotWaitForFullDisk(t *testing.T) {
	t.Parallel()
	dc, dir := discordtest.New(discordtest.Options{RealHosts: true}), t.TempDir()
	b := openBotAt(t, dc, dir)
	id := b.talk()
	b.busy(id)
	b.fill()
	b.holds(func() { b.say("silent one") })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		b.close()
	}()
	select {
	case <-closed:
	case <-time.After(testkit.Limit):
		b.write(`DROP TRIGGER full_queue`)
		<-closed
		t.Fatal("it waits for the disk")
	}
	b = openBotWith(t, dc, dir, func(*setting) {})
	b.write(`DROP TRIGGER full_queue`)
	b.write(`DROP TRIGGER full_message`)
	b.marked(id)
	said := slices.Concat(b.asked(id), b.waits(id))
	if n := strings.Count(strings.Join(said, "\n"), "silent one"); n != 1 {
		t.Errorf("messages: got %q, want silent one once", said)
	}
}
