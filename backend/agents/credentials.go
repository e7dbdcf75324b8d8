package agents

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"deskhand/backend/environ"
)

// The providers whose credential files are known.
const (
	anthropic = "anthropic"
	openai    = "openai"
	amp       = "amp"
)

func variablesOf(provider string) []string {
	switch provider {
	case anthropic:
		return []string{"ANTHROPIC_API_KEY", "CLAUDE_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"}
	case openai:
		return []string{"OPENAI_API_KEY", "CODEX_API_KEY"}
	}
	return nil
}

// lookout looks for credentials as an agent with the same environment would.
type lookout struct{ environ []string }

func (l lookout) variable(name string) string { return environ.Lookup(l.environ, name) }

// filesOf reports whether the files of a provider hold credentials.
func (l lookout) filesOf(provider string) bool {
	switch provider {
	case anthropic:
		return l.claude() || l.amp() || l.opencode(anthropic)
	case openai:
		return l.codex() || l.opencode(openai)
	case amp:
		return l.amp()
	}
	return false
}

// in returns the path of a file in the directory that a variable names, or else in the home directory. Without either, in returns "".
func (l lookout) in(variable, below string, name ...string) string {
	dir := ""
	if variable != "" {
		dir = l.variable(variable)
	}
	if dir == "" {
		home := l.variable("HOME")
		if runtime.GOOS == "windows" {
			home = l.variable("USERPROFILE")
		}
		dir = filepath.Join(home, below)
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(append([]string{dir}, name...)...)
}

func (l lookout) claude() bool {
	config := readObject(l.in("CLAUDE_CONFIG_DIR", "", ".claude.json"))
	if slices.ContainsFunc([]string{"primaryApiKey", "apiKey", "anthropicApiKey", "customApiKey"}, config.text) {
		return true
	}
	oauth := readObject(l.in("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")).object("claudeAiOauth")
	return oauth.text("accessToken") && !oauth.expired("expiresAt")
}

func (l lookout) amp() bool {
	names := []string{"anthropicApiKey", "anthropic_api_key", "apiKey", "api_key", "accessToken", "access_token", "token"}
	config := readObject(l.in("", ".amp", "config.json"))
	return slices.ContainsFunc(names, config.text) || slices.ContainsFunc(names, config.object("auth").text) ||
		slices.ContainsFunc(names, config.object("anthropic").text)
}

func (l lookout) codex() bool {
	auth := readObject(l.in("CODEX_HOME", ".codex", "auth.json"))
	return auth.text("OPENAI_API_KEY") || auth.object("tokens").text("access_token")
}

// opencode reads auth.json, an entry per provider: {"type":"api","key"} or {"type":"oauth","access","expires"}.
func (l lookout) opencode(provider string) bool {
	entry := readObject(l.in("XDG_DATA_HOME", filepath.Join(".local", "share"), "opencode", "auth.json")).object(provider)
	return entry.text("key") || entry.text("access") && !entry.expired("expires")
}

// object is a JSON object of another program's file: a field that is missing, or of another type, reads as empty.
type object map[string]json.RawMessage

// maxCredentials is well above the size of such a file. Claude's grows to megabytes with its history of projects.
const maxCredentials = 32 << 20

// readObject reads a file. A file that cannot be read, is not regular (opening a pipe would wait for the other end), or holds no object
// reads as empty.
func readObject(file string) object {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCredentials))
	if err != nil {
		return nil
	}
	var o object
	_ = json.Unmarshal(data, &o) // broken JSON reads as empty
	return o
}

func (o object) object(key string) object {
	var inner object
	_ = json.Unmarshal(o[key], &inner) // as above
	return inner
}

// text reports whether the field is a text that is not empty.
func (o object) text(key string) bool {
	var s string
	return json.Unmarshal(o[key], &s) == nil && s != ""
}

// expired reads a time in RFC 3339 or in milliseconds since 1970. A missing time never expires, and neither does 0, which OpenCode writes
// for that.
func (o object) expired(key string) bool {
	var text string
	if json.Unmarshal(o[key], &text) == nil {
		at, err := time.Parse(time.RFC3339, text)
		return err == nil && at.Before(time.Now())
	}
	var ms float64
	return json.Unmarshal(o[key], &ms) == nil && ms > 0 && time.UnixMilli(int64(ms)).Before(time.Now())
}
