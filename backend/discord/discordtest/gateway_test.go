package discordtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"
	"github.com/gorilla/websocket"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/testkit"
)

const intents = gateway.IntentGuilds | gateway.IntentGuildMessages | gateway.IntentMessageContent

// frame is what is said at the gateway.
type frame struct {
	Op   int             `json:"op"`
	Seq  int             `json:"s"`
	Type string          `json:"t"`
	Data json.RawMessage `json:"d"`
}

func (f frame) String() string { return fmt.Sprintf("%d %d %s %s", f.Op, f.Seq, f.Type, f.Data) }

// peer is a client at the gateway that says what a test wants.
type peer struct {
	t      *testing.T
	socket *websocket.Conn
}

func dial(t *testing.T, where string) *peer {
	t.Helper()
	socket, res, err := websocket.DefaultDialer.DialContext(patient(t), where+"?v=10&encoding=json", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	t.Cleanup(func() { _ = socket.Close() })
	_ = socket.SetReadDeadline(time.Now().Add(testkit.Limit))
	return &peer{t, socket}
}

func (p *peer) say(op int, data any) {
	p.t.Helper()
	if err := p.socket.WriteJSON(map[string]any{"op": op, "d": data}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) hear() frame {
	p.t.Helper()
	var f frame
	if err := p.socket.ReadJSON(&f); err != nil {
		p.t.Fatal(err)
	}
	return f
}

// until hears until an event of a type, and gives it.
func (p *peer) until(kind string) frame {
	p.t.Helper()
	for {
		if f := p.hear(); f.Type == kind {
			return f
		}
	}
}

// closed hears until the line is closed, and tells with what; 0 = without a word.
func (p *peer) closed() int {
	p.t.Helper()
	for {
		var f frame
		err := p.socket.ReadJSON(&f)
		if e, ok := errors.AsType[*websocket.CloseError](err); ok && e.Code != websocket.CloseAbnormalClosure {
			return e.Code
		}
		if err != nil {
			return 0
		}
	}
}

func identity(token string, intents any) map[string]any {
	return map[string]any{"token": token, "intents": intents, "properties": map[string]string{"os": "linux", "browser": "deskhand", "device": "deskhand"}}
}

// identified is a client that has been let in, and what its session is called.
func identified(t *testing.T, d *discordtest.Discord) (p *peer, session string) {
	t.Helper()
	p = dial(t, d.Gateway.URL)
	if hello := p.hear(); hello.Op != 10 {
		t.Fatalf("first frame: got %+v, want op 10 (hello)", hello)
	}
	p.say(2, identity(d.Token, intents))
	var ready struct {
		Session string `json:"session_id"`
		Resume  string `json:"resume_gateway_url"`
	}
	if err := json.Unmarshal(p.until("READY").Data, &ready); err != nil || ready.Session == "" || !strings.HasPrefix(ready.Resume, "ws://") {
		t.Fatalf("READY: got %+v, %v, want a session and a ws:// address for resuming", ready, err)
	}
	if created := p.until("GUILD_CREATE"); created.Seq != 2 {
		t.Fatalf("sequence number of GUILD_CREATE: got %d, want 2", created.Seq)
	}
	return p, ready.Session
}

func text(t *testing.T, f frame) string {
	t.Helper()
	var m discord.Message
	if err := json.Unmarshal(f.Data, &m); err != nil {
		t.Fatal(err)
	}
	return m.Content
}

func TestGatewayClosesWithCodeOfRefusal(t *testing.T) {
	d := start(t, discordtest.Options{NoContent: true})
	token := d.Token
	for _, test := range []struct {
		name string
		op   int
		data any
		code int
	}{
		{"a wrong token", 2, identity("wrong", 1), discordtest.CloseToken},
		{"an intent that is off", 2, identity(token, intents), discordtest.CloseNotAllowed},
		{"the intent for members", 2, identity(token, 1<<1), discordtest.CloseNotAllowed},
		{"no intent at all", 2, map[string]any{"token": token}, discordtest.CloseDecode},
		{"an intent that there is not", 2, identity(token, 1<<29), discordtest.CloseIntents},
		{"what only those inside may", 3, map[string]any{}, discordtest.CloseAnonymous},
		{"nonsense", 99, nil, discordtest.CloseOpcode},
		{"too much", 2, identity(strings.Repeat("x", 5000), 1), discordtest.CloseDecode},
		{"a resume with a wrong token", 6, map[string]any{"token": "x", "session_id": "y", "seq": 1}, discordtest.CloseToken},
	} {
		p := dial(t, d.Gateway.URL)
		p.say(test.op, test.data)
		if code := p.closed(); code != test.code {
			t.Errorf("close code for %s: got %d, want %d", test.name, code, test.code)
		}
	}
	socket, res, err := websocket.DefaultDialer.DialContext(patient(t), d.Gateway.URL+"?v=9&encoding=json", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if code := (&peer{t, socket}).closed(); code != discordtest.CloseVersion {
		t.Errorf("close code for an old API version: got %d, want %d", code, discordtest.CloseVersion)
	}
	d.AllowContent(true)
	p, _ := identified(t, d)
	p.say(2, identity(token, 1))
	if code := p.closed(); code != discordtest.CloseTwice {
		t.Errorf("close code after a second identify: got %d, want %d", code, discordtest.CloseTwice)
	}
}

func TestGatewaySendsAndReplaysEvents(t *testing.T) {
	d := start(t, discordtest.Options{})
	p, session := identified(t, d)
	first := d.Say(d.Channel, d.Owner, "one")
	if f := p.until("MESSAGE_CREATE"); text(t, f) != "one" || f.Seq != 3 {
		t.Errorf("event after Say(one): got %+v, want the text one with sequence number 3", f)
	}
	d.Edit(first.ID, "uno")
	if f := p.until("MESSAGE_UPDATE"); text(t, f) != "uno" {
		t.Errorf("event after Edit(uno): got %s, want the text uno", f.Data)
	}
	d.Gateway.Drop()
	if code := p.closed(); code != 0 {
		t.Errorf("close code after Drop: got %d, want 0 (no close frame)", code)
	}
	d.Delete(first.ID)
	d.Say(d.Channel, d.Owner, "two")

	resume := func(seq int) *peer {
		p := dial(t, d.Gateway.URL+"/resume")
		p.hear()
		p.say(6, map[string]any{"token": d.Token, "session_id": session, "seq": seq})
		return p
	}
	p = resume(4)
	if f := p.hear(); f.Type != "MESSAGE_DELETE" || f.Seq != 5 {
		t.Errorf("first event after resuming at 4: got %+v, want MESSAGE_DELETE with sequence number 5", f)
	}
	if f := p.hear(); f.Seq != 6 || text(t, f) != "two" {
		t.Errorf("second event after resuming at 4: got %+v, want the text two with sequence number 6", f)
	}
	if f := p.hear(); f.Type != "RESUMED" {
		t.Errorf("third event after resuming at 4: got %+v, want RESUMED", f)
	}
	// What was sent and not heard comes again.
	p = resume(5)
	if f := p.hear(); f.Seq != 6 {
		t.Errorf("first event after resuming at 5: got %+v, want sequence number 6", f)
	}
	connects := d.Connects()
	if last := connects[len(connects)-1]; !last.Resumed || last.Seq != 5 || last.Path != "/resume" || last.Refused != 0 {
		t.Errorf("connects: got %+v, want the last resumed at 5 by /resume and not refused", connects)
	}
	// A number that was not told yet is nobody's.
	if p = resume(50); p.closed() != discordtest.CloseSequence {
		t.Error("a number of the future was taken")
	}
	if p = resume(5); p.hear().Op != 9 {
		t.Error("a session that was over was resumed")
	}
}

func TestNormalCloseEndsSession(t *testing.T) {
	d := start(t, discordtest.Options{})
	p, session := identified(t, d)
	_ = p.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	if err := d.Wait(patient(t), func(s discordtest.Seen) bool { return s.Lines() == 0 }); err != nil {
		t.Fatal(err)
	}
	p = dial(t, d.Gateway.URL)
	p.hear()
	p.say(6, map[string]any{"token": d.Token, "session_id": session, "seq": 2})
	if f := p.hear(); f.Op != 9 || string(f.Data) != "false" {
		t.Errorf("resuming a session that was closed normally: got %+v, want op 9 with false", f)
	}
	p.say(2, identity(d.Token, intents))
	p.until("READY")
}

func TestGatewayDropsClientWithoutHeartbeats(t *testing.T) {
	d := start(t, discordtest.Options{Heartbeat: 3 * time.Second}) // which a busy machine keeps, too
	p, _ := identified(t, d)
	for range 5 {
		p.say(1, 2)
		if f := p.hear(); f.Op != 11 {
			t.Fatalf("answer to a heartbeat: got %+v, want op 11", f)
		}
	}
	if code := p.closed(); code != discordtest.CloseTimeout {
		t.Errorf("close code without heartbeats: got %d, want %d", code, discordtest.CloseTimeout)
	}
}

func TestGatewayFaultsReachClient(t *testing.T) {
	d := start(t, discordtest.Options{})
	p, session := identified(t, d)
	d.Gateway.Beat()
	if f := p.hear(); f.Op != 1 {
		t.Errorf("frame after Beat: got %+v, want op 1", f)
	}
	d.Gateway.Reconnect()
	if f := p.hear(); f.Op != 7 {
		t.Errorf("frame after Reconnect: got %+v, want op 7", f)
	}
	d.Gateway.InvalidSession(true)
	if f := p.hear(); f.Op != 9 || string(f.Data) != "true" {
		t.Errorf("frame after InvalidSession(true): got %+v, want op 9 with true", f)
	}
	d.Gateway.Mute(true)
	d.Say(d.Channel, d.Owner, "waits")
	d.Gateway.Beat()
	d.Gateway.Mute(false)
	if a, b := p.hear(), p.hear(); a.Op != 1 || b.Type != "MESSAGE_CREATE" {
		t.Errorf("frames after Mute(false): got %v and %v, want op 1 and MESSAGE_CREATE", a, b)
	}
	d.Gateway.InvalidSession(false)
	if f := p.hear(); f.Op != 9 || string(f.Data) != "false" {
		t.Errorf("frame after InvalidSession(false): got %+v, want op 9 with false", f)
	}
	p.say(6, map[string]any{"token": d.Token, "session_id": session, "seq": 2})
	if f := p.hear(); f.Op != 9 {
		t.Errorf("resuming a session that was invalidated: got %+v, want op 9", f)
	}
	p.say(2, identity(d.Token, intents))
	p.until("GUILD_CREATE")
	d.Gateway.DropAfter(1)
	d.Say(d.Channel, d.Owner, "heard")
	d.Say(d.Channel, d.Owner, "lost")
	if f := p.hear(); text(t, f) != "heard" {
		t.Errorf("event after DropAfter(1): got %+v, want the text heard", f)
	}
	if code := p.closed(); code != 0 {
		t.Errorf("close code at the second event after DropAfter(1): got %d, want 0 (no close frame)", code)
	}
	p, _ = identified(t, d)
	d.Gateway.HangUp(discordtest.CloseUnknown)
	if code := p.closed(); code != discordtest.CloseUnknown {
		t.Errorf("close code after HangUp: got %d, want %d", code, discordtest.CloseUnknown)
	}
	p, _ = identified(t, d)
	d.Revoke()
	if code := p.closed(); code != discordtest.CloseToken {
		t.Errorf("close code after Revoke: got %d, want %d", code, discordtest.CloseToken)
	}
}

func TestEventsWithoutIntentHaveNoContent(t *testing.T) {
	d := start(t, discordtest.Options{})
	hidden := d.AddChannel(d.Guild, "hidden", "text")
	d.Deny(hidden, discord.PermissionViewChannel)
	p := dial(t, d.Gateway.URL)
	p.hear()
	p.say(2, identity(d.Token, gateway.IntentGuilds|gateway.IntentGuildMessages))
	p.until("GUILD_CREATE")
	d.Say(d.Channel, d.Owner, "secret", discordtest.File{Name: "a.txt", Data: []byte("a")})
	f := p.until("MESSAGE_CREATE")
	if strings.Contains(string(f.Data), "secret") || strings.Contains(string(f.Data), "a.txt") {
		t.Errorf("event for a bot without the intent for content: got %s, want neither text nor file", f.Data)
	}
	mention := "<@" + d.Bot.String() + "> hear"
	d.Say(d.Channel, d.Owner, mention)
	if got := text(t, p.until("MESSAGE_CREATE")); got != mention {
		t.Errorf("text of a message that mentions the bot: got %q, want %q", got, mention)
	}
	d.Say(hidden, d.Owner, "not seen")
	direct := d.Direct(d.Stranger)
	d.Say(direct, d.Stranger, "not asked for")
	d.Say(d.Channel, d.Owner, "last")
	var m discord.Message
	if err := json.Unmarshal(p.until("MESSAGE_CREATE").Data, &m); err != nil || m.ChannelID != d.Channel {
		t.Errorf("next event without the intent for direct messages: got %+v, %v, want a message in channel %v", m, err, d.Channel)
	}
}

// heard is the next event, as disgo reads it.
func (p *peer) heard() gateway.EventData {
	p.t.Helper()
	_, data, err := p.socket.ReadMessage()
	if err != nil {
		p.t.Fatal(err)
	}
	var m gateway.Message
	if err := json.Unmarshal(data, &m); err != nil {
		p.t.Fatal(err)
	}
	event, ok := m.D.(gateway.EventData)
	if !ok {
		p.t.Fatalf("frame: got %s, want an event that disgo decodes", data)
	}
	return event
}

func TestDisgoDecodesEveryEvent(t *testing.T) {
	d := start(t, discordtest.Options{})
	c := client(t, d)
	p := dial(t, d.Gateway.URL)
	p.hear()
	p.say(2, identity(d.Token, intents|gateway.IntentDirectMessages))
	next := p.heard
	ready, ok := next().(gateway.EventReady)
	if !ok || ready.User.ID != d.Bot || ready.Application.ID != d.Application {
		t.Fatalf("READY: got %+v, want the bot %v and the application %v", ready, d.Bot, d.Application)
	}
	if made, ok := next().(gateway.EventGuildCreate); !ok || made.ID != d.Guild || len(made.Channels) != 1 || len(made.Roles) != 2 || len(made.Members) != 1 {
		t.Errorf("GUILD_CREATE: got %+v, want 1 channel, 2 roles and 1 member", made)
	}
	said := d.Say(d.Channel, d.Owner, "hello", discordtest.File{Name: "a.txt", Type: "text/plain", Data: []byte("abc")})
	if m, ok := next().(gateway.EventMessageCreate); !ok || m.Author.ID != d.Owner || m.Content != "hello" || m.Attachments[0].Size != 3 || *m.GuildID != d.Guild || m.Member == nil {
		t.Errorf("MESSAGE_CREATE: got %+v, want hello with a file of 3 bytes", m)
	}
	thread := d.Thread(d.Channel, d.Owner, "a thread", said.ID)
	if made, ok := next().(gateway.EventThreadCreate); !ok || made.ID() != thread || !made.NewlyCreated || *made.ParentID() != d.Channel {
		t.Errorf("THREAD_CREATE: got %+v, want the new thread %v", made, thread)
	}
	if m, ok := next().(gateway.EventMessageUpdate); !ok || m.ID != said.ID || m.Thread == nil {
		t.Errorf("MESSAGE_UPDATE: got %+v, want message %v with its thread", m, said.ID)
	}
	if m, ok := next().(gateway.EventMessageCreate); !ok || m.Type != discord.MessageTypeThreadStarterMessage || m.ReferencedMessage == nil {
		t.Errorf("first message of the thread: got %+v, want a thread starter with its reference", m)
	}
	d.Reply(said.ID, d.Owner, "answer")
	if m, ok := next().(gateway.EventMessageCreate); !ok || m.Type != discord.MessageTypeReply || *m.MessageReference.MessageID != said.ID {
		t.Errorf("reply: got %+v, want a reply to %v", m, said.ID)
	}
	d.SayWebhook(d.Channel, "hook", "x")
	if m, ok := next().(gateway.EventMessageCreate); !ok || m.WebhookID == nil {
		t.Errorf("message of a webhook: got %+v, want a webhook id", m)
	}
	d.Say(d.Direct(d.Owner), d.Owner, "direct")
	if m, ok := next().(gateway.EventMessageCreate); !ok || m.GuildID != nil || m.Content != "direct" {
		t.Errorf("direct message: got %+v, want the text direct and no guild", m)
	}
	other := d.AddChannel(d.Guild, "other", "text")
	if made, ok := next().(gateway.EventChannelCreate); !ok || made.ID() != other {
		t.Errorf("CHANNEL_CREATE: got %+v, want channel %v", made, other)
	}
	d.DeleteBulk(d.Channel, said.ID)
	if gone, ok := next().(gateway.EventMessageDeleteBulk); !ok || !slices.Equal(gone.IDs, []snowflake.ID{said.ID}) {
		t.Errorf("MESSAGE_DELETE_BULK: got %+v, want message %v", gone, said.ID)
	}
	d.RemoveChannel(other)
	if gone, ok := next().(gateway.EventChannelDelete); !ok || gone.ID() != other {
		t.Errorf("CHANNEL_DELETE: got %+v, want channel %v", gone, other)
	}
	d.RemoveChannel(thread)
	if gone, ok := next().(gateway.EventThreadDelete); !ok || gone.ID != thread {
		t.Errorf("THREAD_DELETE: got %+v, want thread %v", gone, thread)
	}
	controls := discord.MessageCreate{Content: "x", Components: []discord.LayoutComponent{
		discord.NewActionRow(discord.NewPrimaryButton("Yes", "yes"), discord.NewLinkButton("See", "https://example.invalid/")),
		discord.NewActionRow(discord.NewStringSelectMenu("menu", "Which", discord.NewStringSelectMenuOption("A", "a"), discord.NewStringSelectMenuOption("B", "b")).WithMaxValues(2)),
	}}
	own, err := c.CreateMessage(d.Channel, controls)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := next().(gateway.EventMessageCreate); !ok || m.Author.ID != d.Bot || len(m.Components) != 2 {
		t.Errorf("message of the bot: got %+v, want 2 rows of components", m)
	}
	if _, err := d.Press(own.ID, d.Owner, "yes"); err != nil {
		t.Fatal(err)
	}
	pressed, ok := next().(gateway.EventInteractionCreate)
	press, isPress := pressed.Interaction.(discord.ComponentInteraction)
	if !ok || !isPress || press.Data.CustomID() != "yes" || press.User().ID != d.Owner || press.Message.ID != own.ID || press.Channel().ID() != d.Channel {
		t.Errorf("press: got %+v, want the button yes pressed by the owner", pressed)
	}
	if _, err := d.Press(own.ID, d.Owner, "menu", "a", "b"); err != nil {
		t.Fatal(err)
	}
	pressed, _ = next().(gateway.EventInteractionCreate)
	if press, isPress = pressed.Interaction.(discord.ComponentInteraction); !isPress || !slices.Equal(press.StringSelectMenuInteractionData().Values, []string{"a", "b"}) {
		t.Errorf("choice in a menu: got %+v, want the values a and b", pressed)
	}
	d.RemoveGuild(d.Guild)
	if gone, ok := next().(gateway.EventGuildDelete); !ok || gone.ID != d.Guild {
		t.Errorf("GUILD_DELETE: got %+v, want guild %v", gone, d.Guild)
	}
}
