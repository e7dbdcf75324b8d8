package discord

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/attachment"
	"deskhand/backend/discord/discordtest"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

// What comes in: from the stand-in's people to what the agent is asked.

// bind binds a channel to a conversation.
func (b *bot) bind(channel snowflake.ID, session string) {
	b.t.Helper()
	if err := b.s.bindings.bind(b.t.Context(), b.binding(channel, session), 0); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bot) binding(channel snowflake.ID, id string) Binding {
	return Binding{
		Channel: channel.String(), Name: "general", Guild: b.dc.Guild.String(), GuildName: "Guild", Session: id, CreatedAt: session.Time{Time: time.Now()},
	}
}

// bindDirectory makes each thread of a channel a conversation of its own.
func (b *bot) bindDirectory(channel snowflake.ID) {
	b.t.Helper()
	to := b.binding(channel, "")
	to.Agent, to.Directory = "mock", b.work
	if err := b.s.bindings.bind(b.t.Context(), to, 0); err != nil {
		b.t.Fatal(err)
	}
}

// talk is a conversation that the stand-in's first channel is bound to.
func (b *bot) talk() string {
	b.t.Helper()
	id := b.create().ID
	b.bind(b.dc.Channel, id)
	return id
}

// setNewest moves the mark of a channel back.
func (b *bot) setNewest(channel, newest snowflake.ID) {
	b.t.Helper()
	b.settled(channel)
	err := b.db.Write(b.t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(b.t.Context(), `UPDATE discord_binding SET newest = ? WHERE channel = ?`, newest.String(), channel.String())
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.s.bindings.mu.Lock()
	defer b.s.bindings.mu.Unlock()
	b.s.bindings.bonds[channel].newest = newest
}

// say says something in that channel as somebody who is heard.
func (b *bot) say(text string, files ...discordtest.File) discordtest.Message {
	return b.dc.Say(b.dc.Channel, b.dc.Owner, text, files...)
}

// asked are the prompts of a conversation so far.
func (b *bot) asked(id string) (texts []string) {
	b.t.Helper()
	t, err := b.Transcripts().Entries(b.t.Context(), id, 0, 1000)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range t.Items {
		if e.Kind == "user" {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// askedIs waits until the prompts are these.
func (b *bot) askedIs(id string, want ...string) {
	b.t.Helper()
	b.until(fmt.Sprintf("prompts %q", want), func() bool { return slices.Equal(b.asked(id), want) })
}

// waits are the messages of a queue.
func (b *bot) waits(id string) (texts []string) {
	b.t.Helper()
	list, err := b.Queue(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, q := range list {
		texts = append(texts, q.Message)
	}
	return texts
}

func (b *bot) waitsIs(id string, want ...string) {
	b.t.Helper()
	b.until(fmt.Sprintf("queue of %q", want), func() bool { return slices.Equal(b.waits(id), want) })
}

// busy has the agent wait for an approval, and gives it.
func (b *bot) busy(id string) requests.Request {
	b.t.Helper()
	if _, err := b.Prompt(b.t.Context(), id, "permission"); err != nil {
		b.t.Fatal(err)
	}
	return b.request(id)
}

// oneWaits opens a bot whose session asks for a permission, and "silent one" waits behind that.
func oneWaits(t *testing.T) (b *bot, id string, asks requests.Request, one discordtest.Message) {
	t.Helper()
	b = openBot(t)
	id = b.talk()
	asks = b.busy(id)
	one = b.say("silent one")
	b.waitsIs(id, "silent one")
	return b, id, asks, one
}

func (b *bot) allow(r requests.Request) {
	b.t.Helper()
	i := slices.IndexFunc(r.Options, func(o requests.Option) bool { return o.Kind == "allow_once" })
	if err := b.Answer(b.t.Context(), r.ID, requests.Answer{OptionID: r.Options[i].ID}, "window"); err != nil {
		b.t.Fatal(err)
	}
}

// shows waits until the stand-in shows something.
func (b *bot) shows(what string, is func(discordtest.Seen) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), testkit.Limit)
	defer cancel()
	if err := b.dc.Wait(ctx, is); err != nil {
		b.t.Fatalf("within a minute: got no %s, error %v, want it", what, err)
	}
}

// told waits until the bot says something with this text in a channel.
func (b *bot) told(channel snowflake.ID, text string) {
	b.t.Helper()
	b.shows(fmt.Sprintf("word of %q", text), func(s discordtest.Seen) bool { return s.Says(channel, text) })
}

// rows are what is written down of what was said in a conversation, in its order.
func (b *bot) rows(id string) []heard {
	b.t.Helper()
	b.settled(b.dc.Channel)
	list, err := b.s.in.messages(b.t.Context(), `WHERE session = ?`, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// settled waits until all that was told about a channel so far is done.
func (b *bot) settled(channel snowflake.ID) {
	b.t.Helper()
	done := make(chan struct{})
	b.s.in.lanes.queue(channel, func(context.Context) { close(done) })
	select {
	case <-done:
	case <-time.After(testkit.Limit):
		b.t.Fatal("it is never done")
	}
}

func TestMessageBecomesTurn(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	m := b.say("<@" + b.dc.Bot.String() + ">  silent, please")
	b.askedIs(id, "silent, please")
	tr := b.idle(id)
	rows := b.rows(id)
	if len(rows) != 1 || rows[0].item != tr.Turns[0].ID || rows[0].text != "silent, please" || rows[0].raw.Author.ID != b.dc.Owner.String() {
		t.Fatalf("stored messages: got %+v, want one of the turn", rows)
	}
	if got, ok := b.s.in.from(t.Context(), id, tr.Turns[0].ID); !ok || !slices.Equal(got, []snowflake.ID{m.ID}) {
		t.Errorf("messages of the turn: got %v, %v, want %d", got, ok, m.ID)
	}
	if _, ok := b.s.in.from(t.Context(), id, "another"); ok {
		t.Error("a turn from the desk is from Discord")
	}
}

// What stands in the composer of the desk is not taken away by what is said elsewhere.
func TestDraftOfDeskStays(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	draft := "half a sentence"
	if _, err := b.Change(t.Context(), id, session.Patch{Draft: &draft}); err != nil {
		t.Fatal(err)
	}
	b.say("silent")
	b.askedIs(id, "silent")
	b.idle(id)
	b.busy(id)
	if _, err := b.Change(t.Context(), id, session.Patch{Draft: &draft}); err != nil {
		t.Fatal(err)
	}
	b.say("silent two")
	b.waitsIs(id, "silent two")
	if got := b.get(id).Draft; got != draft {
		t.Errorf("draft: got %q, want %q", got, draft)
	}
}

// Discord sends again what it has no word of; what is there is not taken again.
func TestNothingIsTakenTwice(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	m := b.say("silent one")
	b.askedIs(id, "silent one")
	guild := b.dc.Guild
	again := discord.Message{ID: m.ID, ChannelID: m.Channel, GuildID: &guild, Content: m.Text, Author: discord.User{ID: b.dc.Owner}}
	b.s.in.created(gateway.EventMessageCreate{Message: again})
	b.settled(m.Channel)
	b.idle(id)
	b.say("silent two")
	b.askedIs(id, "silent one", "silent two")
}

func TestOnlyListedPeopleAreHeard(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	other := b.dc.AddChannel(b.dc.Guild, "other", "text")
	b.dc.Say(b.dc.Channel, b.dc.Stranger, "silent stranger")
	b.dc.Say(b.dc.Channel, b.dc.AddBot("robot"), "silent robot")
	hook, guild := snowflake.ID(1), b.dc.Guild
	b.s.in.created(gateway.EventMessageCreate{Message: discord.Message{ // listed or not
		ID: 1, ChannelID: b.dc.Channel, GuildID: &guild, Content: "silent hook", Author: discord.User{ID: b.dc.Owner}, WebhookID: &hook,
	}})
	b.dc.Say(b.dc.Direct(b.dc.Owner), b.dc.Owner, "silent direct")
	b.dc.Say(b.dc.Direct(b.dc.Stranger), b.dc.Stranger, "silent direct")
	b.dc.Say(other, b.dc.Owner, "silent elsewhere")
	thread := b.dc.Thread(b.dc.Channel, b.dc.Stranger, "thread", 0)
	b.dc.Say(thread, b.dc.Owner, "silent thread")
	b.say("silent")
	b.askedIs(id, "silent")
	b.idle(id)
	if rows := b.rows(id); len(rows) != 1 {
		t.Errorf("stored messages: got %+v, want 1", rows)
	}
	if got, want := b.s.State().Ignored, (Ignored{Strangers: 1, Bots: 2, Direct: 2, Unbound: 2}); got != want {
		t.Errorf("ignored are %+v, want %+v", got, want)
	}
	for _, channel := range []snowflake.ID{other, thread} {
		for _, m := range b.dc.Messages(channel) {
			if m.Author.ID == b.dc.Bot {
				t.Errorf("message in a channel that is not bound: got %q, want none", m.Text)
			}
		}
	}
}

func TestFilesOfMessageReachAgent(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.say("silent look", discordtest.File{Name: "a.txt", Type: "text/plain", Data: []byte("first")}, discordtest.File{Name: "b.bin", Data: []byte{0, 1, 2}})
	b.until("a turn", func() bool { return len(b.asked(id)) == 1 })
	tr := b.idle(id)
	entry := tr.Items[0]
	items, ok := attachment.ParseSentinel(entry.Text)
	if first, _, _ := strings.Cut(entry.Text, "\n"); first != "silent look" || !ok || len(items) != 2 || items[0].Filename != "a.txt" || items[0].MimeType != "text/plain" {
		t.Errorf("text for the agent: got %q, want the words and two files", entry.Text)
	}
	if len(entry.Attachments) != 2 || entry.Attachments[0].Filename != "a.txt" || entry.Attachments[0].SHA256 == "" {
		t.Fatalf("attachments: got %+v, want both files", entry.Attachments)
	}
	if data, err := b.Attachments().Blob(entry.Attachments[1].SHA256); err != nil || string(data) != "\x00\x01\x02" {
		t.Errorf("second file: got %q, error %v, want its bytes", data, err)
	}
	// What the tool attachment_download takes without an argument.
	if got, err := b.Attachments().Inbound(t.Context(), id); err != nil || !slices.Equal(got.Items, items) {
		t.Errorf("files for the tool: got %+v, error %v, want %+v", got, err, items)
	}
	var kept []rawAttachment
	var raw string
	err := b.db.Read().QueryRowContext(t.Context(), `SELECT json_extract(raw_json, '$.raw.discord.attachments') FROM discord_message WHERE session = ?`, id).Scan(&raw)
	if err != nil || json.Unmarshal([]byte(raw), &kept) != nil || len(kept) != 2 || kept[0].URL != items[0].URL || kept[0].Size != 5 || kept[1].Filename != "b.bin" {
		t.Errorf("stored attachments: got %s, error %v, want both", raw, err)
	}
	if got := b.get(id).Title; got != "silent look" {
		t.Errorf("title: got %q, want silent look", got)
	}
}

// A file that cannot be had is told, and the message goes without it.
func TestMessageGoesWithoutMissingFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(*discordtest.Discord)
		told  string
	}{
		"away":    {func(d *discordtest.Discord) { d.CDN.RedirectAway("https://127.0.0.1:1/x") }, "nothing is fetched from"},
		"short":   {func(d *discordtest.Discord) { d.CDN.CutShort(true) }, "cannot be fetched"},
		"failing": {func(d *discordtest.Discord) { d.CDN.Fail(1, 500) }, "cannot be fetched"},
		"expired": {func(d *discordtest.Discord) { d.CDN.Expire() }, "a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBot(t)
			id := b.talk()
			b.busy(id) // so that the file is looked for when all is set
			c.fault(b.dc)
			held := make(chan struct{})
			b.s.in.lanes.queue(b.dc.Channel, func(context.Context) { <-held })
			m := b.say("silent all the same", discordtest.File{Name: "a.txt", Data: []byte("first")})
			if name == "expired" {
				c.fault(b.dc)
			}
			close(held)
			b.told(b.dc.Channel, c.told)
			b.told(b.dc.Channel, "The message goes without `a.txt`")
			b.waitsIs(id, "silent all the same")
			for _, said := range b.dc.Messages(b.dc.Channel) {
				if strings.Contains(said.Text, "goes without") && (said.Reply != m.ID || strings.Contains(said.Text, "?")) {
					t.Errorf("report: got %+v, want an answer without the address", said)
				}
			}
		})
	}
}

func TestMessagesDuringTurnAreMerged(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	r := b.busy(id)
	first := b.say("silent one")
	b.say("two")
	b.say("three")
	b.waitsIs(id, "silent one\n\ntwo\n\nthree")
	item := b.rows(id)[0].item
	for _, h := range b.rows(id) {
		if h.item != item {
			t.Errorf("message: got %+v, want the item %s", h, item)
		}
	}
	b.allow(r)
	b.askedIs(id, "permission", "silent one\n\ntwo\n\nthree")
	if got, ok := b.s.in.from(t.Context(), id, item); !ok || len(got) != 3 || got[0] != first.ID {
		t.Errorf("messages of the turn: got %v, %v, want 3, the first %d", got, ok, first.ID)
	}
}

// A message with files is an item of its own, and everything goes out in the order in which it was written.
func TestFilesKeepTheirPlaceAmongMessages(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	r := b.busy(id)
	b.say("silent one")
	b.say("silent two")
	b.waitsIs(id, "silent one\n\nsilent two")
	b.say("silent file", discordtest.File{Name: "a.txt", Data: []byte("first")})
	b.until("a queue of two", func() bool { return len(b.waits(id)) == 2 })
	with := b.waits(id)[1]
	if _, ok := attachment.ParseSentinel(with); !ok || !strings.HasPrefix(with, "silent file\n") {
		t.Fatalf("second in the queue: got %q, want the words and the block of the file", with)
	}
	b.say("silent three")
	b.say("silent four")
	b.waitsIs(id, "silent one\n\nsilent two", with, "silent three\n\nsilent four")
	b.allow(r)
	b.askedIs(id, "permission", "silent one\n\nsilent two", with, "silent three\n\nsilent four")
}

// Messages on both sides of a file stay apart, also while the file's turn runs.
func TestMessagesBehindFileAreMerged(t *testing.T) {
	t.Parallel()
	b, id, r, _ := oneWaits(t)
	b.say("permission", discordtest.File{Name: "a.txt", Data: []byte("first")})
	b.until("a queue of two", func() bool { return len(b.waits(id)) == 2 })
	with := b.waits(id)[1]
	b.say("silent two")
	b.waitsIs(id, "silent one", with, "silent two")
	b.allow(r)
	b.askedIs(id, "permission", "silent one", with)
	r = b.request(id)
	b.say("silent three")
	b.waitsIs(id, "silent two\n\nsilent three")
	b.allow(r)
	b.askedIs(id, "permission", "silent one", with, "silent two\n\nsilent three")
}

// Two items between which a file stood become one with the next message once the file was deleted, and none of them goes out twice.
func TestItemsMergeOnceFileBetweenIsGone(t *testing.T) {
	t.Parallel()
	b, id, _, _ := oneWaits(t)
	file := b.say("silent file", discordtest.File{Name: "a.txt", Data: []byte("first")})
	b.until("a queue of two", func() bool { return len(b.waits(id)) == 2 })
	b.say("silent two")
	b.until("a queue of three", func() bool { return len(b.waits(id)) == 3 })
	b.dc.Delete(file.ID)
	b.waitsIs(id, "silent one", "silent two")
	b.say("silent three")
	b.waitsIs(id, "silent one\n\nsilent two\n\nsilent three")
}

// A message that the desk has put behind those of the channel keeps its place as well.
func TestDeskMessageKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b, id, _, _ := oneWaits(t)
	if _, err := b.Send(t.Context(), id, session.Prompt{Message: "silent desk", When: session.Queue}); err != nil {
		t.Fatal(err)
	}
	b.say("silent two")
	b.say("silent three")
	b.waitsIs(id, "silent one", "silent desk", "silent two\n\nsilent three")
}

func TestEditsAndDeletesChangeWaitingItems(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	r := b.busy(id)
	one, two, three := b.say("silent one"), b.say("two"), b.say("three")
	b.waitsIs(id, "silent one\n\ntwo\n\nthree")
	b.dc.Edit(two.ID, "TWO")
	b.waitsIs(id, "silent one\n\nTWO\n\nthree")
	b.dc.Preview(three.ID) // no edit
	b.dc.Delete(three.ID)
	b.waitsIs(id, "silent one\n\nTWO")
	b.dc.DeleteBulk(b.dc.Channel, one.ID, two.ID)
	b.waitsIs(id)
	b.settled(b.dc.Channel)
	if rows := b.rows(id); len(rows) != 0 {
		t.Errorf("stored messages: got %+v, want none", rows)
	}
	four := b.say("silent four")
	b.waitsIs(id, "silent four")
	b.allow(r)
	b.askedIs(id, "permission", "silent four")
	b.idle(id)
	// What has gone out stays as it was.
	b.dc.Edit(four.ID, "other words")
	b.dc.Delete(four.ID)
	b.settled(b.dc.Channel)
	b.settled(b.dc.Channel)
	if rows := b.rows(id); len(rows) != 1 || rows[0].text != "silent four" || len(b.asked(id)) != 2 {
		t.Errorf("stored messages: got %+v, want silent four alone", rows)
	}
}

func TestEditRemovesFile(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.busy(id)
	m := b.say("silent", discordtest.File{Name: "a.txt", Data: []byte("a")}, discordtest.File{Name: "b.txt", Data: []byte("b")})
	files := func() (names []string) {
		list, err := b.Queue(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range list {
			items, _ := attachment.ParseSentinel(q.Message)
			for i, a := range q.Attachments {
				names = append(names, a.Filename+" "+items[i].Filename)
			}
		}
		return names
	}
	b.until("two files", func() bool { return slices.Equal(files(), []string{"a.txt a.txt", "b.txt b.txt"}) })
	b.dc.DropFile(m.ID, "a.txt")
	b.until("one file", func() bool { return slices.Equal(files(), []string{"b.txt b.txt"}) })
	b.dc.DropFile(m.ID, "b.txt")
	b.waitsIs(id, "silent")
}

// What somebody has changed at the desk is the desk's.
func TestItemChangedAtDeskStays(t *testing.T) {
	t.Parallel()
	b, id, _, one := oneWaits(t)
	mine := "silent, as the desk says"
	if _, err := b.ChangeQueued(t.Context(), id, b.rows(id)[0].item, session.QueuePatch{Message: &mine}); err != nil {
		t.Fatal(err)
	}
	b.dc.Edit(one.ID, "silent edit")
	b.dc.Delete(one.ID)
	b.say("silent two")
	b.waitsIs(id, mine, "silent two")
	file, err := b.Attachments().Upload(t.Context(), "desk.txt", "text/plain", strings.NewReader("desk"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ChangeQueued(t.Context(), id, b.rows(id)[1].item, session.QueuePatch{Attachments: &[]string{file.ID}}); err != nil {
		t.Fatal(err)
	}
	b.say("silent two and a half")
	b.waitsIs(id, mine, "silent two", "silent two and a half")
	held := true
	if _, err := b.ChangeQueued(t.Context(), id, b.rows(id)[2].item, session.QueuePatch{Held: &held}); err != nil {
		t.Fatal(err)
	}
	b.say("silent three")
	b.waitsIs(id, mine, "silent two", "silent two and a half", "silent three")
}

// What is said when the agent is being stopped is for after the stop, and does not wait with what was said before.
func TestMessageAfterStopIsNotHeld(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	if _, err := b.Prompt(t.Context(), id, "hang"); err != nil {
		t.Fatal(err)
	}
	b.works(id)
	b.say("silent before")
	b.waitsIs(id, "silent before")
	if err := b.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	b.say("silent after")
	b.askedIs(id, "hang", "silent after")
	b.waitsIs(id, "silent before")
}

func TestManyMessagesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.busy(id)
	var want []string
	for i := range 40 {
		text := fmt.Sprintf("silent %d", i)
		want = append(want, text)
		b.say(text)
	}
	b.waitsIs(id, strings.Join(want, "\n\n"))
}

func TestRefusedMessageIsReportedAndMarked(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.busy(id)
	for i := range 100 {
		if _, err := b.Send(t.Context(), id, session.Prompt{Message: fmt.Sprint(i), When: session.Queue}); err != nil {
			t.Fatal(err)
		}
	}
	m := b.say("silent one")
	b.told(b.dc.Channel, "Not taken: too many messages wait already.")
	if rows := b.rows(id); len(rows) != 1 || rows[0].id != m.ID || rows[0].item != notTaken {
		t.Errorf("stored messages: got %+v, want one, not taken", rows)
	}
}

// The news of a turn must not overtake what is known of it.
func TestFromWaitsForHandOver(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.say("silent")
	b.askedIs(id, "silent")
	turn := b.idle(id).Turns[0].ID
	h := b.rows(id)[0]
	leave, err := b.s.in.enter(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	h.item = ""
	if err := b.s.in.save(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	begun, asked := make(chan struct{}), make(chan bool)
	go func() {
		close(begun)
		_, ok := b.s.in.from(t.Context(), id, turn)
		asked <- ok
	}()
	<-begun
	h.item = turn
	if err := b.s.in.save(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	leave()
	if !<-asked {
		t.Error("it is from nowhere")
	}
}

// What was said while the program was not there is taken at its next start, once.
func TestMessagesWrittenMeanwhileAreTaken(t *testing.T) {
	t.Parallel()
	dc, dir := discordtest.New(discordtest.Options{RealHosts: true}), t.TempDir()
	b := openBotAt(t, dc, dir)
	id := b.talk()
	b.say("silent one")
	b.askedIs(id, "silent one")
	b.idle(id)
	b.close()
	b.say("silent two")
	b.dc.Say(b.dc.Channel, b.dc.Stranger, "silent stranger")
	b = openBotAt(t, dc, dir)
	b.askedIs(id, "silent one", "silent two")
	b.idle(id)
	b.say("silent three")
	b.askedIs(id, "silent one", "silent two", "silent three")
}

// A file that could not be fetched before the program ended is fetched at its next start.
func TestMessageWithHalfFetchedFileIsResumed(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	h := heard{channel: b.dc.Channel, session: id}
	m := b.dc.SayAt(time.Now(), b.dc.Channel, b.dc.Owner, "silent", discordtest.File{Name: "a.txt", Data: []byte("a")})
	h.id, h.raw.Content = m.ID, m.Text
	h.raw.Raw.Discord.Attachments = []rawAttachment{{URL: m.Files[0].URL, Filename: "a.txt"}}
	if err := b.db.Write(t.Context(), func(tx *sql.Tx) error { _, err := insert(t.Context(), tx, h); return err }); err != nil {
		t.Fatal(err)
	}
	b.away(func() {})
	b.until("a turn", func() bool { return len(b.asked(id)) == 1 })
	if e := b.idle(id).Items[0]; len(e.Attachments) != 1 || !strings.HasPrefix(e.Text, "silent\n[[") {
		t.Errorf("entry: got %+v, want silent with a file", e)
	}
}

func TestMessageForDeletedConversationIsRefused(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	if err := b.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	b.say("silent")
	b.told(b.dc.Channel, "the conversation of this channel was deleted")
	b.s.bindings.sessionGone(id)
	if _, ok := b.s.bindings.bound(b.dc.Channel); ok || len(b.s.bindings.list()) != 0 {
		t.Error("it is bound still")
	}
	if _, err := b.Restore(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	b.s.bindings.sessionThere(id)
	b.say("silent again")
	b.askedIs(id, "silent again")
	if err := b.Erase(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	b.s.bindings.sessionGone(id)
	b.say("silent for nobody")
	b.shows("a second word", func(s discordtest.Seen) bool {
		n := 0
		for _, m := range s.Messages(b.dc.Channel) {
			if strings.Contains(m.Text, "was deleted") {
				n++
			}
		}
		return n == 2
	})
	// The channel can be bound anew.
	other := b.talk()
	b.say("silent other")
	b.askedIs(other, "silent other")
}

func TestBindingsAreKept(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	one, two := b.create().ID, b.create().ID
	other := b.dc.AddChannel(b.dc.Guild, "other", "text")
	b.bind(b.dc.Channel, one)
	err := b.s.bindings.bind(t.Context(), b.binding(other, one), 0)
	if r, ok := err.(*session.RefusedError); !ok || r.Code != "discord.bound" || r.Params["name"] != "general" { //nolint:errorlint // as it is
		t.Fatalf("binding of a second channel: got error %v, want discord.bound with the name", err)
	}
	b.bind(other, two)
	b.s.bindings.mu.Lock()
	b.s.bindings.bonds[b.dc.Channel].away++
	b.s.bindings.mu.Unlock()
	b.bind(b.dc.Channel, one) // again
	if got, _ := b.s.bindings.bond(b.dc.Channel); !got.behind() {
		t.Error("what came before is forgotten when a channel is bound again")
	}
	if channel, ok := b.s.bindings.channelOf(one); !ok || channel != b.dc.Channel {
		t.Errorf("channel of the conversation: got %v, %v, want %v", channel, ok, b.dc.Channel)
	}
	// A channel that is gone gives its conversation away.
	b.s.in.channelGone(other)
	b.settled(other)
	if got, _ := b.s.bindings.bound(other); got.Problem != "gone" {
		t.Errorf("binding of the deleted channel: got %+v, want the problem gone", got)
	}
	b.bind(b.dc.Channel, two)
	if _, ok := b.s.bindings.bound(other); ok || len(b.s.bindings.list()) != 1 {
		t.Errorf("bindings: got %+v, want one", b.s.bindings.list())
	}
	again := newBindings(b.s)
	same := func(x, y Binding) bool {
		return x.Channel == y.Channel && x.Session == y.Session && x.Name == y.Name && x.Problem == y.Problem
	}
	if err := again.load(t.Context()); err != nil || !slices.EqualFunc(again.list(), b.s.bindings.list(), same) {
		t.Errorf("loaded bindings: got %+v, error %v, want %+v", again.list(), err, b.s.bindings.list())
	}
	if err := b.s.bindings.unbind(t.Context(), b.dc.Channel); err != nil || len(b.s.bindings.list()) != 0 {
		t.Errorf("unbind: got error %v, bindings %+v, want none", err, b.s.bindings.list())
	}
	b.bind(other, one)
	if err := b.s.bindings.unbindAll(t.Context()); err != nil || len(b.s.bindings.list()) != 0 {
		t.Errorf("unbindAll: got error %v, bindings %+v, want none", err, b.s.bindings.list())
	}
}

func TestThreadIsConversation(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	b.bindDirectory(b.dc.Channel)
	m := b.say("silent one\nwith more")
	session := func(thread snowflake.ID) (id string) {
		b.until("a conversation", func() bool {
			to, ok := b.s.bindings.bound(thread)
			id = to.Session
			return ok
		})
		return id
	}
	b.shows("a thread", func(s discordtest.Seen) bool { return len(s.Calls("")) > 0 && b.dc != nil })
	id := session(m.ID)
	b.askedIs(id, "silent one\nwith more")
	tr := b.idle(id)
	if got, ok := b.s.in.from(t.Context(), id, tr.Turns[0].ID); !ok || len(got) != 0 {
		t.Errorf("messages of the turn: got %v, %v, want none of the thread", got, ok)
	}
	if to, _ := b.s.bindings.bound(m.ID); !to.Thread || to.Name != "silent one" || to.Guild != b.dc.Guild.String() {
		t.Errorf("binding of the thread: got %+v, want the name silent one", to)
	}
	b.dc.Say(m.ID, b.dc.Stranger, "silent stranger")
	b.dc.Say(m.ID, b.dc.Owner, "silent two")
	b.askedIs(id, "silent one\nwith more", "silent two")
	// A thread that a person makes.
	thread := b.dc.Thread(b.dc.Channel, b.dc.Owner, "mine", 0, "silent three", "silent four")
	other := session(thread)
	if other == id {
		t.Fatal("two threads are one conversation")
	}
	b.until("both messages", func() bool { return len(strings.Split(strings.Join(b.asked(other), "\n\n"), "\n\n")) == 2 })
	if s := b.get(other); s.Cwd != b.work || s.Agent != "mock" {
		t.Errorf("conversation: got %+v, want the channel's directory and agent", s)
	}
	b.say("silent five")
	b.until("a third", func() bool { return len(b.s.bindings.list()) == 4 })
}

// A thread whose answer is lost was made all the same: it is not made twice, and nothing is told as lost.
func TestThreadSurvivesLostAnswer(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	b.bindDirectory(b.dc.Channel)
	const route = "POST /channels/{channel}/messages/{message}/threads"
	b.dc.API.LoseAnswers(route, 1, 502)
	m := b.say("silent")
	b.until("a conversation", func() bool { _, ok := b.s.bindings.bound(m.ID); return ok })
	to, _ := b.s.bindings.bound(m.ID)
	b.askedIs(to.Session, "silent")
	if n := len(b.dc.Calls(route)); n != 2 {
		t.Errorf("requests for threads: got %d, want 2", n)
	}
}

// In a forum the first message of a thread has the thread's id.
func TestForumPostBeginsConversation(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	forum := b.dc.AddChannel(b.dc.Guild, "forum", "forum")
	b.bindDirectory(forum)
	thread := b.dc.Thread(forum, b.dc.Owner, "post", 0, "silent post")
	b.until("a conversation", func() bool { _, ok := b.s.bindings.bound(thread); return ok })
	to, _ := b.s.bindings.bound(thread)
	b.askedIs(to.Session, "silent post")
	b.idle(to.Session)
	// When its conversation is deleted the thread begins another one.
	if err := b.Delete(t.Context(), to.Session); err != nil {
		t.Fatal(err)
	}
	b.until("end of the binding", func() bool { _, ok := b.s.bindings.bound(thread); return !ok })
	b.dc.Say(thread, b.dc.Owner, "silent again")
	b.until("another conversation", func() bool { _, ok := b.s.bindings.bound(thread); return ok })
	again, _ := b.s.bindings.bound(thread)
	b.askedIs(again.Session, "silent again")
}

// A conversation that cannot begin is told where it was to.
func TestFailedBeginningIsReportedInThread(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	to := b.binding(b.dc.Channel, "")
	to.Agent, to.Directory = "mock", b.work+"/gone"
	if err := b.s.bindings.bind(t.Context(), to, 0); err != nil {
		t.Fatal(err)
	}
	b.say("silent")
	b.told(b.dc.Channel, "Not taken: its directory is not there")
	thread := b.dc.Thread(b.dc.Channel, b.dc.Owner, "mine", 0, "silent two")
	b.told(thread, "Not taken: its directory is not there")
}

// What was said while the line was down is taken in its order, and not what is older than an hour.
func TestCatchUpTakesRecentMessages(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.create().ID
	past := time.Now().Add(-3 * time.Hour)
	if err := b.s.bindings.bind(t.Context(), b.binding(b.dc.Channel, id), 0); err != nil {
		t.Fatal(err)
	}
	b.say("silent one")
	b.askedIs(id, "silent one")
	b.idle(id)
	b.busy(id)
	b.told(b.dc.Channel, "Said at the desk")
	b.told(b.dc.Channel, "wants to edit")
	b.until("the mark on what is told", func() bool { // else it is moved on after it has been moved back
		all := b.dc.Messages(b.dc.Channel)
		on, _ := b.s.bindings.bond(b.dc.Channel)
		return on.newest == all[len(all)-1].ID
	})
	b.away(func() {
		b.setNewest(b.dc.Channel, snowflake.New(past))
		b.dc.SayAt(past.Add(time.Hour), b.dc.Channel, b.dc.Owner, "silent old")
		b.dc.SayAt(past.Add(time.Minute), b.dc.Channel, b.dc.Owner, "silent older")
		b.dc.SayAt(past.Add(time.Minute), b.dc.Channel, b.dc.Stranger, "silent stranger")
		for i := range 120 {
			b.dc.SayAt(time.Now().Add(-time.Minute+time.Duration(i)*time.Millisecond), b.dc.Channel, b.dc.Stranger, fmt.Sprint(i))
		}
		b.say("silent two")
		b.say("three")
	})
	b.told(b.dc.Channel, "2 messages that were written here while Deskhand was away were not taken")
	b.waitsIs(id, "silent two\n\nthree")
	b.away(func() { b.say("four") })
	b.waitsIs(id, "silent two\n\nthree\n\nfour")
	n := 0
	for _, m := range b.dc.Messages(b.dc.Channel) {
		if strings.Contains(m.Text, "were not taken") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("reports of old messages: got %d, want 1", n)
	}
}

// A thread that was made while we were away begins a conversation too.
func TestCatchUpFindsNewThreads(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	b.bindDirectory(b.dc.Channel)
	var thread snowflake.ID
	var m discordtest.Message
	b.away(func() {
		thread = b.dc.Thread(b.dc.Channel, b.dc.Owner, "mine", 0, "silent one")
		m = b.say("silent two")
	})
	b.until("conversations", func() bool { return len(b.s.bindings.list()) == 3 })
	for channel, want := range map[snowflake.ID]string{thread: "silent one", m.ID: "silent two"} {
		to, _ := b.s.bindings.bound(channel)
		b.askedIs(to.Session, want)
	}
}

// What was changed or deleted while we were away changes what waits all the same.
func TestCatchUpFollowsChanges(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.busy(id)
	one, two := b.say("silent one"), b.say("two")
	b.say("three")
	b.waitsIs(id, "silent one\n\ntwo\n\nthree")
	b.away(func() {
		b.dc.Edit(one.ID, "silent ONE")
		b.dc.Delete(two.ID)
	})
	b.waitsIs(id, "silent ONE\n\nthree")
}

// Where what was said meanwhile could not be asked for, the next message asks again: nothing is lost in between.
func TestCatchUpIsRepeatedAfterFailure(t *testing.T) {
	t.Parallel()
	b, id, _, _ := oneWaits(t)
	const history = "GET /channels/{channel}/messages"
	before := len(b.dc.Calls(history))
	b.away(func() {
		b.say("two")
		b.dc.API.Fail(history, 1, 400)
	})
	b.shows("a try", func(s discordtest.Seen) bool { return len(s.Calls(history)) > before })
	b.settled(b.dc.Channel)
	b.waitsIs(id, "silent one")
	b.dc.Say(b.dc.Channel, b.dc.Stranger, "a stranger") // of whom no word moves the mark meanwhile
	b.say("three")
	b.waitsIs(id, "silent one\n\ntwo\n\nthree")
}

// A line that comes back anew while what was said before is still being asked for: what was said meanwhile is asked for as well.
func TestCatchUpSurvivesAnotherBreak(t *testing.T) {
	t.Parallel()
	b, id, _, _ := oneWaits(t)
	release := b.dc.API.Hold("GET /channels/{channel}/messages/{message}") // with which it ends
	defer release()
	before := len(b.dc.Calls(discordtest.RouteHistory))
	b.away(func() {})
	b.shows("catch-up", func(s discordtest.Seen) bool { return len(s.Calls(discordtest.RouteHistory)) > before })
	b.away(func() { b.say("two") })
	b.until("second catch-up behind the first", func() bool {
		b.s.in.lanes.mu.Lock()
		defer b.s.in.lanes.mu.Unlock()
		return len(b.s.in.lanes.waiting[b.dc.Channel]) >= 1 // what was posted of the turn may wait there too
	})
	release()
	b.settled(b.dc.Channel)
	b.waitsIs(id, "silent one\n\ntwo")
}

// A crash between what is done for a message: it is handed over once.
func TestCrashDuringHandOverRepeatsNothing(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.busy(id)
	lost := func(text string, at time.Time) {
		h := heard{channel: b.dc.Channel, id: b.dc.SayAt(at, b.dc.Channel, b.dc.Owner, text).ID, session: id, text: text}
		h.raw.Content = text
		if err := b.db.Write(t.Context(), func(tx *sql.Tx) error { _, err := insert(t.Context(), tx, h); return err }); err != nil {
			t.Fatal(err)
		}
	}
	// One was sent, and the program ended before that was written down.
	sent, err := b.Send(t.Context(), id, session.Prompt{Message: "silent sent", When: session.Queue})
	if err != nil {
		t.Fatal(err)
	}
	lost("silent sent", time.Now().Add(-3*time.Minute))
	lost("silent kept", time.Now().Add(-2*time.Minute))
	lost("silent old", time.Now().Add(-2*time.Hour))
	b.away(func() {})
	b.told(b.dc.Channel, "A message that was written here while Deskhand was away was not taken")
	b.settled(b.dc.Channel)
	b.waitsIs(id, "silent sent\n\nsilent kept")
	items := map[string]string{}
	for _, h := range b.rows(id) {
		items[h.text] = h.item
	}
	if items["silent sent"] != sent.QueueItem.ID || items["silent kept"] != sent.QueueItem.ID || items["silent old"] != notTaken {
		t.Errorf("items: got %v, want sent and kept together, old not taken", items)
	}
}

// write changes the store behind the surface's back.
func (b *bot) write(query string, args ...any) {
	b.t.Helper()
	if err := b.db.Write(b.t.Context(), func(tx *sql.Tx) error { _, err := tx.ExecContext(b.t.Context(), query, args...); return err }); err != nil {
		b.t.Fatal(err)
	}
}

// left is a message that was written down and not handed over.
func (b *bot) left(id, text string, at time.Time) heard {
	b.t.Helper()
	h := heard{channel: b.dc.Channel, id: b.dc.SayAt(at, b.dc.Channel, b.dc.Owner, text).ID, session: id, text: text}
	h.raw.Content = text
	if err := b.db.Write(b.t.Context(), func(tx *sql.Tx) error { _, err := insert(b.t.Context(), tx, h); return err }); err != nil {
		b.t.Fatal(err)
	}
	return h
}

// What somebody has said at the desk before is not this message, though it says the same.
func TestEqualMessagesAreToldApart(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.busy(id)
	if _, err := b.Send(t.Context(), id, session.Prompt{Message: "silent on", When: session.Queue}); err != nil {
		t.Fatal(err)
	}
	b.left(id, "silent on", time.Now().Add(time.Minute))
	b.away(func() {})
	b.waitsIs(id, "silent on", "silent on")
}

// What was deleted before it was handed over is not asked of the agent.
func TestMessageDeletedMeanwhileIsNotTaken(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.away(func() {
		h := b.left(id, "silent gone", time.Now().Add(-2*time.Minute))
		b.left(id, "silent kept", time.Now().Add(-time.Minute))
		b.dc.Delete(h.id)
	})
	b.until("a turn", func() bool { return len(b.asked(id)) > 0 })
	b.settled(b.dc.Channel)
	if got := b.asked(id); !slices.Equal(got, []string{"silent kept"}) {
		t.Errorf("the agent's messages: got %q, want silent kept", got)
	}
	if rows := b.rows(id); len(rows) != 1 {
		t.Errorf("stored messages: got %+v, want 1", rows)
	}
}

// A store that cannot be read for a moment costs no message.
func TestFailedHandOverIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	h := b.left(id, "silent", time.Now())
	var raw string
	if err := b.db.Read().QueryRowContext(t.Context(), `SELECT raw_json FROM discord_message WHERE id = ?`, h.id.String()).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	b.write(`UPDATE discord_message SET raw_json = '[]' WHERE id = ?`, h.id.String())
	b.s.in.lanes.queue(h.channel, func(ctx context.Context) { b.s.in.handOver(ctx, h.channel, h.id) })
	b.settled(h.channel)
	b.write(`UPDATE discord_message SET raw_json = ? WHERE id = ?`, raw, h.id.String())
	b.askedIs(id, "silent")
}

// Others read what is said in a channel: what only the desk may know stays out of it.
func TestUnknownFailureStaysOutOfChannel(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.s.in.refuse(t.Context(), heard{channel: b.dc.Channel, session: id}, fmt.Errorf("open /home/somebody/secret: %w", context.DeadlineExceeded))
	b.told(b.dc.Channel, "Not taken: ")
	for _, m := range b.dc.Messages(b.dc.Channel) {
		if strings.Contains(m.Text, "somebody") {
			t.Errorf("report: got %q, want no path in it", m.Text)
		}
	}
}

// In threads of a forum what was said since it is bound is taken, whenever the thread was made; also where it could not be asked for at
// first. Nothing is said of what is older.
func TestCatchUpTakesMessagesOfThreads(t *testing.T) {
	t.Parallel()
	dc := discordtest.New(discordtest.Options{RealHosts: true})
	dc.Clock(-4 * time.Hour)
	forum := dc.AddChannel(dc.Guild, "forum", "forum")
	before, since := dc.Thread(forum, dc.Owner, "before", 0), dc.Thread(forum, dc.Owner, "since", 0)
	dc.Clock(0)
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	dc.SayAt(ago(3*time.Hour), before, dc.Owner, "silent old")
	dc.SayAt(ago(30*time.Minute), before, dc.Owner, "silent before")
	dc.SayAt(ago(3*time.Hour), since, dc.Owner, "silent old")
	dc.SayAt(ago(5*time.Minute), since, dc.Owner, "silent since")
	b := openBotAt(t, dc, t.TempDir())
	to := b.binding(forum, "")
	to.Agent, to.Directory, to.CreatedAt = "mock", b.work, session.Time{Time: ago(10 * time.Minute)}
	if err := b.s.bindings.bind(t.Context(), to, snowflake.New(time.Now())); err != nil {
		t.Fatal(err)
	}
	const history = "GET /channels/{channel}/messages"
	tried := len(dc.Calls(history))
	b.away(func() { dc.API.Fail(history, 1, 400) })
	b.shows("a try", func(s discordtest.Seen) bool { return len(s.Calls(history)) > tried })
	b.settled(forum)
	dc.Say(since, dc.Owner, "silent now")
	b.until("a conversation", func() bool { _, ok := b.s.bindings.bound(since); return ok })
	in, _ := b.s.bindings.bound(since)
	b.until("both", func() bool { return strings.Join(b.asked(in.Session), "\n\n") == "silent since\n\nsilent now" })
	b.settled(forum)
	b.settled(before)
	b.settled(since)
	if _, ok := b.s.bindings.bound(before); ok {
		t.Error("what was said before the forum was bound has begun a conversation")
	}
	for _, thread := range []snowflake.ID{before, since} {
		for _, m := range dc.Messages(thread) {
			if strings.Contains(m.Text, "not taken") {
				t.Errorf("message in a thread: got %q, want no report", m.Text)
			}
		}
	}
}

// Discord's failing to tell what a channel is makes no message one of nobody's.
func TestUnknownThreadIsRequestedAgain(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	thread := b.dc.Thread(b.dc.Channel, b.dc.Owner, "mine", 0)
	b.bindDirectory(b.dc.Channel)
	const route = "GET /channels/{channel}"
	b.s.in.mu.Lock()
	clear(b.s.in.above)
	b.s.in.mu.Unlock()
	b.dc.API.Fail(route, attempts+1, 502)
	b.s.in.lanes.queue(thread, func(ctx context.Context) {
		if channel, err := b.s.in.channelAbove(ctx, thread); err != nil || channel != b.dc.Channel {
			t.Errorf("channel of the thread: got %v, error %v, want %v", channel, err, b.dc.Channel)
		}
	})
	b.settled(thread)
}

// Who gives the command when an approval has just been given elsewhere may have meant that one.
func TestApproveRefusesAmbiguousRequests(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	b.dc.Clock(-time.Minute)
	id := b.talk()
	b.shows("commands", func(s discordtest.Seen) bool { return len(s.Commands(b.dc.Guild)) == 4 })
	first := b.busy(id)
	b.allow(first)
	b.idle(id)
	r := b.busy(id)
	b.s.requests.refresh()
	var card keptCard
	b.until("a card", func() bool {
		card, _, _ = b.s.requests.one(t.Context(), r.ID)
		return card.message != 0
	})
	b.dc.Clock(2 * guardTime)
	approve := func(want string) {
		t.Helper()
		i, err := b.dc.Slash(b.dc.Channel, b.dc.Owner, "approve", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		b.shows("an answer", func(s discordtest.Seen) bool {
			if list := s.Private(i); len(list) > 0 {
				got = list[0].Text
			}
			return got != ""
		})
		if !strings.Contains(got, want) {
			t.Errorf("it is answered by %q, want %q", got, want)
		}
	}
	ended := func(at time.Time) {
		b.write(`UPDATE request SET data = json_set(data, '$.resolvedAt', ?) WHERE id = ?`, at.UTC().Format(time.RFC3339Nano), first.ID)
	}
	ended(time.Now().Add(time.Minute))
	approve("Another one has just ended")
	ended(time.Now().Add(-2 * time.Minute))
	b.write(`UPDATE discord_request SET channel = '1' WHERE request = ?`, r.ID)
	approve("It has only just come")
	b.write(`UPDATE discord_request SET channel = ? WHERE request = ?`, b.dc.Channel.String(), r.ID)
	b.write(`UPDATE request SET data = json_set(data, '$.clipped', json('true')) WHERE id = ?`, r.ID) // not all of it is here
	approve("It cannot simply be allowed once")
	b.write(`UPDATE request SET data = json_remove(data, '$.clipped') WHERE id = ?`, r.ID)
	choice := func(is string) {
		b.write(`UPDATE request SET data = json_set(data, '$.choice', json(?)) WHERE id = ?`, is, r.ID)
	}
	choice("true")
	approve("It cannot simply be allowed once")
	choice("false")
	approve("Allowed once")
}

func TestCommandsAreAnswered(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	id := b.talk()
	b.shows("commands", func(s discordtest.Seen) bool { return len(s.Commands(b.dc.Guild)) == 4 })
	command := func(channel, user snowflake.ID, name string) (text string) {
		t.Helper()
		i, err := b.dc.Slash(channel, user, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.shows("an answer", func(s discordtest.Seen) bool {
			list := s.Private(i)
			if len(list) == 0 || list[0].Text == "" {
				return false
			}
			text = list[0].Text
			return true
		})
		return text
	}
	is := func(channel, user snowflake.ID, name, want string) {
		t.Helper()
		if got := command(channel, user, name); !strings.Contains(got, want) {
			t.Errorf("/%s is answered by %q, want %q", name, got, want)
			for _, m := range b.dc.Everything(channel) {
				t.Logf("%d at %v: %q, %d controls", m.ID, m.ID.Time(), m.Text, len(m.Controls))
			}
		}
	}
	for _, name := range []string{"new", "stop", "status", "approve"} {
		if got := command(b.dc.Channel, b.dc.Stranger, name); got != "Not for you." {
			t.Errorf("answer to a stranger: got %q, want a refusal", got)
		}
		is(b.dc.AddChannel(b.dc.Guild, "other", "text"), b.dc.Owner, name, "not bound")
	}
	b.idle(id)
	is(b.dc.Channel, b.dc.Owner, "stop", "Nothing runs.")
	is(b.dc.Channel, b.dc.Owner, "approve", "Nothing waits")
	is(b.dc.Channel, b.dc.Owner, "status", "`"+b.work+"`")
	b.dc.Clock(-time.Minute) // nothing is older than something else there, until its clock goes on
	r := b.busy(id)
	b.say("silent later")
	b.waitsIs(id, "silent later")
	is(b.dc.Channel, b.dc.Owner, "status", "Waiting for an answer: 1")
	is(b.dc.Channel, b.dc.Owner, "new", "still at work")
	b.s.requests.refresh()
	b.shows("a card", func(s discordtest.Seen) bool {
		return slices.ContainsFunc(s.Messages(b.dc.Channel), func(m discordtest.Message) bool { return len(m.Controls) > 0 })
	})
	b.until("the note of the card", func() bool { k, _, _ := b.s.requests.one(t.Context(), r.ID); return k.message != 0 })
	b.dc.Clock(-2 * time.Minute) // the command is no older than the card, however slow the machine is
	is(b.dc.Channel, b.dc.Owner, "approve", "It has only just come")
	b.dc.Clock(2 * guardTime)
	is(b.dc.Channel, b.dc.Owner, "approve", "Allowed once: `"+r.Title+"`")
	b.askedIs(id, "permission", "silent later")
	b.idle(id)
	b.until("an answer", func() bool {
		tr, err := b.Transcripts().Entries(t.Context(), id, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(tr.Requests, func(q requests.Request) bool { return q.ID == r.ID })
		return i >= 0 && tr.Requests[i].AnsweredBy == "discord"
	})
	is(b.dc.Channel, b.dc.Owner, "new", "A new conversation begins")
	to, _ := b.s.bindings.bound(b.dc.Channel)
	if now := b.get(to.Session); to.Session == id || now.Agent != "mock" || now.Cwd != b.work {
		t.Errorf("new conversation: got %+v, want the same agent and directory", now)
	}
	b.say("hang")
	b.askedIs(to.Session, "hang")
	b.works(to.Session)
	b.say("silent held")
	b.waitsIs(to.Session, "silent held")
	is(b.dc.Channel, b.dc.Owner, "stop", "What waits in the queue (1)")
	b.idle(to.Session)
	if got, want := b.s.State().Ignored.Strangers, int64(4); got != want {
		t.Errorf("%d presses were ignored, want %d", got, want)
	}
}

func TestNewBeginsThread(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	b.bindDirectory(b.dc.Channel)
	b.shows("commands", func(s discordtest.Seen) bool { return len(s.Commands(b.dc.Guild)) == 4 })
	i, err := b.dc.Slash(b.dc.Channel, b.dc.Owner, "new", nil)
	if err != nil {
		t.Fatal(err)
	}
	var thread snowflake.ID
	b.shows("an answer", func(s discordtest.Seen) bool {
		for _, m := range s.Private(i) {
			if _, rest, ok := strings.Cut(m.Text, "<#"); ok {
				name, _, _ := strings.Cut(rest, ">")
				thread = idOf(name)
			}
		}
		return thread != 0
	})
	b.dc.Say(thread, b.dc.Owner, "silent")
	b.until("a conversation", func() bool { _, ok := b.s.bindings.bound(thread); return ok })
	to, _ := b.s.bindings.bound(thread)
	b.askedIs(to.Session, "silent")
}
