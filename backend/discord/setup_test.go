package discord

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/discord/discordtest"
	"deskhand/backend/session"
)

// tokenVault keeps a token in memory.
type tokenVault struct {
	mu     sync.Mutex
	token  string
	locked bool // it cannot be read
}

func (v *tokenVault) of() Vault {
	return Vault{
		Keep: func(_ context.Context, token string) (string, error) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.token = token
			return "keyring", nil
		},
		Value: func(context.Context) (string, error) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.locked {
				return "", errors.New("it is locked")
			}
			return v.token, nil
		},
		Forget: func(context.Context) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.token = ""
			return nil
		},
	}
}

func (v *tokenVault) lock(locked bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.locked = locked
}

// openUnset is a surface that nothing of is set up, in a program that stays if started.
func openUnset(t *testing.T, dc *discordtest.Discord, dir string, v *tokenVault, log io.Writer, started bool) *bot {
	t.Helper()
	t.Cleanup(dc.Close)
	b := &bot{fixture: openFixture(t, dir), dc: dc}
	var err error
	b.s, err = New(t.Context(), Config{Sessions: b.Client, Agents: b.roster, Store: b.db, Version: "test", Token: v.of(), Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	shut, closed := b.close, false
	b.close = func() {
		if closed {
			return
		}
		closed = true
		if err := b.s.Close(); err != nil {
			t.Error(err)
		}
		shut()
	}
	t.Cleanup(b.close)
	b.s.in.outside = dc.CDN.Client
	b.s.client.unit = 10 * time.Millisecond
	b.s.requests.ack = time.Minute
	if started {
		b.s.Start()
	}
	return b
}

// setUp changes the setup and gives the code of what it was refused for.
func (b *bot) setUp(wish Setup) (State, string) {
	b.t.Helper()
	s, err := b.s.SetUp(b.t.Context(), wish)
	return s, codeOf(b.t, err)
}

func codeOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	refused, ok := errors.AsType[*session.RefusedError](err)
	if !ok {
		t.Fatalf("error: got %v, want one with a code", err)
	}
	return refused.Code
}

func (b *bot) check() map[string]Check {
	b.t.Helper()
	c, err := b.s.Check(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]Check{}
	for _, item := range c.Items {
		out[item.ID] = item
	}
	return out
}

// bindSession binds the channel to a new conversation.
func (b *bot) bindSession() {
	b.t.Helper()
	if _, err := b.s.Bind(b.t.Context(), b.dc.Channel.String(), Bind{Session: b.create().ID}); err != nil {
		b.t.Fatal(err)
	}
}

func TestSetUpKeepsSetup(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	dir := t.TempDir()
	b := openUnset(t, dc, dir, v, t.Output(), true)
	if s := b.s.State(); s.Enabled || s.Status != statusOff || s.HasToken || s.Users == nil || s.Bindings == nil {
		t.Fatalf("state: got %+v, want nothing set up", s)
	}
	restURL, gateway := dc.API.URL, dc.Gateway.URL
	users := []string{dc.Owner.String()}
	good := Setup{Token: new(dc.Token), Users: &users, Enabled: new(true), REST: &restURL, Gateway: &gateway}
	s, code := b.setUp(good)
	if code != "" || !s.HasToken || s.TokenIn != "keyring" || s.Bot == nil || s.Bot.ID != dc.Bot.String() || s.Bot.Name == "" || len(s.Users) != 1 || s.Users[0].Name == "" {
		t.Fatalf("SetUp: got code %q, %+v, want the bot and the user", code, s)
	}
	b.connects(1)

	// Who is heard changes without another connection.
	more := []string{dc.Owner.String(), dc.Stranger.String(), dc.Stranger.String()}
	if s, code = b.setUp(Setup{Users: &more}); code != "" || len(s.Users) != 2 || s.Users[1].Name == "" || !b.s.allowed(dc.Stranger) {
		t.Errorf("SetUp of users: got code %q, %+v, want 2 users", code, s)
	}
	if n := len(dc.Connects()); n != 1 {
		t.Errorf("connections: got %d, want 1", n)
	}
	if _, code = b.setUp(Setup{Enabled: new(false)}); code != "" {
		t.Error(code)
	}
	b.is(statusOff, "")
	b.seen("end of the line", func(s discordtest.Seen) bool { return s.Lines() == 0 })

	// It is there after a restart, and off.
	b.close()
	b = openUnset(t, dc, dir, v, t.Output(), true)
	if s := b.s.State(); s.Enabled || !s.HasToken || len(s.Users) != 2 || s.Invite == "" || s.REST != restURL {
		t.Errorf("state after a restart: got %+v, want the setup, off", s)
	}
	if _, code = b.setUp(Setup{Enabled: new(true)}); code != "" {
		t.Error(code)
	}
	b.connects(2)
	b.bindSession()
	if err := b.s.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.is(statusOff, "")
	if s := b.s.State(); s.HasToken || s.Enabled || len(s.Users) != 0 || len(s.Bindings) != 0 || s.Bot != nil || v.token != "" || s.REST != "" {
		t.Errorf("state after Forget: got %+v, want nothing", s)
	}
}

func TestRefusedSetupChangesNothing(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	b := openUnset(t, dc, t.TempDir(), v, t.Output(), false)
	restURL, closed := dc.API.URL, "http://127.0.0.1:1/api"
	list := func(ids ...string) *[]string { return &ids }
	for name, tc := range map[string]struct {
		wish Setup
		want string
	}{
		"another's token":     {Setup{Token: new(dc.Token + "x"), REST: &restURL}, refusedToken},
		"no token":            {Setup{Token: new("hunter2"), REST: &restURL}, refusedMalformed},
		"a line break in it":  {Setup{Token: new(dc.Token[:20] + "\n" + dc.Token[20:]), REST: &restURL}, refusedMalformed},
		"nobody there":        {Setup{Token: new(dc.Token), REST: &closed}, refusedUnreachable},
		"on without a token":  {Setup{Enabled: new(true)}, refusedMalformed},
		"a name":              {Setup{Users: list("owner")}, refusedUser},
		"a small number":      {Setup{Users: list("17")}, refusedUser},
		"nobody":              {Setup{Token: new(dc.Token), REST: &restURL, Users: list("100000000000000001")}, refusedUser},
		"http elsewhere":      {Setup{REST: new("http://discord.example/api")}, refusedURL},
		"ws elsewhere":        {Setup{Gateway: new("ws://10.0.0.1")}, refusedURL},
		"another scheme":      {Setup{REST: new("file:///etc/passwd")}, refusedURL},
		"a password":          {Setup{REST: new("https://a:b@discord.example")}, refusedURL},
		"a gateway that asks": {Setup{Gateway: new("wss://discord.example/?token=1")}, refusedURL},
	} {
		if _, code := b.setUp(tc.wish); code != tc.want {
			t.Errorf("%s: %q, want %q", name, code, tc.want)
		}
	}
	s := b.s.State()
	if s.HasToken || s.Enabled || len(s.Users) != 0 || s.REST != "" || s.Gateway != "" || v.token != "" {
		t.Errorf("state after refusals: got %+v, want nothing set up", s)
	}
}

// Who may change the setup, but does not know the token, does not have it sent to them.
func TestKeptTokenGoesNowhereElse(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	b := openUnset(t, dc, t.TempDir(), v, t.Output(), false)
	var calls atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer other.Close()
	if _, code := b.setUp(Setup{Token: new(dc.Token), REST: new(dc.API.URL), Gateway: new(dc.Gateway.URL)}); code != "" {
		t.Fatal(code)
	}
	was := b.s.State()
	users := []string{dc.Owner.String()}
	for name, wish := range map[string]Setup{
		"another API":          {REST: &other.URL, Users: &users},
		"Discord's own":        {REST: new("")},
		"another gateway":      {Gateway: new("wss://gateway.example"), Enabled: new(true)},
		"an API, while off":    {REST: &other.URL, Enabled: new(false)},
		"a gateway of its own": {Gateway: new("")},
	} {
		if _, code := b.setUp(wish); code != refusedMalformed {
			t.Errorf("SetUp of %s: got code %q, want %s", name, code, refusedMalformed)
		}
	}
	if now := b.s.State(); now.REST != was.REST || now.Gateway != was.Gateway || now.Enabled || len(now.Users) != 0 || calls.Load() != 0 {
		t.Errorf("state: got %+v, %d calls, want it unchanged, no calls", now, calls.Load())
	}
	if _, code := b.setUp(Setup{Gateway: new(dc.Gateway.URL + "/other")}); code != "" {
		t.Errorf("SetUp with the same host: got code %q, want none", code)
	}
	if _, code := b.setUp(Setup{Token: new(dc.Token), REST: &other.URL}); code != refusedToken || calls.Load() == 0 {
		t.Errorf("SetUp with the token: got code %q, %d calls, want %s", code, calls.Load(), refusedToken)
	}
}

// A setup that cannot be written leaves the token of the one before.
func TestFailedSetupKeepsToken(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	b := openUnset(t, dc, t.TempDir(), v, t.Output(), false)
	if _, code := b.setUp(Setup{Token: new(dc.Token), REST: new(dc.API.URL)}); code != "" {
		t.Fatal(code)
	}
	old := v.token
	err := b.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `ALTER TABLE discord_setting RENAME TO elsewhere`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.s.SetUp(t.Context(), Setup{Token: new(dc.Renew())}); !errors.Is(err, session.ErrStorage) || v.token != old {
		t.Errorf("SetUp on a full disk: got error %v, old token kept %v, want ErrStorage, kept", err, v.token == old)
	}
}

// That Discord takes the token is not enough where nothing that is said would reach us.
func TestCheckReportsLine(t *testing.T) {
	b := openBot(t)
	b.dc.Down(false, true)
	b.dc.Gateway.Drop()
	b.is(statusReconnecting, refusedUnreachable)
	if got := b.check()["reachable"]; got.Status != checkMissing || got.Params["reason"] != refusedUnreachable || got.Params["detail"] == "" {
		t.Errorf("check of the line: got %+v, want unreachable with a detail", got)
	}
	b.dc.API.LockOut(time.Hour)
	if got := b.check()["reachable"]; got.Status != checkMissing || got.Params["reason"] != refusedRate || got.Params["until"] == "" || got.Params["detail"] != "" {
		t.Errorf("check of the line: got %+v, want the rate with a time", got)
	}
}

// A token that is pasted as programs write it is a token all the same.
func TestSetUpTrimsPastedToken(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	b := openUnset(t, dc, t.TempDir(), v, t.Output(), false)
	if _, code := b.setUp(Setup{Token: new(" Bot " + dc.Token + "\n"), REST: new(dc.API.URL + "/")}); code != "" || v.token != dc.Token {
		t.Errorf("SetUp with a pasted token: got code %q, token %q, want the bare token", code, v.token)
	}
	if _, code := b.setUp(Setup{Token: new("")}); code != "" || v.token != "" || b.s.State().HasToken {
		t.Errorf("SetUp without a token: got code %q, token %q, want none", code, v.token)
	}
}

// A command sets up and looks, and opens no line.
func TestShortProgramOpensNoLine(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	b := openUnset(t, dc, t.TempDir(), v, t.Output(), false)
	users := []string{dc.Owner.String()}
	if _, code := b.setUp(Setup{Token: new(dc.Token), Users: &users, Enabled: new(true), REST: new(dc.API.URL), Gateway: new(dc.Gateway.URL)}); code != "" {
		t.Fatal(code)
	}
	b.bindSession()
	if got := b.check()["reachable"]; got.Status != checkOK {
		t.Errorf("check of the line: got %+v, want ok", got)
	}
	if list, err := b.s.Channels(t.Context()); err != nil || len(list.Items) != 1 {
		t.Errorf("Channels: got %+v, error %v, want one server", list, err)
	}
	b.close()
	if n := len(dc.Connects()); n != 0 {
		t.Errorf("connections: got %d, want none", n)
	}
}

func TestLockedKeyringIsWaitedFor(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	dir := t.TempDir()
	b := openUnset(t, dc, dir, v, t.Output(), false)
	if _, code := b.setUp(Setup{Token: new(dc.Token), Enabled: new(true), REST: new(dc.API.URL), Gateway: new(dc.Gateway.URL)}); code != "" {
		t.Fatal(code)
	}
	b.close()
	v.lock(true)
	b = openUnset(t, dc, dir, v, t.Output(), true)
	b.is(statusReconnecting, refusedUnreadable)
	if got := b.check()["token"]; got.Status != checkMissing || got.Params["reason"] != refusedUnreadable {
		t.Errorf("check of the token: got %+v, want unreadable", got)
	}
	v.lock(false)
	b.connects(1)
}

func TestCheckReportsMissingConditions(t *testing.T) {
	dc, v := discordtest.New(discordtest.Options{RealHosts: true}), &tokenVault{}
	b := openUnset(t, dc, t.TempDir(), v, t.Output(), true)
	expect := func(what, want string) {
		t.Helper()
		c, err := b.s.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, item := range c.Items {
			text := item.ID + " " + item.Status
			if item.Status == checkMissing && len(item.Params) > 0 {
				params, _ := json.Marshal(item.Params)
				text += " " + string(params)
			}
			have = append(have, text)
		}
		// A date has whole seconds.
		if text := regexp.MustCompile(`"-9[1-5]"`).ReplaceAllString(strings.Join(have, "\n"), `"-90"`); text != strings.TrimSpace(want) {
			t.Errorf("%s:\n%s\nwant:\n%s", what, text, want)
		}
	}
	expect("nothing", `
token missing
reachable unknown
intent.content unknown
server unknown
users missing
binding missing
permissions unknown
commands unknown
clock unknown`)
	dc.Clock(-90 * time.Second)
	if _, code := b.setUp(Setup{Token: new(dc.Token), REST: new(dc.API.URL), Gateway: new(dc.Gateway.URL)}); code != "" {
		t.Fatal(code)
	}
	expect("a token", `
token ok
reachable missing {"reason":"discord.off"}
intent.content ok
server ok
users missing
binding missing
permissions unknown
commands unknown
clock missing {"seconds":"-90"}`)
	dc.Clock(0)
	users := []string{dc.Owner.String()}
	if _, code := b.setUp(Setup{Users: &users, Enabled: new(true)}); code != "" {
		t.Fatal(code)
	}
	b.connects(1)
	b.seen("commands", func(s discordtest.Seen) bool { return len(s.Commands(dc.Guild)) > 0 })
	b.bindSession()
	all := `
token ok
reachable ok
intent.content ok
server ok
users ok
binding ok
permissions ok
commands ok
clock ok`
	expect("everything", all)
	dc.Deny(dc.Channel, discord.PermissionAttachFiles, discord.PermissionSendMessages)
	expect("no files", strings.Replace(all, "permissions ok", `permissions missing {"channel":"general","channels":"1","missing":"Send Messages, Attach Files"}`, 1))
	dc.Deny(dc.Channel, discord.PermissionViewChannel)
	expect("no sight", strings.Replace(all, "permissions ok", `permissions missing {"channel":"general","channels":"1","missing":"View Channel"}`, 1))
	dc.Down(true, false)
	c := b.check()
	if c["token"].Status != checkUnknown || c["reachable"].Status != checkMissing || c["reachable"].Params["detail"] == "" || c["users"].Status != checkOK {
		t.Errorf("check without Discord: got %+v, want the line missing", c)
	}
	dc.Down(false, false)
	dc.Revoke()
	c = b.check()
	if c["token"].Status != checkMissing || c["token"].Params["reason"] != refusedToken || c["reachable"].Status != checkOK {
		t.Errorf("check of a revoked token: got %+v, want the token missing", c)
	}
}

func TestCheckReportsMissingServer(t *testing.T) {
	b := openBot(t)
	b.dc.RemoveGuild(b.dc.Guild)
	if c := b.check(); c["server"].Status != checkMissing || c["permissions"].Status != checkUnknown {
		t.Errorf("check without a server: got %+v, want the server missing", c)
	}
}

func TestBindChecksChannelAndTarget(t *testing.T) {
	b := openBot(t)
	dir := filepath.Join(b.dir, "project")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := b.create(), b.create()
	news := b.dc.AddChannel(b.dc.Guild, "news", "announcement")
	voice := b.dc.AddChannel(b.dc.Guild, "voice", "voice")
	forum := b.dc.AddChannel(b.dc.Guild, "forum", "forum")
	thread := b.dc.Thread(b.dc.Channel, b.dc.Owner, "a thread", 0)
	hidden := b.dc.AddChannel(b.dc.Guild, "hidden", "text")
	b.dc.Deny(hidden, discord.PermissionViewChannel)
	direct := b.dc.Direct(b.dc.Owner)
	here := Bind{Directory: dir, Agent: "mock"}
	for _, tc := range []struct {
		name    string
		channel snowflake.ID
		wish    Bind
		want    string
	}{
		{"a conversation", b.dc.Channel, Bind{Session: one.ID}, ""},
		{"the same once more", b.dc.Channel, Bind{Session: one.ID}, ""},
		{"another in its place", b.dc.Channel, Bind{Session: two.ID}, ""},
		{"one that has a channel", news, Bind{Session: two.ID}, refusedBound},
		{"one that has lost its channel", news, Bind{Session: one.ID}, ""},
		{"a directory", b.dc.Channel, here, ""},
		{"a directory in a forum", forum, here, ""},
		{"a conversation in a thread", thread, Bind{Session: two.ID}, ""},
		{"a conversation in a forum", forum, Bind{Session: one.ID}, refusedKind},
		{"a directory in a thread", thread, here, refusedKind},
		{"a directory in a voice channel", voice, here, refusedKind},
		{"a direct message", direct, Bind{Session: one.ID}, refusedKind},
		{"a hidden channel", hidden, Bind{Session: one.ID}, refusedUnknown},
		{"no channel", 12345, Bind{Session: one.ID}, refusedUnknown},
		{"a file", news, Bind{Directory: file, Agent: "mock"}, refusedDirectory},
		{"a relative path", news, Bind{Directory: ".", Agent: "mock"}, refusedDirectory},
		{"no such directory", news, Bind{Directory: dir + "x", Agent: "mock"}, refusedDirectory},
		{"no agent", news, Bind{Directory: dir}, refusedAgent},
		{"an unknown agent", news, Bind{Directory: dir, Agent: "nobody"}, refusedAgent},
		{"nothing", news, Bind{}, "request.invalid"},
		{"both", news, Bind{Session: one.ID, Directory: dir}, "request.invalid"},
	} {
		made, err := b.s.Bind(t.Context(), tc.channel.String(), tc.wish)
		if code := codeOf(t, err); code != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, code, tc.want)
		}
		if err != nil {
			continue
		}
		if made.Channel != tc.channel.String() || made.Guild != b.dc.Guild.String() || made.GuildName != "Workshop" || made.Name == "" || made.Session != tc.wish.Session ||
			made.Directory != tc.wish.Directory || made.Thread != (tc.channel == thread) {
			t.Errorf("Bind of %s: got %+v, want %+v", tc.name, made, tc.wish)
		}
		if !slices.ContainsFunc(b.s.State().Bindings, func(x Binding) bool { return x == made }) {
			t.Errorf("bindings after %s: got %+v, want the new one", tc.name, b.s.State().Bindings)
		}
	}
	if _, err := b.s.Bind(t.Context(), b.dc.Channel.String(), Bind{Session: "nobody"}); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
	for range 2 { // the second time there is none
		if err := b.s.Unbind(t.Context(), news.String()); err != nil {
			t.Error(err)
		}
	}
	if code := codeOf(t, b.s.Unbind(t.Context(), "general")); code != refusedUnknown {
		t.Error(code)
	}
	if n := len(b.s.State().Bindings); n != 3 {
		t.Errorf("bindings: got %d, want 3", n)
	}
}

func TestChannelsAreListed(t *testing.T) {
	b := openBot(t)
	mute := b.dc.AddChannel(b.dc.Guild, "mute", "text")
	b.dc.Deny(mute, discord.PermissionSendMessages, discord.PermissionSendMessagesInThreads)
	thread := b.dc.Thread(b.dc.Channel, b.dc.Owner, "a thread", 0)
	b.dc.AddGuild("Elsewhere")
	list, err := b.s.Channels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[1].Name != "Elsewhere" || list.Items[1].Channels == nil {
		t.Fatalf("Channels: got %+v, want 2 servers", list)
	}
	have, err := json.Marshal(list.Items[0].Channels)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal([]Channel{
		{ID: b.dc.Channel.String(), Name: "general", Kind: "text"},
		{ID: thread.String(), Name: "a thread", Kind: "thread", Parent: b.dc.Channel.String()},
		{ID: mute.String(), Name: "mute", Kind: "text", Missing: []string{"Send Messages", "Send Messages in Threads"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Errorf("%s\nwant %s", have, want)
	}
	for n, status := range map[int]int{1: http.StatusForbidden, attempts: http.StatusBadGateway} {
		b.dc.API.Fail("GET /guilds/{guild}/channels", n, status)
		if list, err = b.s.Channels(t.Context()); err != nil || len(list.Items) != 1 || list.Items[0].Name != "Elsewhere" {
			t.Errorf("Channels with %d from a server: got %+v, error %v, want the other server", status, list, err)
		}
	}
}

// As Discord's documentation has it, under Permissions.
func TestRightsFollowOverwrites(t *testing.T) {
	const guild, role, other, bot = 1, 2, 3, 4
	view, send, attach := discord.PermissionViewChannel, discord.PermissionSendMessages, discord.PermissionAttachFiles
	for name, tc := range map[string]struct {
		rights rights
		over   []overwrite
		want   discord.Permissions
	}{
		"as the server has it":     {rights{base: view | send}, nil, view | send},
		"taken from everybody":     {rights{base: view | send}, []overwrite{{ID: guild, Deny: send}}, view},
		"given to a role":          {rights{base: view, roles: []snowflake.ID{role}}, []overwrite{{ID: guild, Deny: send}, {ID: role, Allow: send}}, view | send},
		"a role of others":         {rights{base: view, roles: []snowflake.ID{role}}, []overwrite{{ID: other, Allow: send}}, view},
		"allowed beats denied":     {rights{base: view, roles: []snowflake.ID{role, other}}, []overwrite{{ID: role, Allow: send}, {ID: other, Deny: send}}, view | send},
		"the bot's own comes last": {rights{base: view | send, roles: []snowflake.ID{role}}, []overwrite{{ID: bot, Deny: send}, {ID: role, Allow: send | attach}}, view | attach},
		"who does not see":         {rights{base: view | send}, []overwrite{{ID: guild, Deny: view}}, 0},
		"who may do anything":      {rights{all: true}, []overwrite{{ID: guild, Deny: view}}, discord.PermissionsAll},
	} {
		tc.rights.guild, tc.rights.bot = guild, bot
		if got := tc.rights.in(place{Overwrites: tc.over}); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestBindingsFollowChannels(t *testing.T) {
	b := openBot(t)
	b.dc.Say(b.dc.Channel, b.dc.Stranger, "x") // events are heard in their order
	b.until("what a line begins with", func() bool { return b.s.State().Ignored.Strangers == 1 })
	b.bindSession()
	is := func(what string, want Binding) {
		t.Helper()
		b.until(what, func() bool {
			list := b.s.State().Bindings
			return len(list) == 1 && list[0].Problem == want.Problem && list[0].Name == want.Name && list[0].GuildName == want.GuildName
		})
	}
	tell := func(kind gateway.EventType, text string) {
		t.Helper()
		text = strings.NewReplacer("GUILD", b.dc.Guild.String(), "CHANNEL", b.dc.Channel.String()).Replace(text)
		if err := b.s.event(kind, json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	tell(gateway.EventTypeGuildDelete, `{"id":"GUILD","unavailable":true}`) // an outage
	tell(gateway.EventTypeGuildDelete, `{"id":"9"}`)
	tell(gateway.EventTypeChannelUpdate, `{"id":"CHANNEL","guild_id":"GUILD","type":0,"name":"lobby"}`)
	is("new name of the channel", Binding{Name: "lobby", GuildName: "Workshop"})
	b.dc.RemoveGuild(b.dc.Guild)
	is("binding whose server is gone", Binding{Name: "lobby", GuildName: "Workshop", Problem: problemGone})
	// A kind of channel that nobody knows yet is no reason to hear nothing of the others.
	tell(gateway.EventTypeGuildCreate, `{"id":"GUILD","name":"Factory","channels":[{"id":"8","type":99,"name":"new"},{"id":"CHANNEL","type":0,"name":"hall","parent_id":null}],"threads":[]}`)
	is("binding whose server is back", Binding{Name: "hall", GuildName: "Factory"})
	tell(gateway.EventTypeChannelDelete, `{"id":"CHANNEL","guild_id":"GUILD","type":0}`)
	is("binding whose channel is gone", Binding{Name: "hall", GuildName: "Factory", Problem: problemGone})
	tell(gateway.EventTypeGuildCreate, `{"id":"GUILD","unavailable":true}`)
	tell(gateway.EventTypeGuildCreate, `{"id":"GUILD","name":"Factory","channels":[],"threads":[{"id":"CHANNEL","type":11,"name":"hall"}]}`)
	is("binding that is back", Binding{Name: "hall", GuildName: "Factory"})
}
