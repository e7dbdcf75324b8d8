package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/discord"
	"deskhand/backend/discord/discordtest"
)

func openDiscord(t *testing.T) *discordtest.Discord {
	t.Helper()
	t.Setenv("DESKHAND_KEYRING", "off")
	dc := discordtest.New(discordtest.Options{})
	t.Cleanup(dc.Close)
	return dc
}

// tokenFile is a file with the token, for standard input.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func discordState(t *testing.T, dir string) (s discord.State) {
	t.Helper()
	p := start(t, dir, "discord", "--json")
	out, code := p.end()
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("Unmarshal: got exit code %d, error %v, stdout %s, stderr %s, want no error and exit code 0", code, err, out, p.stderr)
	}
	return s
}

func TestDiscordFromTheTerminal(t *testing.T) {
	dc, dir, project := openDiscord(t), t.TempDir(), t.TempDir()
	setup := []string{"discord", "setup", "--user", dc.Owner.String(), "--rest-url", dc.API.URL, "--gateway-url", dc.Gateway.URL}
	for name, tc := range map[string]struct {
		args  []string
		input string
		code  int
		says  string
	}{
		"nothing is set up":    {[]string{"discord"}, "", 0, "deskhand discord setup"},
		"nothing to look at":   {[]string{"discord", "channels"}, "", 1, "not set up"},
		"no token":             {setup, os.DevNull, 2, "a token is needed"},
		"what is no token":     {setup, tokenFile(t, "secret"), 2, "no token of a bot"},
		"another's token":      {setup, tokenFile(t, dc.Token+"x"), 1, "refuses the token"},
		"neither of the two":   {[]string{"discord", "bind", dc.Channel.String()}, "", 2, "--session"},
		"no such conversation": {[]string{"discord", "bind", dc.Channel.String(), "--session", "abc"}, "", 2, "no conversation"},
	} {
		p := startWith(t, dir, tc.input, tc.args...)
		out, code := p.end()
		if code != tc.code || !strings.Contains(out+p.stderr.String(), tc.says) {
			t.Errorf("%s: want exit code %v and out+p.stderr.String() with %v, got exit code %d\nstdout %s\nstderr %s", name, tc.code, tc.says, code, out, p.stderr)
		}
	}
	p := startWith(t, dir, tokenFile(t, dc.Token), setup...)
	out, code := p.end()
	if code != 1 || !strings.Contains(out, "MISSING  A channel is bound") || !strings.Contains(out, "client_id="+dc.Application.String()) ||
		strings.Contains(out+p.stderr.String(), dc.Token) {
		t.Fatalf("want exit code 1, stdout with \"MISSING  A channel is bound\", stdout with \"client_id=\"+dc.Application.String() and out+p.stderr.String() without %v, got exit code %d\nstdout %s\nstderr %s", dc.Token, code, out, p.stderr)
	}
	if len(dc.Connects()) != 0 {
		t.Error("a command that ends has connected")
	}
	p = start(t, dir, "discord", "bind", "https://discord.com/channels/"+dc.Guild.String()+"/"+dc.Channel.String(), "--dir", project, "--agent", "mock")
	if out, code := p.end(); code != 0 || !strings.Contains(out, "#general in Workshop: "+project) {
		t.Errorf(`got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout with "#general in Workshop: "+project`, code, out, p.stderr)
	}
	p = start(t, dir, "discord", "channels")
	if out, code := p.end(); code != 0 || !strings.Contains(out, dc.Channel.String()+"  text  general  Workshop") {
		t.Errorf(`got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout with dc.Channel.String()+" text general Workshop"`, code, out, p.stderr)
	}

	// Commands use the API of the server, and only the server connects to Discord.
	_, _ = server(t, dir)
	if err := dc.Wait(t.Context(), func(s discordtest.Seen) bool { return s.Lines() == 1 && len(s.Commands(dc.Guild)) > 0 }); err != nil {
		t.Fatal(err)
	}
	p = start(t, dir, "discord", "check")
	if out, code := p.end(); code != 0 || strings.Contains(out, "MISSING") {
		t.Errorf(`got exit code %d, stdout %s, stderr %s, want exit code 0 and stdout without "MISSING"`, code, out, p.stderr)
	}
	if s := discordState(t, dir); !s.Enabled || s.TokenIn != "file" || len(s.Bindings) != 1 || s.Bindings[0].Directory != project || s.Bot == nil {
		t.Errorf(`discordState: got s %+v, want Enabled, TokenIn "file", 1 in Bindings, s.Bindings[0].Directory %v and Bot not nil`, s, project)
	}
	for _, args := range [][]string{{"unbind", "<#" + dc.Channel.String() + ">"}, {"setup", "--off"}} {
		p := start(t, dir, append([]string{"discord"}, args...)...)
		if out, code := p.end(); code != 0 {
			t.Errorf("%v: got exit code %d, stdout %s, stderr %s, want exit code 0", args, code, out, p.stderr)
		}
	}
	if err := dc.Wait(t.Context(), func(s discordtest.Seen) bool { return s.Lines() == 0 }); err != nil {
		t.Fatal(err)
	}
	if s := discordState(t, dir); s.Enabled || !s.HasToken || len(s.Bindings) != 0 {
		t.Errorf("discordState: got s %+v, want not Enabled, HasToken and no Bindings", s)
	}
	t.Setenv("DESKHAND_DISCORD_TOKEN", "")
	p = start(t, dir, "discord", "setup") // an empty token keeps the stored token
	if out, _ := p.end(); !strings.Contains(out, "ok       Discord takes the token") {
		t.Errorf(`got stdout %s, stderr %s, want stdout with "ok       Discord takes the token"`, out, p.stderr)
	}
	var state discord.State
	p = start(t, dir, "discord", "setup", "--json")
	if out, code := p.end(); code != 0 || json.Unmarshal([]byte(out), &state) != nil || !state.Enabled {
		t.Errorf("got exit code %d, stdout %s, stderr %s, want exit code 0, no error of json.Unmarshal and state.Enabled", code, out, p.stderr)
	}
	p = start(t, dir, "discord", "setup", "--forget")
	if out, code := p.end(); code != 0 {
		t.Errorf("got exit code %d, stdout %s, stderr %s, want exit code 0", code, out, p.stderr)
	}
	if s := discordState(t, dir); s.HasToken || s.Enabled || len(s.Users) != 0 {
		t.Errorf("discordState: got s %+v, want not HasToken, not Enabled and no Users", s)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "discord-token.json"))
	if err != nil || strings.Contains(string(kept), dc.Token) {
		t.Errorf("ReadFile: got error %v, kept %s, want no error and kept without %v", err, kept, dc.Token)
	}
}
