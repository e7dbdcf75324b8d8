package discord

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/attachment"
	"deskhand/backend/discord/discordtest"
	"deskhand/backend/feed"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

// outRig is a conversation that is shown in a channel.
type outRig struct {
	*bot
	session string
	channel snowflake.ID
}

func openOut(tb testing.TB) *outRig {
	tb.Helper()
	r := &outRig{bot: openBot(tb)}
	r.channel = r.dc.Channel
	r.session = r.create().ID
	r.bind(r.channel, r.session)
	r.idle(r.session)
	return r
}

func (r *outRig) bind(channel snowflake.ID, session string) {
	r.t.Helper()
	if err := r.s.bindings.bind(r.t.Context(), Binding{Channel: channel.String(), Guild: r.dc.Guild.String(), Session: session}, 0); err != nil {
		r.t.Fatal(err)
	}
}

// reopen ends the program and starts it again.
func (r *outRig) reopen() {
	r.t.Helper()
	r.close()
	r.bot = openBotAt(r.t, r.dc, r.dir)
}

// ask says something in the channel, and waits until it is taken.
func (r *outRig) ask(text string) discordtest.Message {
	r.t.Helper()
	m := r.dc.Say(r.channel, r.dc.Owner, text)
	r.until("turn", func() bool {
		h, ok, err := r.s.in.message(r.t.Context(), r.channel, m.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		return ok && h.item != ""
	})
	return m
}

// give shows files of the agent, each with its name in it.
func (r *outRig) give(names ...string) {
	r.t.Helper()
	var list []attachment.Wanted
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(r.work, name), []byte("this is "+name), 0o600); err != nil {
			r.t.Fatal(err)
		}
		list = append(list, attachment.Wanted{Path: name})
	}
	if _, err := r.AddFiles(r.t.Context(), r.session, list); err != nil {
		r.t.Fatal(err)
	}
}

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%02d.txt", prefix, i+1))
	}
	return names
}

// see waits until the channel shows something, and gives what it shows.
func (r *outRig) see(what string, is func([]discordtest.Message) bool) (list []discordtest.Message) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testkit.Limit)
	defer cancel()
	err := r.dc.Wait(ctx, func(s discordtest.Seen) bool {
		list = ours(r.dc, s.Messages(r.channel))
		return is(list)
	})
	if err != nil {
		r.t.Fatalf("messages: got no %s, error %v, want it", what, err)
	}
	return list
}

// ours are the messages of the bot that show turns.
func ours(dc *discordtest.Discord, list []discordtest.Message) (said []discordtest.Message) {
	for _, m := range list {
		if m.Author.ID == dc.Bot && !strings.HasPrefix(m.Text, "**Demo agent") { // which is what it asks
			said = append(said, m)
		}
	}
	return said
}

// shown waits until all of every turn is shown, and gives what the channel shows then.
func (r *outRig) shown() []discordtest.Message {
	r.t.Helper()
	r.idle(r.session)
	r.settled()
	return ours(r.dc, r.dc.Messages(r.channel))
}

// settled waits until nothing is left to be shown.
func (r *outRig) settled() {
	r.t.Helper()
	turns := r.idle(r.session).Turns
	newest := turns[len(turns)-1].ID
	r.until("end of what is shown", func() bool {
		done := r.rows()
		for _, is := range done {
			if !is {
				return false
			}
		}
		te := r.s.out.teller(r.t.Context(), r.session)
		te.mu.Lock()
		defer te.mu.Unlock()
		return len(te.turns) == 0 && done[newest]
	})
}

func (r *outRig) answer(a requests.Answer) {
	r.t.Helper()
	if err := r.Answer(r.t.Context(), r.request(r.session).ID, a, "window"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *outRig) stop() {
	r.t.Helper()
	if err := r.Cancel(r.t.Context(), r.session); err != nil {
		r.t.Fatal(err)
	}
}

func (r *outRig) want(list []discordtest.Message, texts ...string) {
	r.t.Helper()
	var got []string
	for _, m := range list {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, texts) {
		r.t.Errorf("the channel shows\n%q, want\n%q", got, texts)
	}
}

// filesIn are the names of the files of each message, checked for what is in them.
func (r *outRig) filesIn(list []discordtest.Message) (names [][]string) {
	r.t.Helper()
	for _, m := range list {
		var in []string
		for _, f := range m.Files {
			in = append(in, f.Name)
			if string(f.Data) != "this is "+f.Name {
				r.t.Errorf("file %s: got %q, want its content", f.Name, f.Data)
			}
		}
		if len(in) > mostFiles {
			r.t.Errorf("files in a message: got %d, want %d at most", len(in), mostFiles)
		}
		names = append(names, in)
	}
	return names
}

func (r *outRig) wantFiles(list []discordtest.Message, want ...[]string) {
	r.t.Helper()
	if got := r.filesIn(list); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		r.t.Errorf("the files are %q, want %q", got, want)
	}
}

func TestTurnAnswersMessage(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	asked := r.ask("thought")
	list := r.shown()
	r.want(list, "I have thought about it.")
	m := list[0]
	if m.Reply != asked.ID || m.Mentions || m.Flags&4 == 0 || m.Nonce == "" {
		t.Errorf("message: got %+v, want an answer without mentions, with a nonce", m)
	}
	if len(m.Edits) > 0 && m.Edits[0] != workingLine { // who gets to it late has the words at once
		t.Errorf("earlier text: got %q, want %q", m.Edits, workingLine)
	}
	if deleted := r.dc.Calls(discordtest.RouteDelete); len(deleted) != 0 {
		t.Errorf("deleted messages: got %d, want none", len(deleted))
	}
}

func TestEndOfTurnIsShown(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	for _, c := range []struct{ prompt, want string }{
		{"limit", "I have run out of tokens in the middle of\n-# Stopped: the answer has become as long as the model allows."},
		{"refuse", "I refuse to do that.\n-# The agent refuses to go on."},
		{"error", "This ends in an error.\n-# The agent has failed: the prompt asked for an error"},
		{"silent", "-# Done."},
		{"terminal", "-# ✓ go test ./greeting/...\nThis is how a command looks. It is an example: nothing was run."},
		{"crash", "-# – Something that is never finished\nI am about to finish this senten\n-# The agent's program has ended in the middle of this."},
	} {
		r.ask(c.prompt)
		r.see("answer to "+c.prompt, func(list []discordtest.Message) bool { return len(list) > 0 && list[len(list)-1].Text == c.want })
		r.shown()
	}
	r.ask("slow")
	r.see("tick", func(list []discordtest.Message) bool { return strings.HasPrefix(list[len(list)-1].Text, "tick 1") })
	r.stop()
	list := r.shown()
	if text := list[len(list)-1].Text; !strings.HasPrefix(text, "tick 1\n") || !strings.HasSuffix(text, "\n-# Stopped.") {
		t.Errorf("last message: got %q, want ticks and Stopped", text)
	}
}

// said is all that the agent has said in a conversation.
func (r *outRig) said() (text string) {
	r.t.Helper()
	for _, e := range r.idle(r.session).Items {
		if e.Kind == "agent" {
			text += e.Text
		}
	}
	return text
}

func textsOf(list []discordtest.Message) (texts []string) {
	for _, m := range list {
		texts = append(texts, m.Text)
	}
	return texts
}

func TestLongAnswerIsSplit(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("stream 2000/s 1s")
	list := r.shown()
	if len(list) < 4 {
		t.Fatalf("messages: got %d, want 4 or more", len(list))
	}
	for i, m := range list {
		if n := width(m.Text); n > mostText {
			t.Errorf("message %d: got %d units, want %d at most", i, n, mostText)
		}
		if f := openAfter(m.Text); f.mark != "" {
			t.Errorf("message %d: got an open block of code, want it closed", i)
		}
		if (m.Reply != 0) != (i == 0) {
			t.Errorf("message %d: got an answer to %d, want only the first to answer", i, m.Reply)
		}
	}
	var lines []string // without the tool calls
	for _, text := range textsOf(list) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "-# ") {
				lines = append(lines, line)
			}
		}
		lines = append(lines, "\n")
	}
	if got, want := bare(strings.Join(lines, "")), bare(r.said()); got != want {
		t.Errorf("what is shown is another text: %d bytes, want %d", len(got), len(want))
	}
}

func TestTurnOfDeskShowsItsMessage(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	if _, err := r.Prompt(t.Context(), r.session, "thought\nand *more* ```\nof it"); err != nil {
		t.Fatal(err)
	}
	list := r.shown()
	r.want(list, "-# Said at the desk:\n> thought and \\*more\\* ''' of it\nI have thought about it.")
	if list[0].Reply != 0 {
		t.Errorf("message: got an answer to %d, want none", list[0].Reply)
	}
}

// askToRun begins a turn that has said nothing and waits, with its tool call shown.
func (r *outRig) askToRun() {
	r.t.Helper()
	r.ask("ask to run")
	r.request(r.session)
	r.see("tool call", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.Contains(list[len(list)-1].Text, "`git status`")
	})
}

func TestEarlyFilesRideOnTheFirstVisibleMessage(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.askToRun()
	names := numbered("early", 11)
	r.give(names...)
	r.answer(requests.Answer{OptionID: "allow-once"})
	list := r.shown()
	if len(list) != 2 && len(list) != 3 {
		t.Fatalf("messages: got %q, want 2 or 3", textsOf(list))
	}
	first := slices.IndexFunc(list, func(m discordtest.Message) bool { return len(m.Files) > 0 })
	if first < 0 || strings.TrimSpace(list[first].Text) == "" {
		t.Fatalf("files: got %q, want them in a message with words", r.filesIn(list))
	}
	last := list[len(list)-1]
	r.wantFiles(list[first:], names[:10], names[10:])
	if last.Reply != list[first].ID || last.Text != "" {
		t.Errorf("eleventh file: got an answer to %d with %q, want one to %d without words", last.Reply, last.Text, list[first].ID)
	}
}

func TestLateFilesFollowAtTheEnd(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("question")
	first := r.see("words", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.Contains(list[0].Text, "I have a question.")
	})
	names := numbered("late", 11)
	r.give(names...)
	if now := ours(r.dc, r.dc.Messages(r.channel)); len(r.filesIn(now)[0]) != 0 {
		t.Error("they did not wait")
	}
	r.answer(requests.Answer{Answers: [][]string{{"option-a"}}})
	list := r.shown()
	n := len(list)
	if n < 3 {
		t.Fatalf("messages: got %q, want 3 or more", textsOf(list))
	}
	r.wantFiles(list[n-3:], nil, names[:10], names[10:])
	for _, m := range list[n-2:] {
		if m.Reply != list[n-3].ID {
			t.Errorf("message: got an answer to %d, want %d", m.Reply, list[n-3].ID)
		}
	}
	if list[0].ID != first[0].ID {
		t.Error("the placeholder is gone")
	}
}

func TestFilesWithoutWordsMakeTheFirstMessage(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.askToRun()
	placeholder := ours(r.dc, r.dc.Messages(r.channel))[0].ID
	names := numbered("only", 11)
	r.give(names...)
	r.stop()
	list := r.shown()
	n := len(list)
	r.wantFiles(list[n-2:], names[:10], names[10:])
	if !strings.HasSuffix(list[n-2].Text, "-# Stopped.") || list[n-1].Reply != list[n-2].ID {
		t.Errorf("messages: got %q, want Stopped and its files", textsOf(list))
	}
	if list[0].ID != placeholder {
		t.Error("the placeholder is gone")
	}
}

// Files are sent once where the agent ends in the middle, too.
func TestFilesAreSentOnceWhenAgentIsKilled(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("hang")
	r.see("words", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.Contains(list[0].Text, "not help.") // behind a file it would be a paragraph of its own
	})
	r.give("a.txt", "b.txt")
	r.stop()
	list := r.shown()
	r.wantFiles(list, nil, []string{"a.txt", "b.txt"})
	r.want(list, "I hang now. Cancel does not help.\n-# Stopped.", "")
}

func TestInterruptedTurnIsShownAtNextStart(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	asked := r.ask("slow")
	r.see("tick", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.HasPrefix(list[0].Text, "tick 1")
	})
	turn := r.get(r.session).Turn.ID
	r.until("note that it was said", func() bool { // without it the files would come with the words at the next start
		row, _, err := r.s.out.read(t.Context(), r.session, turn)
		if err != nil {
			t.Fatal(err)
		}
		return row.Spoke
	})
	r.give("a.txt", "b.txt")
	for range 2 { // the second time there is nothing left to do
		r.reopen()
		r.settled()
	}
	list := ours(r.dc, r.dc.Messages(r.channel))
	r.wantFiles(list, nil, []string{"a.txt", "b.txt"})
	first := list[0]
	if !strings.HasPrefix(first.Text, "tick 1\n") || !strings.HasSuffix(first.Text, "\n-# Interrupted: Deskhand was ended while this ran.") || list[1].Text != "" {
		t.Errorf("messages: got %q, want ticks, Interrupted and the files", textsOf(list))
	}
	if first.Reply != asked.ID || list[1].Reply != first.ID {
		t.Errorf("messages: got %+v, want answers to %d", list, asked.ID)
	}
}

// A message that was taken gets its answer, even if the program died before anything of it was written down. A turn of the desk that
// is over does not come after hours.
func TestMissedTurnIsShownAtNextStart(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	if _, err := r.Prompt(t.Context(), r.session, "limit"); err != nil {
		t.Fatal(err)
	}
	r.shown()
	asked := r.ask("thought")
	for _, m := range r.shown() {
		r.dc.Delete(m.ID)
	}
	err := r.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM discord_output`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.settled()
	list := ours(r.dc, r.dc.Messages(r.channel))
	r.want(list, "I have thought about it.")
	if list[0].Reply != asked.ID {
		t.Errorf("message: got an answer to %d, want %d", list[0].Reply, asked.ID)
	}
}

// What an agent says when no turn runs is shown as well.
func TestTextOutsideOfTurnsIsShown(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("thought")
	r.shown()
	turn := slices.Collect(maps.Keys(r.rows()))[0]
	tell := func(kind string, e session.BusEvent) {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		r.s.out.follow(t.Context(), []feed.Event{{Session: r.session, Type: kind, Data: data}})
	}
	letGo := r.dc.API.Hold(discordtest.RouteCreate) // else the first word may be taken for the whole before the last is told
	for _, word := range []string{"One", " more", " thing."} {
		tell(feedText, session.BusEvent{MessageID: "free", Delta: word})
	}
	letGo()
	tell(feedTool, session.BusEvent{MessageID: "other", Title: "not a message"})
	tell(feedText, session.BusEvent{RequestID: turn, MessageID: "late", Delta: "of a turn that is shown"})
	r.see("more", func(list []discordtest.Message) bool { return len(list) == 2 && list[1].Text == "One more thing." })
	r.settled()
	r.want(r.shown(), "I have thought about it.", "One more thing.")
}

func (r *outRig) rows() map[string]bool {
	r.t.Helper()
	done, err := r.s.out.written(r.t.Context(), r.session)
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

// A message whose making was not confirmed before the program died is found, and not made again.
func TestUnconfirmedMessageIsSearched(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		r := openOut(t)
		r.ask("slow")
		r.see("tick", func(list []discordtest.Message) bool {
			return len(list) > 0 && strings.HasPrefix(list[0].Text, "tick 1")
		})
		lose := r.dc.API.Fail
		if made {
			lose = r.dc.API.LoseAnswers
		}
		lose(discordtest.RouteCreate, attempts, 500)
		release := r.dc.API.Hold(discordtest.RouteHistory) // it dies before it can look
		before := len(r.dc.Calls(discordtest.RouteCreate))
		r.give("a.txt")
		r.stop()
		r.idle(r.session)
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
		defer cancel()
		if err := r.dc.Wait(ctx, func(s discordtest.Seen) bool { return len(s.Calls(discordtest.RouteCreate)) == before+attempts }); err != nil {
			t.Fatal(err)
		}
		r.close()
		release()
		r.bot = openBotAt(t, r.dc, r.dir)
		r.settled()
		list := ours(r.dc, r.dc.Messages(r.channel))
		r.wantFiles(list, nil, []string{"a.txt"})
		r.close()
	}
}

func TestTooLargeFileBecomesLine(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.dc.UploadLimit(20)
	r.ask("question")
	r.see("words", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.Contains(list[0].Text, "I have a question.")
	})
	r.give("a.txt", "a-name-that-is-long.txt", "b.txt")
	r.stop()
	list := r.shown()
	if !slices.ContainsFunc(list, func(m discordtest.Message) bool {
		return strings.HasSuffix(m.Text, "-# a-name-that-is-long.txt (31 bytes) is too large for this server. It is in Deskhand.\n-# Stopped.")
	}) {
		t.Errorf("messages: got %q, want a line for the large file", textsOf(list))
	}
	var names []string
	for _, in := range r.filesIn(list) {
		names = append(names, in...)
	}
	if !slices.Equal(names, []string{"a.txt", "b.txt"}) {
		t.Errorf("files: got %q, want a.txt and b.txt", names)
	}
}

func TestUploadLimitFollowsTier(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	for tier, want := range []int64{usualUpload, usualUpload, secondUpload, thirdUpload} {
		r.dc.Premium(r.dc.Guild, tier)
		clear(r.s.out.uploads)
		for range 2 {
			if got := r.s.out.uploadLimit(t.Context(), r.channel); got != want {
				t.Errorf("upload limit of tier %d: got %d, want %d", tier, got, want)
			}
		}
	}
	if n := len(r.dc.Calls("GET /guilds/{guild}")); n != 4 {
		t.Errorf("requests for the server: got %d, want 4", n)
	}
}

// An upload that fails now and then is tried again; one that always fails keeps no words back, and ends as a line.
func TestFailedUploadBecomesLine(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{2, 1000} {
		r := openOut(t)
		r.askToRun()
		r.dc.API.FailUploads(fails, 502)
		r.give("a.txt")
		r.answer(requests.Answer{OptionID: "allow-once"})
		list := r.shown()
		files, lines := 0, strings.Count(strings.Join(textsOf(list), "\n"), "could not be sent")
		for _, in := range r.filesIn(list) {
			files += len(in)
		}
		if want := fails < 1000; (files == 1) != want || (lines == 1) == want || files+lines != 1 {
			t.Errorf("%d failures: got %d files, messages %q, want the file or its line", fails, files, textsOf(list))
		}
		r.close()
	}
}

func TestDeletedMessageContinuesInNewMessage(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.askToRun()
	r.give("a.txt")
	if err := r.Answer(t.Context(), r.request(r.session).ID, requests.Answer{OptionID: "allow-once"}, "window"); err != nil {
		t.Fatal(err)
	}
	r.shown()
	r.ask("slow")
	list := r.see("tick", func(list []discordtest.Message) bool { return strings.HasPrefix(list[len(list)-1].Text, "tick 1") })
	r.give("late.txt")
	r.dc.DeleteUnderUs(list[len(list)-1].ID)
	list = r.see("a new message", func(now []discordtest.Message) bool {
		return len(now) == len(list) && now[len(now)-1].ID != list[len(list)-1].ID && strings.HasPrefix(now[len(now)-1].Text, "tick 1\n")
	})
	r.dc.DeleteUnderUs(list[len(list)-1].ID)
	r.stop()
	list = r.shown()
	n := len(list)
	if !strings.HasPrefix(list[n-2].Text, "tick 1\n") || !strings.HasSuffix(list[n-2].Text, "-# Stopped.") {
		t.Errorf("messages: got %q, want ticks and Stopped in a new message", textsOf(list))
	}
	r.wantFiles(list[n-2:], nil, []string{"late.txt"})
}

func TestFilesOfDeletedMessageAreSentAgain(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("/slow")
	r.see("tick", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.HasPrefix(list[0].Text, "tick 1")
	})
	r.stop()
	r.shown()
	// The row is as if the files had come with the first words.
	te := r.s.out.teller(t.Context(), r.session)
	s := &showing{o: r.s.out, te: te, t: &turnState{session: r.session, turn: "t"}, posts: []post{{id: 5}}, channel: r.channel, ride: mostFiles, blocked: map[int]bool{}}
	s.row = postRecord{channel: r.channel, Spoke: true, Files: []given{{Entry: "e", Sent: "5"}, {Entry: "f", Sent: "6"}}}
	s.lost(t.Context(), op{at: 0}, lost)
	if s.row.Spoke || !s.row.Files[0].waits() || s.row.Files[1].waits() || s.posts[0].id != 0 || s.posts[0].gone {
		t.Errorf("showing: got %+v, posts %+v, want the file of the lost message to wait", s.row, s.posts)
	}
}

func TestTextAfterQuestionStandsBelowCard(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("question")
	card := func() int {
		return slices.IndexFunc(r.dc.Messages(r.channel), func(m discordtest.Message) bool { return len(m.Controls) > 0 })
	}
	r.until("question", func() bool { return card() >= 0 })
	if list := r.dc.Messages(r.channel)[1:]; len(list) != 2 || list[0].Text != "I have a question." {
		t.Errorf("messages: got %q, want the question's text and its card", textsOf(list))
	}
	r.answer(requests.Answer{Answers: [][]string{{"option-a"}}})
	r.shown()
	list := r.dc.Messages(r.channel)[1:]
	if len(list) != 3 || list[0].Text != "I have a question." || !strings.Contains(list[2].Text, "option-a") || len(list[2].Edits) > 20 {
		t.Errorf("messages: got %q, want the answer below the card", textsOf(list))
	}
	r.s.out.below(r.session) // no turn runs
	r.s.out.below("unknown")
}

// What is read again while a text streams is in the channel once.
func TestResetRepeatsNothing(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("stream 1000/s 2s")
	for i := range 4 {
		r.see("more", func(list []discordtest.Message) bool {
			return len(list) > 0 && width(strings.Join(textsOf(list), "")) > 800*i+50
		})
		r.s.out.reload(t.Context())
	}
	list := r.shown()
	var text strings.Builder
	for _, m := range list {
		for line := range strings.Lines(m.Text) {
			if !strings.HasPrefix(line, "-# ") {
				text.WriteString(line)
			}
		}
		text.WriteString("\n")
	}
	if got, want := bare(text.String()), bare(r.said()); got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("what is shown is another text: %d bytes, want %d; from byte %d on: %q, want %q; messages %q", len(got), len(want), at, got[max(0, at-80):min(len(got), at+160)], want[max(0, at-80):min(len(want), at+160)], textsOf(list))
	}
}

// Nothing is said any more where a channel is not bound any more.
func TestUnboundChannelGetsNoMoreText(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.ask("slow")
	r.see("tick", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.HasPrefix(list[0].Text, "tick 1")
	})
	if err := r.s.bindings.unbind(t.Context(), r.channel); err != nil {
		t.Fatal(err)
	}
	te := r.s.out.teller(t.Context(), r.session)
	r.until("end of what is shown", func() bool {
		te.mu.Lock()
		defer te.mu.Unlock()
		return len(te.turns) == 0
	})
	before := len(r.dc.Calls("")) // all that is asked of Discord
	r.stop()
	r.settled()
	if list := ours(r.dc, r.dc.Messages(r.channel)); strings.Contains(list[0].Text, "Stopped") || len(list) != 1 {
		t.Errorf("messages: got %q, want no more", textsOf(list))
	}
	if now := len(r.dc.Calls("")); now != before {
		t.Errorf("calls: got %d, want none", now-before)
	}
}

func TestForbiddenChannelIsReportedAndWaitedFor(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	r.dc.Deny(r.channel, discord.PermissionSendMessages)
	if _, err := r.Prompt(t.Context(), r.session, "thought"); err != nil {
		t.Fatal(err)
	}
	problem := func() string {
		b, _ := r.s.bindings.bound(r.channel)
		return b.Problem
	}
	r.until("problem", func() bool { return problem() == problemForbidden })
	r.dc.Deny(r.channel)
	list := r.shown()
	r.want(list, "-# Said at the desk:\n> thought\nI have thought about it.")
	if got := problem(); got != "" {
		t.Errorf("problem: got %q, want none", got)
	}
}

func TestTurnContinuesInArchivedThread(t *testing.T) {
	t.Parallel()
	r := &outRig{bot: openBot(t)}
	r.channel = r.dc.Thread(r.dc.Channel, r.dc.Owner, "work", 0)
	r.session = r.create().ID
	r.bind(r.channel, r.session)
	r.idle(r.session)
	r.ask("slow")
	r.see("tick", func(list []discordtest.Message) bool {
		return len(list) > 0 && strings.HasPrefix(list[0].Text, "tick 1")
	})
	r.dc.Archive(r.channel, false)
	r.stop()
	list := r.shown()
	if len(list) != 2 || !strings.HasPrefix(list[1].Text, "tick 1") || !strings.HasSuffix(list[1].Text, "-# Stopped.") {
		t.Errorf("messages: got %q, want a second one with the rest", textsOf(list))
	}
}

func TestSayPostsText(t *testing.T) {
	t.Parallel()
	r := openOut(t)
	asked := r.ask("thought")
	r.shown()
	r.dc.Delete(asked.ID)
	before := len(ours(r.dc, r.dc.Messages(r.channel)))
	last, err := r.s.out.say(t.Context(), r.channel, asked.ID, strings.Repeat("@everyone ", 300))
	if err != nil {
		t.Fatal(err)
	}
	list := ours(r.dc, r.dc.Messages(r.channel))[before:]
	if len(list) != 2 || list[1].ID != last || list[0].Reply != 0 || list[0].Mentions || list[1].Mentions {
		t.Errorf("messages: got %+v, want 2 without mentions", list)
	}
}
