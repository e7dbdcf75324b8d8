package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/feed"
	"deskhand/backend/testkit"
)

// seen waits until something is seen at Discord.
func (b *bot) seen(what string, is func(discordtest.Seen) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), testkit.Limit)
	defer cancel()
	if err := b.dc.Wait(ctx, is); err != nil {
		b.t.Fatalf("within a minute: got no %s, error %v, want it", what, err)
	}
}

// connects waits until there were so many hellos, and gives the last.
func (b *bot) connects(n int) discordtest.Connect {
	b.t.Helper()
	b.seen("connection", func(s discordtest.Seen) bool { return len(s.Connects()) >= n && s.Lines() > 0 })
	b.is(statusConnected, "")
	list := b.dc.Connects()
	return list[len(list)-1]
}

// is waits until the line is so.
func (b *bot) is(status, reason string) State {
	b.t.Helper()
	b.until("line that is "+status+" "+reason, func() bool { s := b.s.State(); return s.Status == status && s.Reason == reason })
	return b.s.State()
}

func TestLineIdentifiesAndRegistersCommands(t *testing.T) {
	b := openBot(t)
	hello := b.dc.Connects()[0]
	if hello.Resumed || hello.Browser != "Deskhand" || hello.Intents != int(intents) || hello.Refused != 0 {
		t.Errorf("identify: got %+v, want our browser and intents", hello)
	}
	want := len(commands())
	b.seen("commands", func(s discordtest.Seen) bool { return len(s.Commands(b.dc.Guild)) == want })
	b.until("name of the bot", func() bool { bot := b.s.State().Bot; return bot != nil && bot.Name != "" })
	s := b.s.State()
	if s.Bot.ID != b.dc.Bot.String() || !strings.Contains(s.Invite, "client_id="+b.dc.Application.String()) || b.s.client.self() != b.dc.Bot {
		t.Errorf("state: got %+v, want the bot and its invite", s)
	}
}

func TestStateIsPublished(t *testing.T) {
	b := openBot(t)
	q := feed.Query{Gen: b.Feed().Gen(), Types: []string{EventState}}
	told := map[string]bool{}
	b.dc.Down(false, true)
	b.dc.Gateway.Drop()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	for !told[statusReconnecting+refusedUnreachable] {
		batch, err := b.Feed().After(ctx, feed.Query{Gen: q.Gen, Types: q.Types, After: q.After, Wait: time.Second})
		if err != nil || ctx.Err() != nil {
			t.Fatalf("feed: got error %v after %v, want that the line reconnects", err, told)
		}
		for _, e := range batch.Events {
			var s State
			if err := json.Unmarshal(e.Data, &s); err != nil {
				t.Fatal(err)
			}
			told[s.Status+s.Reason] = true
		}
		q.After = batch.Seq
	}
}

// What is said while the line is down is heard by the resumed one.
func TestLineResumesSession(t *testing.T) {
	b := openBot(t)
	for n, end := range []func(){
		b.dc.Gateway.Drop,
		b.dc.Gateway.Reconnect,
		func() { b.dc.Gateway.InvalidSession(true) },
		func() { b.dc.Gateway.HangUp(discordtest.CloseUnknown) },
	} {
		end()
		b.dc.Say(b.dc.Channel, b.dc.Stranger, "is anybody there")
		if c := b.connects(n + 2); !c.Resumed || c.Path != "/resume" || c.Refused != 0 {
			t.Errorf("connection %d: got %+v, want a resume", n, c)
		}
		b.until("message of a stranger", func() bool { return b.s.State().Ignored.Strangers == int64(n+1) })
	}
}

func TestLineIdentifiesWithoutSession(t *testing.T) {
	b := openBot(t)
	for n, end := range []func(){
		func() { b.dc.Gateway.InvalidSession(false) },
		func() { b.dc.Gateway.HangUp(discordtest.CloseTimeout) },
		func() { b.dc.Gateway.HangUp(discordtest.CloseSequence) },
	} {
		end()
		if c := b.connects(n + 2); c.Resumed || c.Path == "/resume" {
			t.Errorf("connection %d: got %+v, want a new session", n, c)
		}
	}
	b.dc.Gateway.Forget()
	b.dc.Gateway.Drop()
	if c := b.connects(6); c.Resumed { // one is refused first
		t.Errorf("connection: got %+v, want a new session", c)
	}
}

// The machine at which to resume may be gone for good. The session is resumed elsewhere, or a new one is begun.
func TestUnansweredResumeAddressIsForgotten(t *testing.T) {
	dc := discordtest.New(discordtest.Options{RealHosts: true})
	b := openUnset(t, dc, t.TempDir(), &tokenVault{}, t.Output(), false)
	const closed = "ws://127.0.0.1:1"
	g := &link{l: b.s.client, token: dc.Token, fixed: dc.Gateway.URL, session: "a session", address: closed}
	g.seq.Store(7)
	if err := g.connect(t.Context()); err == nil {
		t.Fatal("somebody has answered")
	}
	if target, err := g.target(t.Context()); err != nil || target != dc.Gateway.URL || !g.resumable() || g.seq.Load() != 7 {
		t.Errorf("target: got %q, error %v, session %+v, want the general address for a resume", target, err, g.session)
	}
	g.fixed = closed
	for n := range mostMissed - 1 {
		if !g.resumable() {
			t.Errorf("session after %d dials: got it forgotten, want it kept", n)
		}
		if err := g.connect(t.Context()); err == nil {
			t.Fatal("somebody has answered")
		}
	}
	if g.resumable() || g.seq.Load() != 0 {
		t.Errorf("session: got %q, want it forgotten", g.session)
	}
}

func TestSilentLineIsReplaced(t *testing.T) {
	dc := discordtest.New(discordtest.Options{Heartbeat: 200 * time.Millisecond, Patience: time.Minute, RealHosts: true})
	b := openBotAt(t, dc, t.TempDir())
	dc.Gateway.Mute(true)
	b.seen("end of the line", func(s discordtest.Seen) bool { return s.Lines() == 0 })
	dc.Gateway.Mute(false)
	if c := b.connects(2); !c.Resumed {
		t.Errorf("connection: got %+v, want a resume", c)
	}
	dc.Gateway.Beat()
	before := -1
	b.seen("beats", func(s discordtest.Seen) bool { // from now on it beats
		if before < 0 {
			before = s.Beats()
		}
		return s.Beats() >= before+3
	})
}

func TestRevokedTokenEndsTheLine(t *testing.T) {
	b := openBot(t)
	b.seen("commands", func(s discordtest.Seen) bool { return len(s.Calls(discordtest.RouteCommands)) > 0 }) // the last call of a line that begins
	b.dc.Revoke()
	s := b.is(statusRefused, refusedToken)
	calls := len(b.dc.Calls(""))
	if _, err := b.s.client.rest.GetUser(b.dc.Owner, rest.WithCtx(t.Context())); refusalOf(err) == nil || refusalOf(err).Code != refusedOff {
		t.Errorf("call with a revoked token: got error %v, want %s", err, refusedOff)
	}
	if n := len(b.dc.Calls("")); n != calls {
		t.Errorf("calls with a revoked token: got %d, want none", n-calls)
	}
	b.dc.Renew()
	b.s.client.restart()
	if now := b.is(statusConnected, ""); !now.Since.After(s.Since.Time) {
		t.Errorf("since: got %v, want later than %v", now.Since, s.Since)
	}
}

// A 401 says the same as the gateway, and may come before it.
func TestRefusedCallEndsTheLine(t *testing.T) {
	b := openBot(t)
	b.dc.API.Fail(discordtest.RouteSelf, 1, http.StatusUnauthorized)
	if _, err := b.s.client.rest.GetUser(0, rest.WithCtx(t.Context())); err == nil {
		t.Error("nobody's name")
	}
	_ = b.s.client.rest.Do(rest.GetCurrentUser.Compile(nil), nil, nil, rest.WithCtx(t.Context()))
	b.is(statusRefused, refusedToken)
	b.seen("end of the line", func(s discordtest.Seen) bool { return s.Lines() == 0 })
}

func TestMissingIntentIsReportedAndMended(t *testing.T) {
	b := openBot(t)
	b.dc.AllowContent(false)
	b.is(statusRefused, refusedIntents)
	c := b.check()
	if got := c["intent.content"]; got.Status != checkMissing {
		t.Errorf("check of the intent: got %+v, want missing", got)
	}
	if got := c["reachable"]; got.Status != checkMissing || got.Params["reason"] != refusedIntents {
		t.Errorf("check of the line: got %+v, want missing for the intent", got)
	}
	b.is(statusRefused, refusedIntents)
	b.dc.AllowContent(true)
	if got := b.check()["intent.content"]; got.Status != checkOK {
		t.Errorf("check of the intent: got %+v, want ok", got)
	}
	b.is(statusConnected, "")
}

func TestLineWaitsForDiscord(t *testing.T) {
	b := openBot(t)
	b.dc.Down(true, true)
	b.dc.Gateway.Drop()
	s := b.is(statusReconnecting, refusedUnreachable)
	if s.Detail == "" {
		t.Errorf("state: got %+v, want a detail", s)
	}
	b.dc.Down(false, false)
	b.connects(2)
}

func TestLineWaitsForSessionStarts(t *testing.T) {
	dc := discordtest.New(discordtest.Options{RealHosts: true})
	dc.Gateway.StartsLeft(0)
	b := openBotWith(t, dc, t.TempDir(), func(set *setting) { set.Gateway = "" })
	s := b.is(statusReconnecting, refusedRate)
	if at, err := time.Parse(time.RFC3339, s.Detail); err != nil || time.Until(at) < time.Minute {
		t.Errorf("until: got %q, want more than a minute", s.Detail)
	}
	dc.Gateway.StartsLeft(5)
	b.s.client.restart()
	b.connects(1)
}

func TestCloseEndsEverythingAtOnce(t *testing.T) {
	for name, before := range map[string]func(*bot){
		"connected":    func(*bot) {},
		"reconnecting": func(b *bot) { b.dc.Down(true, true); b.dc.Gateway.Drop(); b.is(statusReconnecting, refusedUnreachable) },
		"refused":      func(b *bot) { b.dc.Revoke(); b.is(statusRefused, refusedToken) },
	} {
		t.Run(name, func(t *testing.T) {
			dc := discordtest.New(discordtest.Options{RealHosts: true})
			b := openUnset(t, dc, t.TempDir(), &tokenVault{}, t.Output(), false)
			b.s.client.unit = time.Hour // nothing that is waited for comes
			if _, code := b.setUp(Setup{Token: new(dc.Token), Enabled: new(true), REST: new(dc.API.URL), Gateway: new(dc.Gateway.URL)}); code != "" {
				t.Fatal(code)
			}
			b.s.Start()
			b.connects(1)
			before(b)
			b.close()
			b.seen("end of the line", func(s discordtest.Seen) bool { return s.Lines() == 0 })
		})
	}
}

func TestTokenIsNotWritten(t *testing.T) {
	var log lockedBuffer
	dc := discordtest.New(discordtest.Options{RealHosts: true})
	b := openUnset(t, dc, t.TempDir(), &tokenVault{}, &log, true)
	if _, code := b.setUp(Setup{Token: new(dc.Token), Enabled: new(true), REST: new(dc.API.URL), Gateway: new(dc.Gateway.URL)}); code != "" {
		t.Fatal(code)
	}
	b.connects(1)
	dc.API.Fail(discordtest.RouteCreate, 1, http.StatusBadRequest)
	_, err := b.s.client.rest.CreateMessage(dc.Channel, discord.MessageCreate{Content: "x"}, rest.WithCtx(t.Context()))
	if err == nil {
		t.Fatal("it was made")
	}
	answer, ok := errors.AsType[*rest.Error](err)
	if !ok || strings.Contains(answer.Request.Header.Get("Authorization"), dc.Token) || strings.Contains(err.Error(), dc.Token) {
		t.Errorf("error: got %v, want no token in it", err)
	}
	dc.Revoke()
	state, err := json.Marshal(b.is(statusRefused, refusedToken))
	if err != nil {
		t.Fatal(err)
	}
	batch, err := b.Feed().After(t.Context(), feed.Query{Gen: b.Feed().Gen(), Types: []string{EventState}})
	if err != nil {
		t.Fatal(err)
	}
	feed, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"log": log.String(), "state": string(state), "feed": string(feed)} {
		if strings.Contains(text, dc.Token) {
			t.Errorf("%s: got the token in it, want no token:\n%s", name, text)
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestRepeatableCallsAreRepeated(t *testing.T) {
	b := openBot(t)
	made := func(nonce string) (*discord.Message, error) {
		return b.s.client.rest.CreateMessage(b.dc.Channel, discord.MessageCreate{Content: "once", Nonce: nonce, EnforceNonce: true}, rest.WithCtx(t.Context()))
	}
	b.dc.API.LoseAnswers(discordtest.RouteCreate, 2, http.StatusBadGateway)
	m, err := made("a")
	if err != nil {
		t.Fatal(err)
	}
	if list := b.dc.Messages(b.dc.Channel); len(list) != 1 || list[0].ID != m.ID {
		t.Errorf("messages: got %d, want 1", len(list))
	}
	b.dc.API.Fail(discordtest.RouteEdit, attempts-1, http.StatusServiceUnavailable)
	content := "twice"
	if _, err := b.s.client.rest.UpdateMessage(b.dc.Channel, m.ID, discord.MessageUpdate{Content: &content}, rest.WithCtx(t.Context())); err != nil {
		t.Error(err)
	}
	b.dc.API.Fail(discordtest.RouteCreate, attempts, http.StatusInternalServerError)
	if _, err := made("b"); refusalOf(err) == nil || refusalOf(err).Code != refusedUnreachable {
		t.Errorf("failing call: got error %v, want %s", err, refusedUnreachable)
	}
	if n := len(b.dc.Calls(discordtest.RouteCreate)); n != 3+attempts {
		t.Errorf("calls: got %d, want %d", n, 3+attempts)
	}
}

func TestOtherCallsAreMadeOnce(t *testing.T) {
	b := openBot(t)
	m := b.dc.Say(b.dc.Channel, b.dc.Owner, "thread")
	b.dc.API.Fail(discordtest.RouteThread, 1, http.StatusBadGateway)
	if _, err := b.s.client.rest.CreateThreadFromMessage(b.dc.Channel, m.ID, discord.ThreadCreateFromMessage{Name: "x"}, rest.WithCtx(t.Context())); err == nil {
		t.Error("a thread was asked for twice")
	}
	if n := len(b.dc.Calls(discordtest.RouteThread)); n != 1 {
		t.Errorf("calls: got %d, want 1", n)
	}
}

func TestRateLimitsAreHonoured(t *testing.T) {
	b := openBot(t)
	b.dc.API.Limit(2, 300*time.Millisecond)
	b.dc.API.RateLimit(discordtest.RouteCreate, 2, 50*time.Millisecond, false)
	for range 5 {
		if _, err := b.s.client.rest.CreateMessage(b.dc.Channel, discord.MessageCreate{Content: "x"}, rest.WithCtx(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for _, c := range b.dc.Calls(discordtest.RouteCreate) {
		if c.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("refused calls besides the storm: got %d, want none", refused-2)
	}
	b.dc.API.LockOut(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	for range 2 { // the first is told, the second knows
		_, err := b.s.client.rest.GetUser(b.dc.Owner, rest.WithCtx(ctx))
		if r := refusalOf(err); r == nil || r.Code != refusedRate || r.Params["until"] == "" {
			t.Errorf("limited call: got error %v, want %s with a time", err, refusedRate)
		}
	}
}

// The API redirects nobody: who does so is not Discord, and must not get the token.
func TestCallsAreNotRedirected(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("redirected call: got %s with %q, want none", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	var asked string
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization") + " " + r.URL.Path
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer liar.Close()
	b := openBot(t)
	ctx := with(t.Context(), access{token: "abc", rest: liar.URL + "/api", trial: true})
	if _, err := b.s.client.rest.GetUser(b.dc.Owner, rest.WithCtx(ctx)); err == nil {
		t.Error("it was answered")
	}
	if want := "Bot abc /api/users/" + b.dc.Owner.String(); asked != want {
		t.Errorf("%q, want %q", asked, want)
	}
	if b.s.client.condition().status != statusConnected {
		t.Error("what is tried out ended the line")
	}
}

func TestGatewayMustBeDiscords(t *testing.T) {
	own := &link{l: &client{}}
	far := &link{l: &client{use: access{rest: "https://proxy.example/api"}}}
	for address, want := range map[string][2]bool{
		"wss://gateway.discord.gg":             {true, true},
		"wss://gateway-us-east1-b.discord.gg/": {true, true},
		"wss://gateway.discord.gg.example":     {false, true},
		"wss://evil-discord.gg":                {false, true},
		"ws://gateway.discord.gg":              {false, false},
		"wss://u:p@gateway.discord.gg":         {false, false},
		"wss://gateway.discord.gg?x=1":         {false, false},
		"ws://127.0.0.1:1/resume":              {false, true},
		"ws://localhost:1":                     {false, true},
		"ws://10.0.0.1:1":                      {false, false},
		"https://gateway.discord.gg":           {false, false},
		"":                                     {false, false},
	} {
		_, a := own.trusted(address)
		_, b := far.trusted(address)
		if a != want[0] || b != want[1] {
			t.Errorf("trusted(%s): got %v and %v, want %v", address, a, b, want)
		}
	}
}

func TestClockFollowsDiscord(t *testing.T) {
	dc := discordtest.New(discordtest.Options{RealHosts: true})
	dc.Clock(2 * time.Hour)
	b := openBotAt(t, dc, t.TempDir())
	b.until("other clock", func() bool { return time.Until(b.s.client.now()) > time.Hour })
	b.check()
	if got := time.Until(b.s.client.now()); got < 119*time.Minute || got > 121*time.Minute {
		t.Errorf("Discord's clock: got %v ahead, want 2h", got)
	}
}

func TestSecondProgramWithTokenIsNoticed(t *testing.T) {
	b := openBot(t)
	b.seen("commands", func(s discordtest.Seen) bool { return len(s.Commands(b.dc.Guild)) == 4 }) // made known behind the connection
	i, err := b.dc.Slash(b.dc.Channel, b.dc.Stranger, "status", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.seen("answer", func(s discordtest.Seen) bool { _, ok := s.Answer(i); return ok })
	// The other program is us: an answer after ours.
	err = b.s.client.rest.CreateInteractionResponse(i.ID, i.Token, discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredUpdateMessage}, rest.WithCtx(t.Context()))
	if !rest.IsJSONErrorCode(err, rest.JSONErrorCodeInteractionAlreadyAcknowledged) {
		t.Fatal(err)
	}
	b.is(statusConnected, refusedElsewhere)
}

// A call that Discord does not answer ends, and is made again where that does no harm.
func TestCallsDoNotWaitForEver(t *testing.T) {
	dc := discordtest.New(discordtest.Options{RealHosts: true})
	b := openUnset(t, dc, t.TempDir(), &tokenVault{}, t.Output(), false)
	b.s.client.wire.limit = 200 * time.Millisecond
	release := dc.API.Hold(discordtest.RouteCreate)
	defer release()
	ctx := with(t.Context(), access{token: dc.Token, rest: dc.API.URL, trial: true})
	_, err := b.s.client.rest.CreateMessage(dc.Channel, discord.MessageCreate{Content: "x"}, rest.WithCtx(ctx))
	if r := refusalOf(err); r == nil || r.Code != refusedUnreachable {
		t.Errorf("slow call: got error %v, want %s", err, refusedUnreachable)
	}
}

func TestBackoffGrowsToAMinute(t *testing.T) {
	l := &client{unit: time.Second}
	if l.backoff(0) != 0 {
		t.Error("the first drop is waited for")
	}
	for failures, longest := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute} {
		for range 50 {
			if d := l.backoff(failures); d < longest/2 || d >= longest {
				t.Errorf("backoff after %d failures: got %v, want %v to %v", failures, d, longest/2, longest)
			}
		}
	}
}
