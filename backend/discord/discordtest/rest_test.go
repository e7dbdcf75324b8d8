package discordtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/testkit"
)

const agent = "DiscordBot (https://example.invalid, 1)"

func start(t *testing.T, o discordtest.Options) *discordtest.Discord {
	t.Helper()
	d := discordtest.New(o)
	t.Cleanup(d.Close)
	return d
}

// client is disgo's own, as the bot's is.
func client(t *testing.T, d *discordtest.Discord) rest.Rest {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return rest.New(rest.NewClient(d.Token, rest.WithURL(d.API.URL), rest.WithUserAgent(agent), rest.WithHTTPClient(&http.Client{Transport: transport}),
		rest.WithLogger(slog.New(slog.DiscardHandler))))
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	t.Cleanup(cancel)
	return ctx
}

func file(name, content string) *discord.File {
	return discord.NewFile(name, "", strings.NewReader(content))
}

// code is the number that Discord refuses with, and its status.
func code(t *testing.T, err error) (number, status int) {
	t.Helper()
	refused, ok := errors.AsType[*rest.Error](err)
	if !ok {
		t.Fatalf("error of the call: got %v, want a refusal by the API", err)
	}
	return int(refused.Code), refused.Response.StatusCode
}

func TestAPIDescribesBotAndGuild(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	forum := d.AddChannel(d.Guild, "ideas", "forum")
	voice := d.AddChannel(d.Guild, "talk", "voice")
	news := d.AddChannel(d.Guild, "news", "announcement")
	thread := d.Thread(d.Channel, d.Owner, "a thread", 0)

	self, err := c.GetCurrentUser("")
	if err != nil || self.ID != d.Bot || !self.Bot {
		t.Errorf("current user: got %+v, %v, want the bot %v", self, err, d.Bot)
	}
	application, err := c.GetCurrentApplication()
	if err != nil || application.ID != d.Application || application.Flags&discord.ApplicationFlagGatewayMessageContentLimited == 0 {
		t.Errorf("application: got %+v, %v, want %v with the flag for limited content", application, err, d.Application)
	}
	bot, err := c.GetGatewayBot()
	if err != nil || bot.URL != d.Gateway.URL || bot.SessionStartLimit.Remaining == 0 {
		t.Errorf("gateway of the bot: got %+v, %v, want %s with sessions left", bot, err, d.Gateway.URL)
	}
	guilds, err := c.GetCurrentUserGuilds("", 0, 0, 0, false)
	if err != nil || len(guilds) != 1 || guilds[0].ID != d.Guild {
		t.Errorf("guilds of the bot: got %+v, %v, want only %v", guilds, err, d.Guild)
	}
	guild, err := c.GetGuild(d.Guild, false)
	if err != nil || guild.Name != "Workshop" || len(guild.Roles) != 2 {
		t.Errorf("guild: got %+v, %v, want Workshop with 2 roles", guild, err)
	}
	channels, err := c.GetGuildChannels(d.Guild)
	var ids []snowflake.ID
	for _, c := range channels {
		ids = append(ids, c.ID())
	}
	if err != nil || !slices.Equal(ids, []snowflake.ID{d.Channel, forum, voice, news}) {
		t.Errorf("channels: got %v, %v, want %v", ids, err, []snowflake.ID{d.Channel, forum, voice, news})
	}
	active, err := c.GetActiveGuildThreads(d.Guild)
	if err != nil || len(active.Threads) != 1 || active.Threads[0].ID() != thread || *active.Threads[0].ParentID() != d.Channel {
		t.Errorf("active threads: got %+v, %v, want only %v in channel %v", active, err, thread, d.Channel)
	}
	member, err := c.GetMember(d.Guild, d.Bot)
	if err != nil || len(member.RoleIDs) != 1 {
		t.Errorf("member: got %+v, %v, want the bot with 1 role", member, err)
	}
	if _, err = c.GetChannel(1); err == nil {
		t.Error("a channel that is not there was found")
	} else if number, status := code(t, err); number != 10003 || status != 404 {
		t.Errorf("GetChannel(1): got code %d with status %d, want 10003 with 404", number, status)
	}
}

func TestMessagesAreCreatedEditedAndDeleted(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	said := d.Say(d.Channel, d.Owner, "hello", discordtest.File{Name: "a b.txt", Type: "text/plain", Data: []byte("content")})
	create := discord.MessageCreate{
		Content: "answer", Nonce: "once", EnforceNonce: true, AllowedMentions: &discord.AllowedMentions{}, Flags: discord.MessageFlagSuppressEmbeds,
		MessageReference: &discord.MessageReference{MessageID: &said.ID},
	}
	first, err := c.CreateMessage(d.Channel, create)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.CreateMessage(d.Channel, create); err != nil || again.ID != first.ID {
		t.Errorf("second message with the same nonce: got %v, %v, want the first message %v", again, err, first.ID)
	}
	if first.ReferencedMessage == nil || first.ReferencedMessage.Content != "hello" || len(first.ReferencedMessage.Attachments) != 1 {
		t.Errorf("message that the reply refers to: got %+v, want hello with 1 file", first.ReferencedMessage)
	}
	if name := first.ReferencedMessage.Attachments[0].Filename; name != "a_b.txt" {
		t.Errorf("name of the file: got %s, want a_b.txt", name)
	}
	_, err = c.UpdateMessage(d.Channel, first.ID, discord.MessageUpdate{
		Content: new("changed"), Files: []*discord.File{file("x.txt", "x"), file("y.txt", "yy")}, AllowedMentions: &discord.AllowedMentions{},
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := d.Messages(d.Channel)
	if len(shown) != 2 || shown[1].Text != "changed" || !slices.Equal(shown[1].Edits, []string{"answer"}) || len(shown[1].Files) != 2 ||
		string(shown[1].Files[1].Data) != "yy" || shown[1].Reply != said.ID || shown[1].Mentions {
		t.Errorf("messages after the edit: got %+v, want a changed reply with 2 files and no mentions", shown)
	}
	// What is not named is taken away, and what is stays.
	kept := discord.AttachmentKeep{ID: shown[1].Files[1].ID}
	if _, err = c.UpdateMessage(d.Channel, first.ID, discord.MessageUpdate{Attachments: &[]discord.AttachmentUpdate{kept}}); err != nil {
		t.Fatal(err)
	}
	if files := d.Messages(d.Channel)[1].Files; len(files) != 1 || files[0].Name != "y.txt" {
		t.Errorf("files after keeping one: got %+v, want y.txt alone", files)
	}
	history, err := c.GetMessages(d.Channel, 0, 0, said.ID, 10)
	if err != nil || len(history) != 1 || history[0].ID != first.ID {
		t.Errorf("messages after the first: got %+v, %v, want only %v", history, err, first.ID)
	}
	if history, err = c.GetMessages(d.Channel, 0, first.ID, 0, 10); err != nil || len(history) != 1 || history[0].ID != said.ID {
		t.Errorf("messages before the second: got %+v, %v, want only %v", history, err, said.ID)
	}
	if err := c.DeleteMessage(d.Channel, first.ID); err != nil {
		t.Fatal(err)
	}
	if all := d.Everything(d.Channel); len(d.Messages(d.Channel)) != 1 || len(all) != 2 || !all[1].Deleted {
		t.Errorf("messages after the deletion: got %+v, want 1 shown and 2 in all, the second deleted", all)
	}
	if err := c.SendTyping(d.Channel); err != nil {
		t.Error(err)
	}
}

func TestThreadHasIDOfItsMessage(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	said := d.Say(d.Channel, d.Owner, "hello")
	thread, err := c.CreateThreadFromMessage(d.Channel, said.ID, discord.ThreadCreateFromMessage{Name: "hello"})
	if err != nil || thread.ID() != said.ID || *thread.ParentID() != d.Channel {
		t.Fatalf("thread: got %+v, %v, want id %v in channel %v", thread, err, said.ID, d.Channel)
	}
	if _, err = c.CreateThreadFromMessage(d.Channel, said.ID, discord.ThreadCreateFromMessage{Name: "again"}); err == nil {
		t.Error("a second thread began")
	} else if number, _ := code(t, err); number != 160004 {
		t.Errorf("second thread from one message: got code %d, want 160004", number)
	}
	if _, err = c.CreateMessage(thread.ID(), discord.MessageCreate{Content: "in it"}); err != nil {
		t.Fatal(err)
	}
	d.Archive(thread.ID(), false)
	in := d.Messages(thread.ID())
	if _, err = c.UpdateMessage(thread.ID(), in[len(in)-1].ID, discord.MessageUpdate{Content: new("late")}); err == nil {
		t.Error("a message of an archived thread was changed")
	} else if number, _ := code(t, err); number != 50083 {
		t.Errorf("edit in an archived thread: got code %d, want 50083", number)
	}
	if _, err = c.CreateMessage(thread.ID(), discord.MessageCreate{Content: "which opens it"}); err != nil {
		t.Error(err)
	}
	if _, err = c.UpdateMessage(thread.ID(), in[len(in)-1].ID, discord.MessageUpdate{Content: new("late")}); err != nil {
		t.Error(err)
	}
}

func TestAPIRefusesInvalidCalls(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	own, err := c.CreateMessage(d.Channel, discord.MessageCreate{Content: "own"})
	if err != nil {
		t.Fatal(err)
	}
	other := d.Say(d.Channel, d.Owner, "other")
	gone := d.Say(d.Channel, d.Owner, "gone")
	d.Delete(gone.ID)
	quiet, hidden := d.AddChannel(d.Guild, "quiet", "text"), d.AddChannel(d.Guild, "hidden", "text")
	d.Deny(quiet, discord.PermissionSendMessages)
	d.Deny(hidden, discord.PermissionViewChannel)
	bare := d.AddChannel(d.Guild, "bare", "text")
	d.Deny(bare, discord.PermissionAttachFiles)
	forum := d.AddChannel(d.Guild, "forum", "forum")
	d.UploadLimit(100)

	post := func(channel snowflake.ID, m discord.MessageCreate) error {
		_, err := c.CreateMessage(channel, m)
		return err
	}
	with := func(list ...discord.InteractiveComponent) discord.MessageCreate {
		return discord.MessageCreate{Content: "x", Components: []discord.LayoutComponent{discord.NewActionRow(list...)}}
	}
	button := func(label, id string) discord.ButtonComponent { return discord.NewPrimaryButton(label, id) }
	var eleven []*discord.File
	for range 11 {
		eleven = append(eleven, file("f.txt", "f"))
	}
	menu := func(n int) discord.StringSelectMenuComponent {
		m := discord.NewStringSelectMenu("menu", "choose")
		for i := range n {
			m = m.AddOptions(discord.NewStringSelectMenuOption("o", strings.Repeat("v", i+1)))
		}
		return m
	}
	for _, test := range []struct {
		name         string
		err          error
		code, status int
	}{
		{"too long", post(d.Channel, discord.MessageCreate{Content: strings.Repeat("a", 2001)}), 50035, 400},
		{"too long in units", post(d.Channel, discord.MessageCreate{Content: strings.Repeat("😀", 1001)}), 50035, 400},
		{"empty", post(d.Channel, discord.MessageCreate{}), 50006, 400},
		{"11 files", post(d.Channel, discord.MessageCreate{Files: eleven}), 30015, 400},
		{"too large", post(d.Channel, discord.MessageCreate{Files: []*discord.File{file("f", strings.Repeat("a", 101))}}), 40005, 413},
		{"a long nonce", post(d.Channel, discord.MessageCreate{Content: "x", Nonce: strings.Repeat("n", 26)}), 50035, 400},
		{"an answer to nothing", post(d.Channel, discord.MessageCreate{Content: "x", MessageReference: &discord.MessageReference{MessageID: &gone.ID}}), 50035, 400},
		{"not allowed to speak", post(quiet, discord.MessageCreate{Content: "x"}), 50013, 403},
		{"not allowed to see", post(hidden, discord.MessageCreate{Content: "x"}), 50001, 403},
		{"not allowed to send files", post(bare, discord.MessageCreate{Files: []*discord.File{file("f", "a")}}), 50013, 403},
		{"a forum", post(forum, discord.MessageCreate{Content: "x"}), 40058, 400},
		{"two controls of one id", post(d.Channel, with(button("a", "same"), button("b", "same"))), 50035, 400},
		{"a control without an id", post(d.Channel, with(button("a", ""))), 50035, 400},
		{"a long id", post(d.Channel, with(button("a", strings.Repeat("i", 101)))), 50035, 400},
		{"a long label", post(d.Channel, with(button(strings.Repeat("l", 81), "id"))), 50035, 400},
		{"six in a row", post(d.Channel, with(button("1", "1"), button("2", "2"), button("3", "3"), button("4", "4"), button("5", "5"), button("6", "6"))), 50035, 400},
		{"a link to a program", post(d.Channel, with(discord.NewLinkButton("x", "file:///bin/sh"))), 50035, 400},
		{"a menu of 26", post(d.Channel, with(menu(26))), 50035, 400},
		{"a menu of nothing", post(d.Channel, with(menu(0))), 50035, 400},
		{"a menu that wants more than it has", post(d.Channel, with(menu(2).WithMaxValues(3))), 50035, 400},
		{"another's message", func() error {
			_, err := c.UpdateMessage(d.Channel, other.ID, discord.MessageUpdate{Content: new("x")})
			return err
		}(), 50005, 403},
		{"made empty", func() error {
			_, err := c.UpdateMessage(d.Channel, own.ID, discord.MessageUpdate{Content: new("")})
			return err
		}(), 50006, 400},
		{"one that is gone", func() error {
			_, err := c.UpdateMessage(d.Channel, gone.ID, discord.MessageUpdate{Content: new("x")})
			return err
		}(), 10008, 404},
		{"another guild", func() error { _, err := c.GetGuild(1, false); return err }(), 50001, 403},
	} {
		if test.err == nil {
			t.Errorf("%s: got no error, want code %d with status %d", test.name, test.code, test.status)
			continue
		}
		if number, status := code(t, test.err); number != test.code || status != test.status {
			t.Errorf("%s: got code %d with status %d, want %d with %d", test.name, number, status, test.code, test.status)
		}
	}
	if n := len(d.Messages(d.Channel)); n != 2 {
		t.Errorf("messages after the refused calls: got %d, want 2", n)
	}
	for name, m := range map[string]discord.MessageCreate{
		"exactly so long": {Content: strings.Repeat("a", 2000)},
		"ten files":       {Files: eleven[:10]},
		"exactly so much": {Files: []*discord.File{file("f", strings.Repeat("a", 100))}},
		"a menu of 25":    with(menu(25)),
	} {
		if err := post(d.Channel, m); err != nil {
			t.Errorf("posting %s: got %v, want no error", name, err)
		}
	}
}

func TestAPINeedsTokenAndUserAgent(t *testing.T) {
	d := start(t, discordtest.Options{})
	get := func(token, agent string) int {
		req, _ := http.NewRequestWithContext(patient(t), http.MethodGet, d.API.URL+"/users/@me", http.NoBody)
		req.Header.Set("Authorization", token)
		req.Header.Set("User-Agent", agent)
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	good := "Bot " + d.Token
	for _, test := range []struct {
		token, agent string
		status       int
	}{{good, agent, 200}, {d.Token, agent, 401}, {"Bot wrong", agent, 401}, {good, "Go-http-client/1.1", 403}} {
		if status := get(test.token, test.agent); status != test.status {
			t.Errorf("call with token %q and User-Agent %q: got status %d, want %d", test.token, test.agent, status, test.status)
		}
	}
	d.Revoke()
	if status := get(good, agent); status != 401 {
		t.Errorf("call with a revoked token: got status %d, want 401", status)
	}
	d.Renew()
	if status := get(good, agent); status != 401 {
		t.Errorf("call with the old token after Renew: got status %d, want 401", status)
	}
	if status := get("Bot "+d.Token, agent); status != 200 {
		t.Errorf("call with the new token after Renew: got status %d, want 200", status)
	}
}

// answered is an answer of the API.
type answered struct {
	status int
	header http.Header
	body   string
}

// call makes a call without any library between.
func call(t *testing.T, d *discordtest.Discord, method, path, body string) answered {
	t.Helper()
	req, _ := http.NewRequestWithContext(patient(t), method, d.API.URL+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bot "+d.Token)
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{res.StatusCode, res.Header, string(data)}
}

func TestRateLimitsAppearInHeaders(t *testing.T) {
	d := start(t, discordtest.Options{})
	path := "/channels/" + d.Channel.String() + "/messages"
	d.Clock(-time.Hour)
	res := call(t, d, http.MethodPost, path, `{"content":"1"}`)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Reset-After", "X-RateLimit-Bucket", "Via"} {
		if res.header.Get(name) == "" {
			t.Errorf("header %s: got none in %v, want a value", name, res.header)
		}
	}
	if date, err := http.ParseTime(res.header.Get("Date")); err != nil || time.Since(date) < 59*time.Minute {
		t.Errorf("Date with the clock an hour back: got %v, %v, want an hour ago", date, err)
	}
	if made := d.Messages(d.Channel)[0].At; time.Since(made) < 59*time.Minute {
		t.Errorf("time of the message with the clock an hour back: got %v, want an hour ago", made)
	}
	d.API.RateLimit(discordtest.RouteCreate, 1, 1500*time.Millisecond, false)
	d.API.RateLimit("GET", 1, time.Second, true)
	res = call(t, d, http.MethodPost, path, `{"content":"2"}`)
	if res.status != 429 || res.header.Get("Retry-After") != "2" || !strings.Contains(res.body, `"retry_after":1.5`) || res.header.Get("X-RateLimit-Global") != "" {
		t.Errorf("call under RateLimit: got %d %v %s, want 429 with Retry-After 2 and retry_after 1.5", res.status, res.header, res.body)
	}
	if res = call(t, d, http.MethodGet, "/users/@me", ""); res.status != 429 || res.header.Get("X-RateLimit-Global") != "true" {
		t.Errorf("call under a global RateLimit: got %d %v %s, want 429 with X-RateLimit-Global", res.status, res.header, res.body)
	}
	if res = call(t, d, http.MethodPost, path, `{"content":"3"}`); res.status != 200 {
		t.Errorf("call after the rate limit: got status %d, want 200", res.status)
	}
	d.API.Limit(2, time.Hour)
	other := d.AddChannel(d.Guild, "other", "text")
	for i, want := range []int{200, 200, 429} {
		if res = call(t, d, http.MethodPost, "/channels/"+other.String()+"/messages", `{"content":"x"}`); res.status != want {
			t.Errorf("call %d under Limit(2): got status %d, want %d", i, res.status, want)
		}
	}
	d.API.LockOut(time.Hour)
	if res = call(t, d, http.MethodGet, "/users/@me", ""); res.status != 429 || res.header.Get("Via") != "" || strings.HasPrefix(res.body, "{") || res.header.Get("Retry-After") == "" {
		t.Errorf("call under LockOut: got %d %v %s, want 429 with Retry-After, no Via and no JSON", res.status, res.header, res.body)
	}
}

func TestCallsFailBeforeOrAfterTheirEffect(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	send := func(m discord.MessageCreate) int {
		if _, err := c.CreateMessage(d.Channel, m); err != nil {
			_, status := code(t, err)
			return status
		}
		return http.StatusOK
	}
	text := discord.MessageCreate{Content: "x", Nonce: "n", EnforceNonce: true}
	files := discord.MessageCreate{Files: []*discord.File{file("f", "a")}}
	d.API.FailUploads(1, 502)
	if status := send(text); status != 200 || len(d.Messages(d.Channel)) != 1 {
		t.Errorf("call without files under FailUploads: got status %d, want 200 and 1 message", status)
	}
	if status := send(files); status != 502 || len(d.Messages(d.Channel)) != 1 {
		t.Errorf("call with files under FailUploads: got status %d, want 502 and 1 message", status)
	}
	d.API.FailWrites(1, 500)
	if status := send(text); status != 500 {
		t.Errorf("call under FailWrites: got status %d, want 500", status)
	}
	text.Nonce = "m"
	d.API.LoseAnswers(discordtest.RouteCreate, 1, 502)
	if status := send(text); status != 502 || len(d.Messages(d.Channel)) != 2 {
		t.Errorf("call under LoseAnswers: got status %d and %d messages, want 502 and 2", status, len(d.Messages(d.Channel)))
	}
	if status := send(text); status != 200 || len(d.Messages(d.Channel)) != 2 {
		t.Errorf("same call after a lost answer: got status %d and %d messages, want 200 and 2", status, len(d.Messages(d.Channel)))
	}
	if calls := d.Calls(discordtest.RouteCreate); len(calls) != 5 || calls[1].Status != 502 || calls[1].Files != 1 || !bytes.Contains(calls[4].Body, []byte(`"nonce":"m"`)) {
		t.Errorf("calls: got %+v, want 5, the second an upload with status 502 and the last with nonce m", calls)
	}
}

func TestHoldDelaysCalls(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	own, err := c.CreateMessage(d.Channel, discord.MessageCreate{Content: "own"})
	if err != nil {
		t.Fatal(err)
	}
	release := d.API.Hold("PATCH")
	changed := make(chan error, 1)
	go func() {
		_, err := c.UpdateMessage(d.Channel, own.ID, discord.MessageUpdate{Content: new("changed")})
		changed <- err
	}()
	if _, err := c.CreateMessage(d.Channel, discord.MessageCreate{Content: "another"}); err != nil {
		t.Fatal(err)
	}
	if d.Messages(d.Channel)[0].Text != "own" {
		t.Error("the call was not held")
	}
	release()
	if err := <-changed; err != nil || d.Messages(d.Channel)[0].Text != "changed" {
		t.Errorf("call after the release: got %v, want no error and the text changed", err)
	}
}

func TestWaitErrorListsMessages(t *testing.T) {
	d := start(t, discordtest.Options{})
	d.Say(d.Channel, d.Owner, "nobody listens")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := d.Wait(ctx, func(s discordtest.Seen) bool { return s.Says(d.Channel, "nobody listens") })
	if err == nil || !strings.Contains(err.Error(), "nobody listens") || !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: got %v, want context.Canceled and the text nobody listens", err)
	}
}

func TestGlobalCommandsAreStored(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	if _, err := d.Slash(d.Channel, d.Owner, "status", nil); err == nil {
		t.Error("a command that is not there was given")
	}
	list := []discord.ApplicationCommandCreate{
		discord.SlashCommandCreate{Name: "new", Description: "Begins", Options: []discord.ApplicationCommandOption{
			discord.ApplicationCommandOptionString{Name: "agent", Description: "Which", Required: true},
		}},
		discord.SlashCommandCreate{Name: "status", Description: "How it is"},
	}
	made, err := c.SetGlobalCommands(d.Application, list)
	if err != nil || len(made) != 2 || made[0].Name() != "new" {
		t.Fatalf("SetGlobalCommands: got %+v, %v, want 2 commands, new first", made, err)
	}
	if _, err := d.Slash(d.Channel, d.Owner, "new", nil); err == nil {
		t.Error("a command was given without what it needs")
	}
	if _, err := c.SetGlobalCommands(d.Application, []discord.ApplicationCommandCreate{discord.SlashCommandCreate{Name: "Bad Name", Description: "x"}}); err == nil {
		t.Error("a bad name was taken")
	}
}
