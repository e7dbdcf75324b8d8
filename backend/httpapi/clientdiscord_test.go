package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/discord"
	"deskhand/backend/discord/discordtest"
	"deskhand/backend/feed"
	"deskhand/backend/httpapi"
	"deskhand/backend/proxy"
	"deskhand/backend/roster"
	"deskhand/backend/session"
	"deskhand/backend/settings"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/vault"
)

// pinboard is the client API with Discord's surface, which talks to a stand-in.
type pinboard struct {
	t   *testing.T
	url string
	dc  *discordtest.Discord
	all bytes.Buffer // all answers
}

func openPinboard(t *testing.T) *pinboard {
	t.Helper()
	p := &pinboard{t: t, dc: discordtest.New(discordtest.Options{})}
	t.Cleanup(p.dc.Close)
	dir := t.TempDir()
	db := storetest.Open(t, dir)
	t.Cleanup(func() { _ = db.Close() })
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	catalogue := agents.Open(agents.Config{Dir: filepath.Join(dir, "agents"), File: filepath.Join(dir, "agents.json"), WriteFile: store.WriteFile})
	t.Cleanup(func() { _ = catalogue.Close() })
	people := roster.New(roster.Deps{Catalogue: catalogue})
	sessions, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set, Roster: people, Settings: settings.New(filepath.Join(dir, "settings.json"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sessions.Close() })
	tokens := vault.Open(vault.Config{File: filepath.Join(dir, "discord-token.json"), WriteFile: store.WriteFile})
	surface, err := discord.New(t.Context(), discord.Config{Sessions: sessions, Agents: people, Store: db, Version: "test", Token: discord.Vault{
		Keep: func(ctx context.Context, token string) (string, error) {
			_, err := tokens.KeepToken(ctx, "discord", token)
			return "file", err
		},
		Value:  func(ctx context.Context) (string, error) { return tokens.Token(ctx, "discord") },
		Forget: func(ctx context.Context) error { return tokens.Forget(ctx, "discord") },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = surface.Close() })
	surface.Start()
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: sessions, Agents: catalogue, Roster: people, Discord: surface}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// call makes a call, reads the answer into out, and returns its code or "".
func (p *pinboard) call(method, path, body string, status int, out any) (code string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+"/client/"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	p.all.Write(data)
	if resp.StatusCode != status {
		p.t.Errorf("%s %s: got %d %s, want %d", method, path, resp.StatusCode, data, status)
	}
	var problem struct{ Code string }
	if len(data) > 0 {
		_ = json.Unmarshal(data, &problem)
		if out != nil {
			if err := json.Unmarshal(data, out); err != nil {
				p.t.Errorf("%s %s: %v in %s", method, path, err, data)
			}
		}
	}
	return problem.Code
}

func TestDiscordOverTheAPI(t *testing.T) {
	p := openPinboard(t)
	var state discord.State
	p.call("GET", "discord", "", http.StatusOK, &state)
	if state.Status != "off" || state.HasToken || !strings.Contains(p.all.String(), `"users":[]`) || !strings.Contains(p.all.String(), `"bindings":[]`) {
		t.Errorf("discord: got %s, want off without users and bindings", p.all.String())
	}
	for body, want := range map[string]string{
		`{"token":"hello"}`:                 "discord.token_malformed",
		`{"enabled":true}`:                  "discord.token_malformed",
		`{"users":["me"]}`:                  "discord.user",
		`{"restUrl":"http://example.com/"}`: "discord.url",
	} {
		if code := p.call("PUT", "discord", body, http.StatusBadRequest, nil); code != want {
			t.Errorf("PUT %s: got the code %q, want %q", body, code, want)
		}
	}
	if code := p.call("PUT", "discord", `{"token":"`+p.dc.Token+`z","restUrl":"`+p.dc.API.URL+`"}`, http.StatusConflict, nil); code != "discord.token_invalid" {
		t.Errorf("PUT with a wrong token: got the code %q, want discord.token_invalid", code)
	}
	if code := p.call("GET", "discord/channels", "", http.StatusConflict, nil); code != "discord.off" {
		t.Errorf("channels: got the code %q, want discord.off", code)
	}
	setup, _ := json.Marshal(map[string]any{
		"token": p.dc.Token, "users": []string{p.dc.Owner.String()}, "enabled": true, "restUrl": p.dc.API.URL, "gatewayUrl": p.dc.Gateway.URL,
	})
	p.call("PUT", "discord", string(setup), http.StatusOK, &state)
	if !state.HasToken || state.TokenIn != "file" || state.Bot == nil || len(state.Users) != 1 {
		t.Errorf("PUT: got %+v, want a token in the file, a bot, one user", state)
	}
	if err := p.dc.Wait(t.Context(), func(s discordtest.Seen) bool { return s.Lines() == 1 && len(s.Commands(p.dc.Guild)) > 0 }); err != nil {
		t.Fatal(err)
	}
	var servers discord.Servers
	p.call("GET", "discord/channels", "", http.StatusOK, &servers)
	if len(servers.Items) != 1 || len(servers.Items[0].Channels) != 1 || servers.Items[0].Channels[0].ID != p.dc.Channel.String() {
		t.Errorf("channels: got %+v, want the one channel", servers)
	}
	where := "discord/bindings/" + p.dc.Channel.String()
	p.call("PUT", where, `{"session":"none"}`, http.StatusNotFound, nil)
	if code := p.call("PUT", where, `{"directory":"/no/where","agent":"mock"}`, http.StatusBadRequest, nil); code != "discord.directory" {
		t.Errorf("binding: got the code %q, want discord.directory", code)
	}
	wish, _ := json.Marshal(discord.Bind{Directory: t.TempDir(), Agent: "mock"})
	var made discord.Binding
	p.call("PUT", where, string(wish), http.StatusOK, &made)
	if made.Channel != p.dc.Channel.String() || made.Agent != "mock" {
		t.Errorf("binding: got %+v, want mock in the channel", made)
	}
	var checked discord.Checked
	p.call("POST", "discord/check", "{}", http.StatusOK, &checked)
	for _, item := range checked.Items {
		if item.Status != "ok" {
			t.Errorf("check: got %+v, want ok", item)
		}
	}
	p.call("DELETE", where, "", http.StatusNoContent, nil)
	p.call("DELETE", "discord", "", http.StatusNoContent, nil)
	p.call("GET", "discord", "", http.StatusOK, &state)
	if strings.Contains(p.all.String(), p.dc.Token) {
		t.Error("the token was told")
	}
}

// With data of a newer version there may be no surface.
func TestDiscordThatIsNotThere(t *testing.T) {
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{}))
	defer server.Close()
	p := &pinboard{t: t, url: server.URL}
	for _, call := range [][2]string{{"GET", "discord"}, {"DELETE", "discord"}, {"POST", "discord/check"}, {"DELETE", "discord/bindings/1"}} {
		if code := p.call(call[0], call[1], "", http.StatusConflict, nil); code != "discord.off" {
			t.Errorf("%s: got the code %q, want discord.off", call, code)
		}
	}
}

// The feed announces a change of Discord, so that every other surface shows the same.
func TestDiscordIsToldToTheFeed(t *testing.T) {
	p := openPinboard(t)
	var first feed.Batch
	p.call("GET", "events?wait=0", "", http.StatusOK, &first)
	var once sync.Once
	for after := first.Seq; ; {
		var batch feed.Batch
		body := `{"token":"` + p.dc.Token + `","restUrl":"` + p.dc.API.URL + `"}`
		once.Do(func() { p.call("PUT", "discord", body, http.StatusOK, nil) })
		q := "events?wait=20&gen=" + first.Gen + "&after=" + jsonText(after)
		p.call("GET", q, "", http.StatusOK, &batch)
		for _, e := range batch.Events {
			var s discord.State
			if e.Type == discord.EventState && json.Unmarshal(e.Data, &s) == nil && s.HasToken {
				return
			}
		}
		if len(batch.Events) == 0 {
			t.Fatal("nothing was told")
		}
		after = batch.Seq
	}
}

func jsonText(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
