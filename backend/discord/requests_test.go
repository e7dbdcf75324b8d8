package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

// eRig is a conversation in a channel.
type eRig struct {
	t       *testing.T
	bot     *bot
	fixture *fixture
	discord *discordtest.Discord
	s       *Surface
	session string
	second  snowflake.ID // another channel
	skew    time.Duration
}

func openAsks(t *testing.T) *eRig {
	t.Helper()
	b := openBot(t)
	r := &eRig{t: t, bot: b, fixture: b.fixture, discord: b.dc, s: b.s, session: b.create().ID}
	r.second = r.discord.AddChannel(r.discord.Guild, "second", "text")
	r.bind(r.discord.Channel)
	return r
}

// reopen begins a surface after another one was closed, as when Discord was off for a while.
func (r *eRig) reopen() {
	r.t.Helper()
	s, err := New(r.t.Context(), r.s.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	s.client.unit, s.requests.ack = r.s.client.unit, r.s.requests.ack
	r.s, r.bot.s = s, s // which closes it with the desk
	s.Start()
}

func (r *eRig) bind(channel snowflake.ID) {
	r.t.Helper()
	if err := r.s.bindings.bind(r.t.Context(), Binding{Channel: channel.String(), Guild: r.discord.Guild.String(), Session: r.session}, 0); err != nil {
		r.t.Fatal(err)
	}
}

func (r *eRig) prompt(text string) {
	r.t.Helper()
	if _, err := r.fixture.Prompt(r.t.Context(), r.session, text); err != nil {
		r.t.Fatal(err)
	}
}

// card waits for a message of a channel that is as wanted, the newest first.
func (r *eRig) card(channel snowflake.ID, what string, is func(discordtest.Message) bool) (found discordtest.Message) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testkit.Limit)
	defer cancel()
	err := r.discord.Wait(ctx, func(s discordtest.Seen) bool {
		for _, m := range slices.Backward(s.Messages(channel)) {
			if is(m) {
				found = m
				return true
			}
		}
		return false
	})
	if err != nil {
		r.t.Fatalf("card %s: got error %v, want the card", what, err)
	}
	return found
}

// asked waits for a card that can be answered.
func (r *eRig) asked() discordtest.Message {
	r.t.Helper()
	return r.card(r.discord.Channel, "that waits", func(m discordtest.Message) bool { return len(m.Controls) > 0 && !m.Controls[0].Disabled })
}

// ended waits until a card says so and cannot be used.
func (r *eRig) ended(m discordtest.Message, says string) discordtest.Message {
	r.t.Helper()
	return r.card(m.Channel, "that says "+says, func(now discordtest.Message) bool {
		return now.ID == m.ID && strings.Contains(now.Text, says) && !slices.ContainsFunc(now.Controls, func(c discordtest.Control) bool { return !c.Disabled })
	})
}

// cards counts the messages of a channel that have controls.
func (r *eRig) cards(channel snowflake.ID) int {
	n := 0
	for _, m := range r.discord.Messages(channel) {
		if len(m.Controls) > 0 {
			n++
		}
	}
	return n
}

// press uses a control by its label, a second after whatever was shown last, and gives the first answer to it.
func (r *eRig) press(m discordtest.Message, user snowflake.ID, label string, values ...string) (*discordtest.Interaction, discordtest.Answer) {
	r.t.Helper()
	r.skew += time.Second
	r.discord.Clock(r.skew)
	c, ok := m.Control(label)
	if !ok {
		r.t.Fatalf("controls: got %+v, want %q among them", m.Controls, label)
	}
	i, err := r.discord.PressLate(m.ID, user, c.CustomID, values...)
	if err != nil {
		r.t.Fatal(err)
	}
	return i, r.answer(i)
}

func (r *eRig) answer(i *discordtest.Interaction) discordtest.Answer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testkit.Limit)
	defer cancel()
	a, err := i.Wait(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// told waits for what the person of an interaction alone is told.
func (r *eRig) told(i *discordtest.Interaction, says string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testkit.Limit)
	defer cancel()
	if err := r.discord.Wait(ctx, func(s discordtest.Seen) bool {
		return slices.ContainsFunc(s.Private(i), func(m discordtest.Message) bool { return strings.Contains(m.Text, says) })
	}); err != nil {
		r.t.Fatalf("private message %q: got error %v, want it", says, err)
	}
}

// became waits for the end of a request.
func (r *eRig) became(id string) requests.Request {
	r.t.Helper()
	var found requests.Request
	r.fixture.until("end of the request", func() bool {
		var err error
		if found, err = r.fixture.Requests().Get(r.t.Context(), id); err != nil {
			r.t.Fatal(err)
		}
		return found.Status != "requested"
	})
	return found
}

func (r *eRig) says(text string) {
	r.t.Helper()
	for _, e := range r.fixture.idle(r.session).Items {
		if e.Kind == "agent" && strings.Contains(e.Text, text) {
			return
		}
	}
	r.t.Errorf("the agent's texts: got none with %q, want one", text)
}

// noCards waits until no card is kept.
func (r *eRig) noCards() {
	r.t.Helper()
	done := make(chan []keptCard, 1)
	r.s.requests.lanes.queue("show "+r.session, func(ctx context.Context) {
		list, _ := r.s.requests.kept(ctx, "")
		done <- list
	})
	if list := <-done; len(list) > 0 {
		r.t.Errorf("kept cards: got %+v, want none", list)
	}
}

func TestApprovalIsAnsweredInChannel(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	var want []string
	for _, o := range request.Options {
		want = append(want, o.Name)
	}
	var have []string
	for _, c := range m.Controls {
		have = append(have, c.Label)
	}
	same(t, "buttons", have, want)
	if m.Mentions || m.Flags&int(discord.MessageFlagSuppressEmbeds) == 0 || m.Nonce == "" {
		t.Errorf("card: got %+v, want no mentions, no previews, and a nonce", m)
	}
	at := slices.IndexFunc(request.Options, func(o requests.Option) bool { return o.Kind == "allow_once" })
	if _, a := r.press(m, r.discord.Owner, want[at]); a.Kind != "deferred" {
		t.Errorf("answer to the press: got %+v, want deferred", a)
	}
	if now := r.became(request.ID); now.Status != "answered" || now.AnsweredBy != surfaceName {
		t.Errorf("request: got %+v, want answered here", now)
	}
	r.ended(m, "**Allowed once** · answered by <@"+r.discord.Owner.String()+">")
	r.fixture.idle(r.session)
	if data, err := os.ReadFile(filepath.Join(r.fixture.work, "deskhand-demo.md")); err != nil || len(data) == 0 {
		t.Errorf("file of the allowed command: got error %v, want it written", err)
	}
	r.noCards()
}

// Two surfaces answer one request at the same time: one of them wins, and everybody reads which.
func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	won := map[string]int{}
	for round := range 9 {
		r.prompt("permission")
		request := r.fixture.request(r.session)
		m := r.asked()
		allow := request.Options[slices.IndexFunc(request.Options, func(o requests.Option) bool { return o.Kind == "allow_once" })]
		reject := request.Options[slices.IndexFunc(request.Options, func(o requests.Option) bool { return o.Kind == "reject_once" })]
		window, begin := make(chan error, 1), make(chan struct{})
		if round%3 == 0 {
			close(begin)
		}
		go func() {
			<-begin
			window <- r.fixture.Answer(context.WithoutCancel(t.Context()), request.ID, requests.Answer{OptionID: reject.ID}, "window")
		}()
		i, _ := r.press(m, r.discord.Owner, allow.Name) // returns when Discord knows that it has come, and not when it counts
		if round%3 == 2 {
			r.became(request.ID)
		}
		if round%3 != 0 {
			close(begin)
		}
		err := <-window
		now := r.became(request.ID)
		won[now.AnsweredBy]++
		switch now.AnsweredBy {
		case "window":
			if err != nil || now.Status != "rejected" {
				t.Errorf("request answered in the window: got error %v, %+v, want none, rejected", err, now)
			}
			r.ended(m, "**Rejected** · answered in the window")
			if a := r.answer(i); a.Kind == "deferred" {
				r.told(i, "Too late: it was answered in the window.")
			}
		case surfaceName:
			late, ok := errors.AsType[*session.RefusedError](err)
			if !ok || late.Code != "request.resolved" || late.Params["answeredBy"] != surfaceName || now.Status != "answered" {
				t.Errorf("request answered here: got error %v, %+v, want request.resolved, answered", err, now)
			}
			r.ended(m, "**Allowed once** · answered by <@"+r.discord.Owner.String()+">")
		default:
			t.Errorf("request: got %+v, want an answer of one of the two", now)
		}
		r.fixture.idle(r.session)
	}
	t.Logf("won: %v", won)
}

func TestAnswerElsewhereDisablesControls(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	release := r.discord.API.Hold(discordtest.RouteEdit) // the card is late
	if err := r.fixture.Answer(t.Context(), request.ID, requests.Answer{OptionID: request.Options[0].ID}, "window"); err != nil {
		t.Fatal(err)
	}
	i, _ := r.press(m, r.discord.Owner, request.Options[0].Name)
	r.told(i, "Too late: it was answered in the window.")
	release()
	r.ended(m, "answered in the window")
	r.noCards()
	if i, a := r.press(m, r.discord.Owner, request.Options[0].Name); !a.Private || !strings.Contains(a.Text, "no longer asked") {
		t.Errorf("late press: got %+v, answer %+v, want a private refusal", i, a)
	}
}

func TestOnlyListedPeopleMayPress(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	if _, a := r.press(m, r.discord.Stranger, request.Options[0].Name); !a.Private || a.Text != "Not for you." {
		t.Errorf("press of a stranger: got %+v, want a private refusal", a)
	}
	r.s.mu.Lock()
	strangers := r.s.counted.Strangers
	r.s.mu.Unlock()
	if strangers != 1 {
		t.Errorf("strangers counted: got %d, want 1", strangers)
	}
	// The moment in which it appears is no moment to press.
	r.discord.Delete(m.ID)
	m = r.card(m.Channel, "in its place", func(now discordtest.Message) bool { return now.ID > m.ID && len(now.Controls) > 0 })
	r.noted(request.ID)
	c, _ := m.Control(request.Options[0].Name)
	i, err := r.discord.PressQuickly(m.ID, r.discord.Owner, c.CustomID)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.answer(i); !a.Private || !strings.Contains(a.Text, "too soon") {
		t.Errorf("early press: got %+v, want that it was too soon", a)
	}
	if now, err := r.fixture.Requests().Get(t.Context(), request.ID); err != nil || now.Status != "requested" {
		t.Errorf("request: got %+v, error %v, want it waiting", now, err)
	}
	// Whether or not it is noted already which message it is: what was posted again can be answered, and what was deleted cannot.
	for message, refused := range map[snowflake.ID]bool{m.ID - 1: false, m.ID: false, m.ID + 1: true} {
		if err := r.s.requests.posted(t.Context(), request.ID, message); err != nil {
			t.Fatal(err)
		}
		p := press{id: m.ID + snowflake.ID(guardTime.Milliseconds()+1)<<22, request: request.ID, channel: m.Channel, message: m.ID}
		if _, why := r.s.requests.open(t.Context(), p); (why != "") != refused {
			t.Errorf("press of the message %d while %d is known: got %q, want refused %v", m.ID, message, why, refused)
		}
	}
	if err := r.s.requests.posted(t.Context(), request.ID, m.ID); err != nil {
		t.Fatal(err)
	}
	r.press(m, r.discord.Owner, request.Options[0].Name)
	r.ended(m, "answered by")
}

func TestQuestionsAreAnsweredInChannel(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("question")
	m := r.asked()
	if _, a := r.press(m, r.discord.Owner, "Choose", "1"); a.Kind != "deferred" {
		t.Errorf("answer to the choice: got %+v, want deferred", a)
	}
	r.ended(m, `**Answered\: Option B** · answered by`)
	r.says("You answered: option-b")

	r.prompt("questions")
	m = r.asked()
	i, _ := r.press(m, r.discord.Owner, "Send")
	r.told(i, "This needs an answer: Which toppings?")
	r.press(m, r.discord.Owner, "Which toppings?", "0", "2")
	opened, a := r.press(m, r.discord.Owner, "Other…")
	if a.Kind != "modal" || len(a.Modal.Fields) != 1 || a.Modal.Fields[0].Label != "Which drink?" {
		t.Fatalf("answer to Other: got %+v, want a modal with one field", a)
	}
	if _, err := r.discord.SubmitModal(opened, map[string]any{a.Modal.Fields[0].CustomID: "Lemonade\n"}); err != nil {
		t.Fatal(err)
	}
	r.card(m.Channel, "with the words", func(now discordtest.Message) bool {
		return now.ID == m.ID && strings.Contains(now.Text, "→ Lemonade")
	})
	r.press(m, r.discord.Owner, "Send")
	r.ended(m, `**Answered\: Cheese, Basil; Lemonade** · answered by`)
	r.says("You answered: cheese, basil; Lemonade")

	r.prompt("question")
	m = r.asked()
	r.press(m, r.discord.Owner, "Decline")
	r.ended(m, "**Declined** · answered by")
	r.says("You rejected the question.")
}

func TestFormIsAnsweredInChannel(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("form")
	m := r.asked()
	opened, a := r.press(m, r.discord.Owner, "Write…")
	if a.Kind != "modal" {
		t.Fatalf("answer to Write: got %+v, want a modal", a)
	}
	fill := map[string]any{}
	for _, f := range a.Modal.Fields {
		if strings.HasPrefix(f.Label, "Name") {
			fill[f.CustomID] = "Light House"
		}
	}
	if _, err := r.discord.SubmitModal(opened, fill); err != nil {
		t.Fatal(err)
	}
	m = r.card(m.Channel, "with the name", func(now discordtest.Message) bool {
		return now.ID == m.ID && strings.Contains(now.Text, "→ Light House")
	})
	r.press(m, r.discord.Owner, "Size", "1")
	r.press(m, r.discord.Owner, "With tests", "0")
	r.press(m, r.discord.Owner, "Features", "0", "1")
	r.press(m, r.discord.Owner, "Next")
	m = r.card(m.Channel, "of the next page", func(now discordtest.Message) bool { _, back := now.Control("Back"); return now.ID == m.ID && back })
	r.press(m, r.discord.Owner, "Systems", "0", "2")
	i, _ := r.press(m, r.discord.Owner, "Send")
	r.told(i, "That does not fit") // the name has a space
	r.press(m, r.discord.Owner, "Back")
	m = r.card(m.Channel, "of the first page", func(now discordtest.Message) bool { _, next := now.Control("Next"); return now.ID == m.ID && next })
	opened, a = r.press(m, r.discord.Owner, "Write…")
	for _, f := range a.Modal.Fields {
		if strings.HasPrefix(f.Label, "Name") {
			if f.Value != "Light House" {
				t.Errorf("field: got %+v, want Light House", f)
			}
			fill[f.CustomID] = "light-house"
		}
	}
	if _, err := r.discord.SubmitModal(opened, fill); err != nil {
		t.Fatal(err)
	}
	m = r.card(m.Channel, "with the other name", func(now discordtest.Message) bool {
		return now.ID == m.ID && strings.Contains(now.Text, `→ light\-house`)
	})
	r.press(m, r.discord.Owner, "Next")
	m = r.card(m.Channel, "of the next page", func(now discordtest.Message) bool { _, back := now.Control("Back"); return now.ID == m.ID && back })
	r.press(m, r.discord.Owner, "Send")
	r.ended(m, "**Sent** · answered by")
	r.says(`"name": "light-house"`)
	r.says(`"size": "large"`)
	r.says(`"tests": true`)
}

func TestRequestsCanBeDeclinedAndCancelled(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	for _, c := range []struct{ prompt, press, ended, says string }{
		{"form", "Decline", "**Declined**", "You declined the form"},
		{"form", "Cancel", "**Cancelled**", "You cancelled the form."},
		{"visit", "Decline", "**Declined**", "You declined, so I go on"},
		{"visit", "Cancel", "**Cancelled**", "You cancelled it."},
		{"visit", "Opened", "**Opened**", "You agreed to open it"},
		{"unknown request", "Dismiss", "**Dismissed**", "error -32601"},
		{"hologram", "Dismiss", "**Dismissed**", "You cancelled the form."},
	} {
		r.prompt(c.prompt)
		m := r.asked()
		r.press(m, r.discord.Owner, c.press)
		r.ended(m, c.ended+" · answered by")
		r.says(c.says)
	}
}

// What ends while the program does not run is shown when it runs again, and what waits still can be answered.
func TestCardsSurviveRestart(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	_ = r.s.Close()
	if err := r.fixture.Answer(t.Context(), request.ID, requests.Answer{OptionID: request.Options[0].ID}, "window"); err != nil {
		t.Fatal(err)
	}
	r.fixture.idle(r.session)
	r.reopen()
	r.ended(m, "answered in the window")
	r.noCards()

	r.prompt("permission")
	m = r.asked()
	_ = r.s.Close()
	r.reopen()
	r.fixture.until("line", func() bool { return r.s.State().Status == statusConnected })
	r.press(m, r.discord.Owner, request.Options[0].Name)
	r.ended(m, "answered by")
	if n := r.cards(m.Channel); n != 2 {
		t.Errorf("cards: got %d, want 2", n)
	}
}

// With the program its agents end, and nobody can answer them any more.
func TestCardsOfEndedProgramAreUpdated(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	m := r.asked()
	r.bot.close()
	openBotAt(t, r.discord, r.fixture.dir)
	r.ended(m, "**Expired**: its agent has ended")
}

// A message of which we do not hear that it was made is not made twice; one that cannot be sent at first is sent later.
func TestCardIsPostedOnce(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.discord.API.LoseAnswers(discordtest.RouteCreate, 6, 502)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	r.press(m, r.discord.Owner, request.Options[0].Name)
	r.ended(m, "answered by")
	if n := r.cards(m.Channel); n != 1 {
		t.Errorf("cards: got %d, want 1", n)
	}
}

func TestLongCommandIsSentAsFile(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	line := "echo " + strings.Repeat("0123456789 ", 300) + "end"
	r.discord.API.FailUploads(1, 500)
	r.prompt("/ask-to-run " + line)
	m := r.asked()
	if len(m.Files) != 1 || string(m.Files[0].Data) != line+"\n" {
		t.Fatalf("card: got %+v, want the command as its file", m)
	}
	reject := slices.IndexFunc(m.Controls, func(c discordtest.Control) bool { return c.Style == int(discord.ButtonStyleDanger) })
	r.press(m, r.discord.Owner, m.Controls[reject].Label)
	m = r.ended(m, "answered by")
	if len(m.Files) != 1 {
		t.Error("the file is gone with the edit")
	}

	// Where no file can be sent, nobody allows what they have not read.
	r.fixture.idle(r.session)
	r.discord.Deny(r.discord.Channel, discord.PermissionAttachFiles)
	r.prompt("/ask-to-run " + line)
	m = r.asked()
	if len(m.Files) != 0 || !strings.Contains(m.Text, "read it at the desk") {
		t.Fatalf("card: got %+v, want no file and a pointer to the desk", m)
	}
	for _, c := range m.Controls {
		if c.Style != int(discord.ButtonStyleDanger) {
			t.Errorf("control: got %+v, want only those that reject", c)
		}
	}
}

func TestCardMovesWithItsConversation(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	old := r.asked()
	if err := r.s.bindings.unbind(t.Context(), r.discord.Channel); err != nil {
		t.Fatal(err)
	}
	r.ended(old, "no longer")
	r.bind(r.second)
	m := r.card(r.second, "in the other channel", func(m discordtest.Message) bool { return len(m.Controls) > 0 })
	if _, a := r.press(old, r.discord.Owner, request.Options[0].Name); !a.Private || !strings.Contains(a.Text, "no longer asked") {
		t.Errorf("press of the old card: got %+v, want a private refusal", a)
	}
	r.press(m, r.discord.Owner, request.Options[0].Name)
	r.ended(m, "answered by")
}

func TestCardsOfDeletedConversationEnd(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	m := r.asked()
	if err := r.fixture.Delete(t.Context(), r.session); err != nil {
		t.Fatal(err)
	}
	r.ended(m, "No longer asked")
}

func TestCardEndsWithTurn(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	m := r.asked()
	if err := r.fixture.Cancel(t.Context(), r.session); err != nil {
		t.Fatal(err)
	}
	r.ended(m, "**No longer asked**")
	r.noCards()
}

// Who answers by a command is named like who presses.
func TestCommandAnswersApproval(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	if err := r.s.requests.answer(t.Context(), request.ID, r.discord.Owner, requests.Answer{OptionID: "none"}); err == nil {
		t.Error("an option that is not there is taken")
	}
	if err := r.s.requests.answer(t.Context(), request.ID, r.discord.Owner, requests.Answer{OptionID: request.Options[0].ID}); err != nil {
		t.Error(err)
	}
	r.ended(m, "answered by <@"+r.discord.Owner.String()+">")
	if err := r.s.requests.answer(t.Context(), request.ID, r.discord.Owner, requests.Answer{OptionID: request.Options[0].ID}); err == nil {
		t.Error("it is answered twice")
	}
}

// The program was killed between the post and the note of it.
func TestUnconfirmedCardIsFound(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	for _, answered := range []bool{false, true} {
		r.noted(request.ID)
		_ = r.s.Close()
		if err := r.s.requests.write(t.Context(), `UPDATE discord_request SET message = ''`); err != nil {
			t.Fatal(err)
		}
		if answered {
			if err := r.fixture.Answer(t.Context(), request.ID, requests.Answer{OptionID: request.Options[0].ID}, "window"); err != nil {
				t.Fatal(err)
			}
		}
		r.reopen()
	}
	r.ended(m, "answered in the window")
	if n := r.cards(m.Channel); n != 1 {
		t.Errorf("cards: got %d, want 1", n)
	}
}

// noted waits until it is known which message the card of a request is.
func (r *eRig) noted(request string) {
	r.t.Helper()
	for {
		done := make(chan keptCard, 1)
		r.s.requests.lanes.queue("show "+r.session, func(ctx context.Context) {
			k, _, _ := r.s.requests.one(ctx, request)
			done <- k
		})
		if k := <-done; k.message != 0 {
			return
		}
	}
}

// What a directory brings can be turned down from here, and no more than that.
func TestDirectoryCanOnlyBeRefusedInChannel(t *testing.T) {
	t.Parallel()
	b := openBot(t)
	folder := filepath.Join(b.work, ".sandbox-agent", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mcp.json"), []byte(`{"database":{"type":"local","command":["true"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &eRig{t: t, bot: b, fixture: b.fixture, discord: b.dc, s: b.s, session: b.create().ID}
	request := r.fixture.request(r.session)
	if request.Kind != "trust" {
		t.Fatalf("request: got %+v, want the kind trust", request)
	}
	r.bind(r.discord.Channel)
	m := r.asked()
	if len(m.Controls) != 1 || !strings.Contains(m.Text, "mcp  database") {
		t.Fatalf("card: got %+v, want one control and the programs", m)
	}
	for i, o := range request.Options {
		if strings.HasPrefix(o.Kind, "allow") {
			r.skew += time.Second
			r.discord.Clock(r.skew)
			pressed, err := r.discord.PressLate(m.ID, r.discord.Owner, customID(request.ID, verbOption+strconv.Itoa(i)))
			if err != nil {
				t.Fatal(err)
			}
			r.told(pressed, "cannot be answered here")
		}
	}
	r.press(m, r.discord.Owner, m.Controls[0].Label)
	r.ended(m, m.Controls[0].Label)
}

// Of two people who press the second hears who was first.
func TestFirstOfTwoPressesWins(t *testing.T) {
	t.Parallel()
	dc := discordtest.New(discordtest.Options{Answer: time.Minute})
	other := dc.AddUser("other")
	b := openBotWith(t, dc, t.TempDir(), func(s *setting) { s.Users = append(s.Users, User{ID: other.String()}) })
	r := &eRig{t: t, bot: b, fixture: b.fixture, discord: dc, s: b.s, session: b.create().ID}
	r.bind(dc.Channel)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	release := dc.API.Hold(discordtest.RouteEdit)
	r.press(m, other, request.Options[0].Name)
	i, _ := r.press(m, dc.Owner, request.Options[1].Name)
	r.told(i, "Too late: it was answered by <@"+other.String()+">.")
	release()
	r.ended(m, "answered by <@"+other.String()+">")
}

// What came to wait while nothing could be said is shown when the line is back.
func TestWaitingRequestsAreShownWhenLineComesBack(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.bot.away(func() {
		r.discord.Down(true, true)
		r.prompt("permission")
		r.fixture.request(r.session)
	})
	m := r.asked()
	r.press(m, r.discord.Owner, m.Controls[0].Label)
	r.ended(m, "answered by")
}

// A press of which Discord does not hear in time has failed for who has pressed, and does nothing: they may think again.
func TestFailedPressAnswersNothing(t *testing.T) {
	t.Parallel()
	b := openBotAt(t, discordtest.New(discordtest.Options{Answer: time.Nanosecond}), t.TempDir())
	r := &eRig{t: t, bot: b, fixture: b.fixture, discord: b.dc, s: b.s, session: b.create().ID}
	r.bind(r.discord.Channel)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.asked()
	r.discord.Clock(time.Second)
	c, _ := m.Control(request.Options[0].Name)
	if _, err := r.discord.Press(m.ID, r.discord.Owner, c.CustomID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	if err := r.discord.Wait(ctx, func(s discordtest.Seen) bool { return len(s.Calls(discordtest.RouteCallback)) > 0 }); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	r.s.requests.lanes.queue("answer "+request.ID, func(context.Context) { close(done) })
	<-done
	if now, err := r.fixture.Requests().Get(t.Context(), request.ID); err != nil || now.Status != "requested" {
		t.Errorf("request: got %+v, error %v, want it waiting", now, err)
	}
}

// Nobody tells that Discord takes a card now that it did not take: it is tried again by itself.
func TestCardIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.discord.API.Fail(discordtest.RouteCreate, 2*askTries*attempts, http.StatusBadGateway)
	r.prompt("permission")
	m := r.asked()
	r.press(m, r.discord.Owner, m.Controls[0].Label)
	r.ended(m, "answered by")
}

// Of a card that Discord does not take as it is at least is told that it waits.
func TestRefusedCardIsShownPlainly(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	first := r.asked()
	r.noted(request.ID)
	r.discord.API.Fail(discordtest.RouteCreate, 1, http.StatusBadRequest)
	r.discord.Delete(first.ID)
	m := r.card(r.discord.Channel, "without controls", func(m discordtest.Message) bool {
		return strings.Contains(m.Text, "Something waits for an answer, at the desk.") && len(m.Controls) == 0
	})
	if err := r.fixture.Answer(t.Context(), request.ID, requests.Answer{OptionID: request.Options[0].ID}, "window"); err != nil {
		t.Fatal(err)
	}
	r.ended(m, "answered in the window")
	r.noCards()
}

// The button that leads to an address goes first, then everything.
func TestRefusedCardLeavesPartsOut(t *testing.T) {
	t.Parallel()
	r := requests.Request{ID: requestID, Kind: "url", Agent: "Claude", Title: "Sign in.", URL: "https://true.example/", Host: "true.example", Status: "requested"}
	same(t, "unlinked", labels(draw(&r, "", held{Bare: unlinked})), []string{"Opened", "Decline", "Cancel"})
	if shown := draw(&r, "", held{Bare: unsaid}); len(shown.rows) != 0 || strings.Contains(shown.content, "true.example") {
		t.Errorf("card: got %+v, want nothing of the request", shown)
	}
	if !slices.ContainsFunc(draw(&r, "", held{}).rows, leads) || slices.ContainsFunc(draw(&r, "", held{Bare: unlinked}).rows, leads) {
		t.Error("the link is not found")
	}
}

// The name of an answer that a crash kept from being given is not that of who answers.
func TestNameOfFirstAnswerIsKept(t *testing.T) {
	t.Parallel()
	r := openAsks(t)
	r.prompt("permission")
	m := r.asked()
	request := r.fixture.request(r.session)
	if err := r.s.requests.hold(t.Context(), request.ID, map[string]any{"by": "1"}); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no")
	if err := r.s.requests.give(t.Context(), request.ID, r.discord.Owner, func() error { return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if k, _, err := r.s.requests.one(t.Context(), request.ID); err != nil || k.held.By != "1" {
		t.Errorf("card: got %+v, error %v, want the first name kept", k, err)
	}
	r.press(m, r.discord.Owner, request.Options[0].Name)
	r.ended(m, "answered by <@"+r.discord.Owner.String()+">")
}

// The controls of a card go also where its thread was archived meanwhile.
func TestCardInArchivedThreadIsUpdated(t *testing.T) {
	t.Parallel()
	dc := discordtest.New(discordtest.Options{RealHosts: true})
	api, err := url.Parse(dc.API.URL)
	if err != nil {
		t.Fatal(err)
	}
	thread := dc.Thread(dc.Channel, dc.Owner, "work", 0)
	// The stand-in opens a thread when something is said in it.
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: api.Scheme, Host: api.Host})
	pass.ErrorLog = log.New(io.Discard, "", 0)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPatch && strings.HasSuffix(q.URL.Path, "/channels/"+thread.String()) {
			dc.Say(thread, dc.Stranger, "opened")
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"id":%q,"type":11,"guild_id":%q}`, thread, dc.Guild)
			return
		}
		pass.ServeHTTP(w, q)
	}))
	t.Cleanup(between.Close)
	b := openBotWith(t, dc, t.TempDir(), func(set *setting) { set.REST = between.URL + api.Path })
	r := &eRig{t: t, bot: b, fixture: b.fixture, discord: dc, s: b.s, session: b.create().ID}
	b.is(statusConnected, "")
	r.bind(thread)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	m := r.card(thread, "that waits", func(m discordtest.Message) bool { return len(m.Controls) > 0 })
	r.noted(request.ID)
	dc.Archive(thread, false)
	if err := r.fixture.Answer(t.Context(), request.ID, requests.Answer{OptionID: request.Options[0].ID}, "window"); err != nil {
		t.Fatal(err)
	}
	r.ended(m, "answered in the window")
}

// openReplaced is openAsks for a surface whose token can be that of another bot.
func openReplaced(t *testing.T) (*eRig, *tokenVault) {
	t.Helper()
	dc, v := discordtest.New(discordtest.Options{RealHosts: true, Answer: time.Minute}), &tokenVault{}
	b := openUnset(t, dc, t.TempDir(), v, t.Output(), true)
	restURL, gateway, users := dc.API.URL, dc.Gateway.URL, []string{dc.Owner.String()}
	if _, code := b.setUp(Setup{Token: new(dc.Token), Users: &users, Enabled: new(true), REST: &restURL, Gateway: &gateway}); code != "" {
		t.Fatal(code)
	}
	b.connects(1)
	r := &eRig{t: t, bot: b, fixture: b.fixture, discord: dc, s: b.s, session: b.create().ID}
	r.bind(dc.Channel)
	return r, v
}

// What waits when the token of another bot is entered can be answered: the first one's buttons are dead.
func TestAnotherBotShowsWaitingRequests(t *testing.T) {
	t.Parallel()
	r, _ := openReplaced(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	first := r.asked()
	if _, code := r.bot.setUp(Setup{Token: new(r.discord.Replace())}); code != "" {
		t.Fatal(code)
	}
	m := r.card(r.discord.Channel, "of the other bot", func(m discordtest.Message) bool {
		return m.Author.ID != first.Author.ID && len(m.Controls) > 0 && !m.Controls[0].Disabled
	})
	r.bot.connects(2) // what is pressed before its line is there reaches no bot
	r.press(m, r.discord.Owner, request.Options[0].Name)
	if now := r.became(request.ID); now.Status != "answered" || now.AnsweredBy != surfaceName {
		t.Errorf("request: got %+v, want answered here", now)
	}
	r.ended(m, "answered by <@"+r.discord.Owner.String()+">")
	r.noCards()
}

// A card of another bot that is over cannot be changed, and holds nothing up.
func TestCardOfAnotherBotIsForgotten(t *testing.T) {
	t.Parallel()
	r, v := openReplaced(t)
	r.prompt("permission")
	request := r.fixture.request(r.session)
	r.asked()
	if err := r.s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := v.of().Keep(t.Context(), r.discord.Replace()); err != nil {
		t.Fatal(err)
	}
	if err := r.fixture.Answer(t.Context(), request.ID, requests.Answer{OptionID: request.Options[0].ID}, "window"); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.bot.connects(2)
	r.s.requests.refresh()
	looked := make(chan struct{})
	r.s.requests.lanes.queue("refresh", func(context.Context) { close(looked) })
	<-looked
	r.noCards()
}
