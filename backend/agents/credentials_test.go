package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
)

func TestCredentials(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake homes are HOME's")
	}
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	claudeFile := func(expiry string) map[string]string {
		return map[string]string{".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"SECRET","expiresAt":` + expiry + `}}`}
	}
	openCode := ".local/share/opencode/auth.json"
	for name, tc := range map[string]struct {
		env   []string
		files map[string]string
		want  string // ids of the agents that have credentials
	}{
		"nothing":                   {nil, nil, ""},
		"anthropic":                 {[]string{"ANTHROPIC_API_KEY=SECRET"}, nil, "claude opencode pi"},
		"claude's key":              {[]string{"CLAUDE_API_KEY=SECRET"}, nil, "claude opencode"},
		"claude's token":            {[]string{"CLAUDE_CODE_OAUTH_TOKEN=SECRET"}, nil, "claude opencode"},
		"auth token":                {[]string{"ANTHROPIC_AUTH_TOKEN=SECRET"}, nil, "claude opencode"},
		"openai":                    {[]string{"OPENAI_API_KEY=SECRET"}, nil, "codex opencode pi"},
		"codex's key":               {[]string{"CODEX_API_KEY=SECRET"}, nil, "codex opencode"},
		"gemini":                    {[]string{"GEMINI_API_KEY=SECRET"}, nil, "gemini pi"},
		"cursor":                    {[]string{"CURSOR_API_KEY=SECRET"}, nil, "cursor"},
		"amp":                       {[]string{"AMP_API_KEY=SECRET"}, nil, "amp"},
		"empty ones":                {[]string{"ANTHROPIC_API_KEY=", "OPENAI_API_KEY=", "CLAUDE_API_KEY="}, nil, ""},
		"emptied again":             {[]string{"ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_API_KEY="}, nil, ""},
		"primaryApiKey":             {nil, map[string]string{".claude.json": `{"primaryApiKey":"SECRET"}`}, "claude opencode"},
		"apiKey":                    {nil, map[string]string{".claude.json": `{"other":1,"apiKey":"SECRET"}`}, "claude opencode"},
		"empty key":                 {nil, map[string]string{".claude.json": `{"primaryApiKey":"","apiKey":null}`}, ""},
		"key of another type":       {nil, map[string]string{".claude.json": `{"primaryApiKey":{"a":1}}`}, ""},
		"broken file":               {nil, map[string]string{".claude.json": `{"primaryApiKey":"SECRET"`}, ""},
		"no object":                 {nil, map[string]string{".claude.json": `["SECRET"]`}, ""},
		"login without expiry":      {nil, map[string]string{".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"SECRET"}}`}, "claude opencode"},
		"login until later":         {nil, claudeFile(`"` + later.Format(time.RFC3339) + `"`), "claude opencode"},
		"login until later, ms":     {nil, claudeFile(fmt.Sprint(later.UnixMilli())), "claude opencode"},
		"login expired":             {nil, claudeFile(`"` + before.UTC().Format(time.RFC3339Nano) + `"`), ""},
		"login expired, ms":         {nil, claudeFile(fmt.Sprint(before.UnixMilli())), ""},
		"an expiry nobody can read": {nil, claudeFile(`"soon"`), "claude opencode"},
		"claude elsewhere": {
			[]string{"CLAUDE_CONFIG_DIR=HOME/cc"}, map[string]string{"cc/.credentials.json": `{"claudeAiOauth":{"accessToken":"SECRET"}}`}, "claude opencode",
		},
		"claude elsewhere, empty": {
			[]string{"CLAUDE_CONFIG_DIR=HOME/cc"}, map[string]string{".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"SECRET"}}`}, "",
		},
		"amp's file":               {nil, map[string]string{".amp/config.json": `{"anthropicApiKey":"SECRET"}`}, "amp claude opencode"},
		"amp's file, inner":        {nil, map[string]string{".amp/config.json": `{"auth":{"token":"SECRET"}}`}, "amp claude opencode"},
		"codex's file":             {nil, map[string]string{".codex/auth.json": `{"OPENAI_API_KEY":"SECRET"}`}, "codex opencode"},
		"codex's login":            {nil, map[string]string{".codex/auth.json": `{"OPENAI_API_KEY":null,"tokens":{"access_token":"SECRET"}}`}, "codex opencode"},
		"codex's file, empty":      {nil, map[string]string{".codex/auth.json": `{"OPENAI_API_KEY":null,"tokens":null}`}, ""},
		"codex elsewhere":          {[]string{"CODEX_HOME=HOME/cx"}, map[string]string{"cx/auth.json": `{"OPENAI_API_KEY":"SECRET"}`}, "codex opencode"},
		"opencode for anthropic":   {nil, map[string]string{openCode: `{"anthropic":{"type":"api","key":"SECRET"}}`}, "claude opencode"},
		"opencode for openai":      {nil, map[string]string{openCode: `{"openai":{"type":"oauth","access":"SECRET","expires":0}}`}, "codex opencode"},
		"opencode, expired":        {nil, map[string]string{openCode: fmt.Sprintf(`{"openai":{"type":"oauth","access":"SECRET","expires":%d}}`, before.UnixMilli())}, ""},
		"opencode elsewhere":       {[]string{"XDG_DATA_HOME=HOME/d"}, map[string]string{"d/opencode/auth.json": `{"openai":{"type":"api","key":"SECRET"}}`}, "codex opencode"},
		"an entry's own variables": {[]string{}, map[string]string{"agents.json": `{"agents":[{"id":"codex","override":true,"command":"x","env":{"OPENAI_API_KEY":"SECRET"}}]}`}, "codex"},
		"an entry's empty ones": {
			[]string{"OPENAI_API_KEY=SECRET"}, map[string]string{"agents.json": `{"agents":[{"id":"codex","override":true,"command":"x","env":{"OPENAI_API_KEY":""}}]}`}, "opencode pi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for file, text := range tc.files {
				file = filepath.Join(home, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := []string{"HOME=" + home, "PATH=" + home}
			for _, kv := range tc.env {
				env = append(env, strings.ReplaceAll(kv, "HOME/", home+"/"))
			}
			c := agents.Open(agents.Config{Self: os.Args[0], File: filepath.Join(home, "agents.json"), Environ: env})
			for _, id := range []string{"mock", "amp", "claude", "codex", "cursor", "gemini", "opencode", "pi", "cline"} {
				info, err := c.Info(t.Context(), id, agents.InfoQuery{})
				if err != nil {
					t.Fatal(err)
				}
				want := id == "mock" || strings.Contains(" "+tc.want+" ", " "+id+" ")
				if info.CredentialsAvailable != want {
					t.Errorf("%s: got CredentialsAvailable %v, want %v", id, info.CredentialsAvailable, want)
				}
				if data, _ := json.Marshal(info); strings.Contains(string(data), "SECRET") {
					t.Errorf("%s tells the secret: %s", id, data)
				}
			}
		})
	}
}

// TestCredentialsThatCannotBeRead: a directory, a pipe without a writer, and no home at all.
func TestCredentialsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".codex", "auth.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := makePipe(filepath.Join(home, ".claude.json")); err != nil {
		t.Log("without a pipe: ", err)
	}
	for _, env := range [][]string{{"HOME=" + home}, {"HOME="}, {"HOME=relative"}, {}} {
		c := agents.Open(agents.Config{Self: os.Args[0], Environ: append([]string{"PATH="}, env...)})
		for _, id := range []string{"claude", "codex"} {
			if info, err := c.Info(t.Context(), id, agents.InfoQuery{}); err != nil || info.CredentialsAvailable {
				t.Errorf("environment %v: Info(%s): got %+v, %v, want no credentials", env, id, info, err)
			}
		}
	}
}
